"""The core counts and stops exactly, whatever the code does to make that hard."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.cpu import ExceptionKind, ExitReason, TrapKind
from emulator.probes import Probe
from tests.unit.native.bare import (
    CODE,
    DATA,
    EXECUTE,
    READ,
    STACK_TOP,
    WRITE,
    Bare,
    assemble,
    reference_trace,
)

LOOP = {
    "aarch64": "mov x0, #1000\n1: subs x0, x0, #1\n b.ne 1b\n svc #0",
    "x86_64": "mov $1000, %ecx\n1: dec %ecx\n jne 1b\n syscall",
}
# Calls, loads, stores, unpredictable branches, blocks of many sizes.
MIXED = {
    "aarch64": """
        mov x0, #300
        mov x9, #0x700000
        mov w3, #12345
    1:  mov w4, #1103515245 & 0xffff
        madd w3, w3, w4, w4
        tbz w3, #7, 2f
        str w3, [x9, #8]
        ldp x5, x6, [x9]
        cbz x5, 2f
        add x6, x6, x5
    2:  bl 3f
        eor x7, x7, x3
        subs x0, x0, #1
        b.ne 1b
        svc #0
    3:  stp x29, x30, [sp, #-16]!
        and w8, w3, #3
    4:  subs w8, w8, #1
        b.pl 4b
        ldp x29, x30, [sp], #16
        ret""",
    "x86_64": """
        mov $300, %ecx
        mov $0x700000, %edi
        mov $12345, %eax
    1:  imul $1103515245, %eax, %eax
        add $12345, %eax
        test $0x80, %eax
        je 2f
        mov %eax, 8(%rdi)
        mov (%rdi), %rsi
        test %rsi, %rsi
        je 2f
        add %rsi, %rdx
    2:  call 3f
        xor %rax, %rbx
        pushf
        popf
        dec %ecx
        jne 1b
        syscall
    3:  push %rbp
        mov %eax, %r8d
        and $3, %r8d
    4:  dec %r8d
        jns 4b
        pop %rbp
        ret""",
}
STRINGS = """
        mov $0x700000, %edi
        mov $0x701000, %esi
        mov $50, %r8d
    1:  mov $37, %ecx
        rep movsb
        xor %ecx, %ecx
        rep stosq
        mov $5, %ecx
        mov $0x700800, %edi
        mov %ecx, (%rdi)
        repne scasb
        mov $0x700000, %edi
        mov $0x700000, %esi
        mov $9, %ecx
        repe cmpsb
        mov $1, %ecx
        rep lodsb
        movsb
        dec %r8d
        jne 1b
        syscall"""
# After which the engine leaves what it has translated, and which it does not step.
HINTS = {
    "aarch64": "mov x0, #50\n1: yield\n nop\n yield\n yield\n subs x0, x0, #1\n b.ne 1b\n svc #0",
    "x86_64": "mov $50, %ecx\n1: pause\n nop\n pause\n pause\n dec %ecx\n jne 1b\n syscall",
}


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_a_loop_counts_as_derived(isa: str, tmp_path: Path) -> None:
    bare = Bare.load(isa, assemble(isa, LOOP[isa], tmp_path))
    assert bare.run() is ExitReason.SYSCALL
    assert bare.total(Probe.INST_RETIRED) == 1 + 2 * 1000 + 1
    assert bare.total(Probe.BR_COND) == 1000
    assert bare.total(Probe.BR_COND_TAKEN) == 999
    assert bare.total(Probe.BR_RETIRED) == 1000 + (isa == "x86_64")  # SYSCALL is a branch, SVC is not
    assert bare.total(Probe.EXC_SVC) == 1


@pytest.mark.parametrize("period", [1, 2, 3, 7, 97, 997])
@pytest.mark.parametrize(("isa", "source"), [*MIXED.items(), *HINTS.items(), ("x86_64", STRINGS)])
def test_overflows_fall_on_the_instructions_that_a_code_hook_sees(
    isa: str, source: str, period: int, tmp_path: Path
) -> None:
    code = assemble(isa, source, tmp_path)
    trace = reference_trace(isa, code)
    bare = Bare.load(isa, code)
    samples = bare.sample(Probe.INST_RETIRED, period)
    assert bare.total(Probe.INST_RETIRED) == len(trace)
    assert len(samples) == len(trace) // period
    expected = [(trace[at], at) for at in range(period, len(trace), period)]
    assert samples[: len(expected)] == expected  # but for an overflow by the syscall itself


@pytest.mark.parametrize("probe", [Probe.BR_RETIRED, Probe.BR_COND_TAKEN, Probe.LOAD, Probe.STORE])
@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_an_overflow_of_any_probe_stops_behind_the_instruction_that_fires_it(
    isa: str, probe: Probe, tmp_path: Path
) -> None:
    code = assemble(isa, MIXED[isa], tmp_path)
    whole = Bare.load(isa, code)
    assert whole.run() is ExitReason.SYSCALL
    total = whole.total(probe)
    stepped = Bare.load(isa, code)  # period 1 finds every firing, by stepping alone
    places = stepped.sample(probe, 1)
    assert len(places) == total
    sampled = Bare.load(isa, code).sample(probe, 13)
    assert sampled == places[12::13]


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_sampling_leaves_counts_and_results_alone(isa: str, tmp_path: Path) -> None:
    code = assemble(isa, MIXED[isa], tmp_path)
    watched, alone = Bare.load(isa, code), Bare.load(isa, code)
    watched.sample(Probe.INST_RETIRED, 5)
    alone.run()
    assert [watched.total(probe) for probe in Probe] == [alone.total(probe) for probe in Probe]
    assert watched.core.registers() == alone.core.registers()
    assert watched.space.read(DATA, 0x10000) == alone.space.read(DATA, 0x10000)


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_deadlines_are_reached_to_the_instruction(isa: str, tmp_path: Path) -> None:
    code = assemble(isa, MIXED[isa], tmp_path)
    trace = reference_trace(isa, code)
    bare = Bare.load(isa, code)
    for deadline in (1, 2, 10, 11, 500, 1234):
        assert bare.run(deadline) is ExitReason.DEADLINE
        assert (bare.core.cycles, bare.core.pc) == (deadline, trace[deadline])


@pytest.mark.parametrize("prefix", ["f3", "f2", "67f2"])
def test_either_prefix_repeats(prefix: str) -> None:
    """REPNE MOVSD copies as REP does; capstone does not show that prefix."""
    bare = Bare.load("x86_64", bytes.fromhex(prefix + "a5" + "0f05"))
    for register in (4, 5):  # rsi, rdi
        bare.core.write_register(register, DATA)
    bare.core.write_register(2, 37)  # rcx
    assert bare.run() == ExitReason.SYSCALL
    assert [bare.total(probe) for probe in (Probe.INST_RETIRED, Probe.LOAD, Probe.STORE)] == [2, 37, 37]


def test_a_repeated_string_instruction_retires_once_and_accesses_memory_by_iteration(tmp_path: Path) -> None:
    bare = Bare.load("x86_64", assemble("x86_64", STRINGS, tmp_path))
    assert bare.run() is ExitReason.SYSCALL
    # 3 once; 17 an iteration of the loop; the syscall
    assert bare.total(Probe.INST_RETIRED) == 3 + 50 * 17 + 1
    # movsb 37; stosq 0 (rcx = 0); mov to memory; scasb finds zeros behind the 5 at once: 1st byte is 5, AL is 0 or not:
    # derived from the flags at run time, so only the bounds are pinned here; tests/counts pins each kind.
    loads, stores = bare.total(Probe.LOAD), bare.total(Probe.STORE)
    assert stores == 50 * (37 + 1 + 1)
    assert 50 * (37 + 1 + 9 + 1 + 1) <= loads <= 50 * (37 + 5 + 9 + 1 + 1)


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_a_fault_counts_exactly_what_retired_and_the_access_happens_once(isa: str, tmp_path: Path) -> None:
    source = {
        "aarch64": "mov x9, #0x900000\n mov x1, #7\n ldr x0, [x9, #16]\n add x0, x0, #1\n str x0, [x9, #16]\n svc #0",
        "x86_64": "mov $0x900000, %edi\n mov $7, %ecx\n incq 16(%rdi)\n incq 16(%rdi)\n syscall",
    }[isa]
    bare = Bare.load(isa, assemble(isa, source, tmp_path))
    assert bare.run() is ExitReason.FAULT
    assert bare.core.fault_address == 0x90_0010
    assert bare.core.fault_access == {"aarch64": READ, "x86_64": WRITE}[isa]
    assert bare.core.cycles == 2
    bare.space.map(0x90_0000, bare.memory.allocate(), 1, READ | WRITE)
    assert bare.run() is ExitReason.SYSCALL
    assert bare.core.cycles == {"aarch64": 6, "x86_64": 5}[isa]
    assert bare.space.read_u64(0x90_0010) == {"aarch64": 1, "x86_64": 2}[isa]
    assert bare.total(Probe.EXC_DABORT) == 1


@pytest.mark.parametrize(
    ("source", "access"),
    [
        ("addl $1, (%rdi)", WRITE),
        ("lock cmpxchg %rax, (%rdi)", WRITE),
        ("xchg %rax, (%rdi)", WRITE),
        ("btsq $3, (%rdi)", WRITE),
        ("add (%rdi), %rax", READ),
        ("cmpl $1, (%rdi)", READ),
        ("push (%rdi)", READ),  # writes, too, but elsewhere
        ("call *(%rdi)", READ),
        ("mov %rdi, %rsi\n lea -0x200000(%rdi), %rdi\n movsq", READ),
    ],
)
def test_a_read_modify_write_faults_as_a_write_at_once(source: str, access: int, tmp_path: Path) -> None:
    """As on hardware, so that a fresh page takes one page fault; the engine reads first."""
    bare = Bare.load("x86_64", assemble("x86_64", f"mov $0x900000, %edi\n {source}\n syscall", tmp_path))
    assert bare.run() is ExitReason.FAULT
    assert (bare.core.fault_address, bare.core.fault_access) == (0x90_0000, access)


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_a_jump_to_nowhere_faults_after_the_jump_has_retired(isa: str, tmp_path: Path) -> None:
    source = {"aarch64": "mov x9, #0x900000\n br x9", "x86_64": "mov $0x900000, %edi\n jmp *%rdi"}[isa]
    bare = Bare.load(isa, assemble(isa, source, tmp_path))
    assert bare.run() is ExitReason.FAULT
    assert (bare.core.pc, bare.core.fault_address, bare.core.fault_access) == (0x90_0000, 0x90_0000, EXECUTE)
    assert bare.core.cycles == 2


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_undefined_instructions_do_not_retire(isa: str, tmp_path: Path) -> None:
    source = {"aarch64": "nop\n udf #0", "x86_64": "nop\n ud2"}[isa]
    bare = Bare.load(isa, assemble(isa, source, tmp_path))
    assert bare.run() is ExitReason.EXCEPTION
    assert bare.core.exception == ExceptionKind.UNDEFINED
    assert bare.core.cycles == 1
    assert bare.core.pc == CODE + bare.code.index({"aarch64": b"\0\0\0\0", "x86_64": b"\x0f\x0b"}[isa])


@pytest.mark.parametrize("source", ["vaddss %xmm0, %xmm1, %xmm2", "rdrand %eax"])
def test_what_cpuid_does_not_offer_is_undefined(source: str, tmp_path: Path) -> None:
    bare = Bare.load("x86_64", assemble("x86_64", f"nop\n{source}\nsyscall", tmp_path))
    assert bare.run() is ExitReason.EXCEPTION
    assert (bare.core.exception, bare.core.pc) == (ExceptionKind.UNDEFINED, CODE + 1)


@pytest.mark.parametrize("source", ["hlt", "cli", "in $0x10, %al", "rdmsr", "mov %cr3, %rax"])
def test_privileged_instructions_are_refused(source: str, tmp_path: Path) -> None:
    bare = Bare.load("x86_64", assemble("x86_64", f"nop\n{source}\nsyscall", tmp_path))
    assert bare.run() is ExitReason.EXCEPTION
    assert (bare.core.exception, bare.core.pc) == (ExceptionKind.PRIVILEGED, CODE + 1)


@pytest.mark.parametrize(
    ("isa", "source", "kind"),
    [
        ("aarch64", "mrs x5, pmccntr_el0", TrapKind.MRS),
        ("aarch64", "msr pmcr_el0, x5", TrapKind.MSR),
        ("x86_64", "cpuid", TrapKind.CPUID),
        ("x86_64", "rdtsc", TrapKind.RDTSC),
        ("x86_64", "rdpmc", TrapKind.RDPMC),
        ("x86_64", "xgetbv", TrapKind.XGETBV),
    ],
)
def test_registers_are_answered_with_the_count_before_the_access(
    isa: str, source: str, kind: TrapKind, tmp_path: Path
) -> None:
    bare = Bare.load(
        isa, assemble(isa, f"nop\nnop\n{source}\nnop\n{'svc #0' if isa == 'aarch64' else 'syscall'}", tmp_path)
    )
    assert bare.run() is ExitReason.REGISTER
    assert bare.core.trapped[0] == kind
    assert bare.core.cycles == 2
    bare.core.complete_trapped()
    assert bare.core.cycles == 3
    assert bare.run() is ExitReason.SYSCALL
    assert bare.core.cycles == 5


@pytest.mark.parametrize("period", [0, 1, 3, 7])
def test_x86_code_that_rewrites_the_block_it_is_in(period: int, tmp_path: Path) -> None:
    # The store turns the `add $1` behind it into `add $7`, in the same block; done 3 times.
    source = """
        mov $3, %ecx
        lea target+2(%rip), %rdi
    1:  movb $1, (%rdi)
        nop
        movb $7, (%rdi)
        nop
    target: add $1, %rbx     # 48 83 c3 01: the immediate is at +3
        dec %ecx
        jne 1b
        syscall""".replace("target+2", "target+3")
    bare = Bare.load("x86_64", assemble("x86_64", source, tmp_path), READ | WRITE | EXECUTE)
    if period:
        bare.sample(Probe.INST_RETIRED, period)
    else:
        assert bare.run() is ExitReason.SYSCALL
    assert bare.core.read_register(1) == 3 * 7
    assert bare.core.cycles == 2 + 3 * 7 + 1
    assert bare.total(Probe.STORE) == 6


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_code_that_the_kernel_rewrites_is_decoded_anew(isa: str, tmp_path: Path) -> None:
    end = {"aarch64": "svc #0", "x86_64": "syscall"}[isa]
    store = {"aarch64": "str x0, [sp]", "x86_64": "mov %rax, (%rsp)"}[isa]
    nops = {"aarch64": "nop", "x86_64": "nop; nop; nop; nop"}[isa]
    first, second = (assemble(isa, f"{source}\n{end}", tmp_path) for source in (nops, store))
    bare = Bare.load(isa, first)
    assert bare.run() is ExitReason.SYSCALL
    assert bare.total(Probe.STORE) == 0
    assert len(first) == len(second)
    bare.space.write(CODE, second)
    bare.core.write_register({"aarch64": 32, "x86_64": 16}[isa], CODE)
    assert bare.run() is ExitReason.SYSCALL
    assert bare.total(Probe.STORE) == 1


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_code_that_was_read_before_it_ran_is_decoded_anew(isa: str, tmp_path: Path) -> None:
    """The engine need not ask for a page that it has read, so that the core would not hear that it executes there."""
    start, nop, store, end, pc = {
        "aarch64": ("mov x9, #0x700000; ldr x1, [x9]; br x9", "nop", "str x0, [sp]", "svc #0", 32),
        "x86_64": (
            "mov $0x700000, %edi; mov (%rdi), %rax; jmp *%rdi",
            ".fill 4, 1, 0x90",
            "mov %rax, (%rsp)",
            "syscall",
            16,
        ),
    }[isa]
    bare = Bare.load(isa, assemble(isa, start, tmp_path))
    bare.space.write(DATA, assemble(isa, f"{nop}\n{end}", tmp_path))
    bare.space.protect(DATA, 1, READ | EXECUTE)
    assert bare.run() is ExitReason.SYSCALL
    assert bare.total(Probe.STORE) == 0
    bare.space.write(DATA, assemble(isa, f"{store}\n{end}", tmp_path))
    bare.core.write_register(pc, CODE)
    assert bare.run() is ExitReason.SYSCALL
    assert bare.total(Probe.STORE) == 1


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_revoked_pages_fault_also_when_they_have_been_used(isa: str, tmp_path: Path) -> None:
    source = {
        "aarch64": "mov x9, #0x700000\n str x0, [x9]\n svc #0\n str x0, [x9]\n svc #0",
        "x86_64": "mov $0x700000, %edi\n mov %rax, (%rdi)\n syscall\n mov %rax, (%rdi)\n syscall",
    }[isa]
    bare = Bare.load(isa, assemble(isa, source, tmp_path))
    assert bare.run() is ExitReason.SYSCALL
    bare.space.protect(DATA, 1, READ)
    assert bare.run() is ExitReason.FAULT
    assert (bare.core.fault_address, bare.core.fault_access) == (DATA, WRITE)


def test_code_across_a_page_boundary_runs_and_counts(tmp_path: Path) -> None:
    # 1,365 three-byte instructions end at 4,095: the next one lies in both pages.
    source = "lea (%rax), %rax\n" * 1400 + "syscall"
    code = assemble("x86_64", source, tmp_path)
    bare = Bare.load("x86_64", code)
    samples = bare.sample(Probe.INST_RETIRED, 1000)
    assert samples == [(CODE + 3000, 1000)]
    assert bare.core.cycles == 1401


def test_single_steps_do_not_show_in_pushed_flags(tmp_path: Path) -> None:
    source = "pushf\n pop %rax\n pushf\n popf\n pushf\n pop %rbx\n syscall"
    bare = Bare.load("x86_64", assemble("x86_64", source, tmp_path))
    assert len(bare.sample(Probe.INST_RETIRED, 1)) == 7
    trap_flag = 1 << 8
    assert bare.core.read_register(0) & trap_flag == 0
    assert bare.core.read_register(1) & trap_flag == 0
    assert bare.core.read_register(11) & trap_flag == 0  # SYSCALL's copy of the flags
    assert bare.core.read_register(7) == STACK_TOP


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_frame_pointers_give_the_call_chain(isa: str, tmp_path: Path) -> None:
    source = {
        "aarch64": """
            mov x29, #0
            bl 1f
        back0: svc #0
        1:  stp x29, x30, [sp, #-16]!
            mov x29, sp
            bl 2f
        back1: ldp x29, x30, [sp], #16
            ret
        2:  stp x29, x30, [sp, #-16]!
            mov x29, sp
            svc #0""",
        "x86_64": """
            xor %ebp, %ebp
            call 1f
        back0: syscall
        1:  push %rbp
            mov %rsp, %rbp
            call 2f
        back1: pop %rbp
            ret
        2:  push %rbp
            mov %rsp, %rbp
            syscall""",
    }[isa]
    bare = Bare.load(isa, assemble(isa, source, tmp_path))
    assert bare.run() is ExitReason.SYSCALL
    expected = {"aarch64": [CODE + 6 * 4, CODE + 2 * 4], "x86_64": [CODE + 2 + 5 + 2 + 4 + 5, CODE + 2 + 5]}[isa]
    assert bare.core.frame_chain(127) == expected
    assert bare.core.frame_chain(1) == expected[:1]
