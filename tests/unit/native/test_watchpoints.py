"""A watchpoint stops the core once for each instruction that accesses what it watches, and changes nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.cpu import ExitReason, Level
from emulator.probes import Probe
from tests.unit.native.bare import CODE, DATA, FOREVER, Bare, assemble

R, W, RW = 1, 2, 3
USER = 1 << Level.USER
WATCHED = DATA + 0x40
# Instructions, and how each accesses the eight bytes from WATCHED on, whose address is in a register.
ACCESSES = {
    "x86_64": (
        "mov $0x700040, %edi\n xor %eax, %eax\n lea 8(%rdi), %rbx\n mov $1, %ecx\n",
        (
            ("mov %rax, (%rdi)", W),
            ("mov (%rdi), %rdx", R),
            ("movb $1, 7(%rdi)", W),
            ("add %rax, (%rdi)", RW),
            ("cmp %rax, -8(%rbx)", R),
            ("lock xadd %rax, (%rdi)", RW),
            ("xchg %rax, (%rdi)", RW),
            ("cmpxchg %rax, (%rdi)", RW),
            ("pushq (%rdi)", R),
            ("popq (%rdi)", W),
            ("movups %xmm0, -15(%rdi)", W),  # its last byte is the first
            ("movups 7(%rdi), %xmm0", R),  # its first byte is the last
            ("movdqa (%rdi), %xmm1", R),
            ("btsq %rcx, (%rdi)", RW),
            ("bt %rcx, (%rdi)", R),
            ("fxsave -0x40(%rdi)", W),
            ("fldl (%rdi)", R),
            ("fstpl (%rdi)", W),
            ("lea (%rdi), %rdx", 0),
            ("prefetcht0 (%rdi)", 0),
            ("mov %rax, 8(%rdi)", 0),
            ("mov -8(%rdi), %rdx", 0),
        ),
    ),
    "aarch64": (
        "mov x9, #0x40\n movk x9, #0x70, lsl #16\n mov x10, #8\n",
        (
            ("str x1, [x9]", W),
            ("ldr x1, [x9]", R),
            ("strb w1, [x9, #7]", W),
            ("ldrh w1, [x9, #-1]", R),
            ("ldr x1, [x9, x10, lsl #0]", 0),
            ("stp x1, x2, [x9, #-8]", W),
            ("ldp x1, x2, [x9, #-16]", 0),
            ("str q0, [x9, #-16]", 0),
            ("stur q0, [x9, #-9]", W),
            ("ld1 {v0.16b}, [x9]", R),
            ("ldxr x1, [x9]", R),
            ("stxr w3, x1, [x9]", W),
            ("ldar x1, [x9]", R),
            ("stlr x1, [x9]", W),
            ("dc zva, x9", W),
            ("prfm pldl1keep, [x9]", 0),
            ("str x1, [x9, #8]", 0),
        ),
    ),
}
END = {"x86_64": "\n syscall", "aarch64": "\n svc #0"}


def assembled(isa: str, folder: Path) -> tuple[bytes, list[int]]:
    """The program, and where each access ends, as an address."""
    before, accesses = ACCESSES[isa]
    ends = []
    source = before
    for text, _ in accesses:
        source += f" {text}\n"
        ends.append(CODE + len(assemble(isa, source, folder)))
    return assemble(isa, source + END[isa], folder), ends


@pytest.mark.parametrize("isa", ACCESSES)
@pytest.mark.parametrize("kinds", [R, W, RW])
def test_each_instruction_that_accesses_it_stops_once(isa: str, kinds: int, tmp_path: Path) -> None:
    """Before the access on AArch64, behind the instruction on x86-64."""
    code, ends = assembled(isa, tmp_path)
    alone = Bare.load(isa, code)
    assert alone.run() is ExitReason.SYSCALL
    watched = Bare.load(isa, code)
    watched.core.set_watchpoints(
        [(WATCHED, 8, kinds, USER, USER, False, -1), (DATA + 0x200, 8, RW, USER, USER, False, -1)]
    )
    stops = []
    while (reason := watched.run(FOREVER)) is ExitReason.WATCHPOINT:
        assert watched.core.watchpoint_hits == 1
        stops.append(watched.core.pc + (4 if isa == "aarch64" else 0))
    assert reason is ExitReason.SYSCALL
    accesses = ACCESSES[isa][1]
    assert stops == [end for end, (_, access) in zip(ends, accesses, strict=True) if access & kinds]
    assert [watched.total(probe) for probe in Probe] == [alone.total(probe) for probe in Probe]
    assert watched.core.registers() == alone.core.registers()


@pytest.mark.parametrize(("first", "stops"), [(0, 0), (0x3E, 2), (0x46, 2), (0x100, 0)])
def test_a_rep_stops_behind_each_iteration_that_hits(first: int, stops: int, tmp_path: Path) -> None:
    """Four bytes stored one by one: from 0x3E on, the third and fourth are watched; from 0x46 on, the first two."""
    source = f"mov ${DATA + first}, %edi\n mov $4, %ecx\n nop\n rep stosb\n syscall"
    watched = Bare.load("x86_64", assemble("x86_64", source, tmp_path))
    watched.core.set_watchpoints([(WATCHED, 8, W, USER, USER, False, -1)])
    found = 0
    while (reason := watched.run()) is ExitReason.WATCHPOINT:
        found += 1
    assert (reason, found) == (ExitReason.SYSCALL, stops)
    assert watched.core.cycles == 5  # mov, mov, nop, rep stosb, syscall


def test_two_addresses_of_one_instruction(tmp_path: Path) -> None:
    """MOVS reads the first watched byte and writes the second: one stop, with both hits."""
    source = f"mov ${DATA}, %esi\n mov ${DATA + 0x800}, %edi\n movsb\n syscall"
    watched = Bare.load("x86_64", assemble("x86_64", source, tmp_path))
    rows = [
        (DATA, 1, RW, USER, USER, False, -1),
        (DATA + 1, 1, RW, USER, USER, False, -1),
        (DATA + 0x800, 1, W, USER, USER, False, -1),
    ]
    watched.core.set_watchpoints(rows)
    assert watched.run() is ExitReason.WATCHPOINT
    assert watched.core.watchpoint_hits == 0b101
    assert watched.run() is ExitReason.SYSCALL


@pytest.mark.parametrize("isa", ACCESSES)
def test_breakpoints_of_the_core(isa: str, tmp_path: Path) -> None:
    """They stop as those of an address space do; what has stopped passes, or is told to pass."""
    code = assemble(isa, "nop\n nop\n nop" + END[isa], tmp_path)
    second = CODE + (4 if isa == "aarch64" else 1)
    bare = Bare.load(isa, code)
    bare.core.set_breakpoints([second])
    assert bare.run() is ExitReason.BREAKPOINT
    assert bare.core.passed_breakpoint == bare.core.pc == second
    bare.core.pass_breakpoint(None)
    assert bare.run() is ExitReason.BREAKPOINT
    assert bare.run() is ExitReason.SYSCALL
    passing = Bare.load(isa, code)
    passing.core.set_breakpoints([CODE, second])
    passing.core.pass_breakpoint(CODE)
    assert passing.run() is ExitReason.BREAKPOINT
    assert passing.core.pc == second
