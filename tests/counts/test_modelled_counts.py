"""What a core's model must not change, and what must hold between its counts."""

from __future__ import annotations

import signal
from functools import cache
from pathlib import Path

import pytest

from emulator.core_file.core_file import load_core
from emulator.probes import Probe, Source
from end_to_end.random_guests import write_program
from end_to_end.watching import Observation, observe
from guests import guest
from tests.unit.native.bare import assemble

CORES = {
    "aarch64": ("cortex-a55", "cortex-a72", "neoverse-n1"),
    "x86_64": ("redwood-cove", "skylake", "skylake-fused", "zen4", "zen5"),
}
PROGRAMS = ("fresh_pages", "memory_access", "page_crossing", "sort")
CASES = [(program, isa, core) for isa, cores in CORES.items() for core in cores for program in PROGRAMS]
# Addresses that come through a vector register are found in the midst of the block: the engine calls before each of
# these, which are themselves calls. 2 + 100 * 9 + 4 instructions; the last words are 1.
CALLED_BEFORE = """
        mov     $0x403000, %ecx
        mov     $100, %ebx
1:      movq    %rcx, %xmm0
        movq    %xmm0, %rdi
        mov     %ebx, %edx
        mov     (%rcx), %eax
        lock cmpxchg %edx, (%rdi)
        clflush (%rdi)
        palignr $0, (%rdi), %mm1
        dec     %ebx
        jnz     1b
        movd    %mm1, %edi
        add     (%rcx), %edi
        mov     $60, %eax
        syscall
"""
ARCHITECTURAL = [probe.name for probe in Probe if probe.source is Source.INSTRUCTION]


@cache
def observed(program: str, isa: str, core: str) -> Observation:
    return observe((str(guest(program, isa).path),), core=core)


@pytest.mark.parametrize(("program", "isa", "core"), CASES)
def test_what_the_program_does_is_the_same_as_on_the_ideal_core(program: str, isa: str, core: str) -> None:
    seen, ideal = observed(program, isa, core), observed(program, isa, "ideal")
    assert (seen.wait_status, seen.stdout, seen.stderr) == (ideal.wait_status, ideal.stdout, ideal.stderr)
    assert [seen.totals[name] for name in ARCHITECTURAL] == [ideal.totals[name] for name in ARCHITECTURAL]


@pytest.mark.parametrize("core", CORES["x86_64"])
def test_calls_before_instructions_that_are_calls(core: str, tmp_path: Path) -> None:
    write_program(tmp_path / "program", "x86_64", assemble("x86_64", CALLED_BEFORE, tmp_path))
    seen = observe((str(tmp_path / "program"),), core=core)
    assert (seen.wait_status >> 8, seen.totals["INST_RETIRED"]) == (2, 2 + 100 * 9 + 4)


@pytest.mark.parametrize(("program", "isa", "core"), CASES)
def test_every_slot_of_user_mode_is_used_or_lost(program: str, isa: str, core: str) -> None:
    totals = observed(program, isa, core).totals
    pipeline = load_core(core).tables["pipeline"]
    width = pipeline.get("dispatch_width") or pipeline["issue_width"]
    used_or_lost = ("UOPS_RETIRED", "SLOTS_FRONTEND", "SLOTS_BACKEND", "SLOTS_BAD_SPECULATION")
    assert sum(totals[name] for name in used_or_lost) == width * totals["CYCLES"]
    assert totals["STALL_FRONTEND"] + totals["STALL_BACKEND"] <= totals["CYCLES"]


@pytest.mark.parametrize(("program", "isa", "core"), CASES)
def test_nothing_misses_more_often_than_it_is_asked(program: str, isa: str, core: str) -> None:
    totals = observed(program, isa, core).totals
    for name, count in totals.items():
        if "_REFILL" in name:
            assert count <= totals[name.replace("_REFILL", "_ACCESS")], name
    for kind in ("COND", "INDIRECT", "RETURN"):
        assert totals[f"BR_{kind}_MISPREDICTED"] <= totals[f"BR_{kind}"]
    assert totals["BR_MISPREDICTED"] == sum(
        totals[f"BR_{kind}_MISPREDICTED"] for kind in ("COND", "INDIRECT", "RETURN")
    )


# A loop of three: its counter is an index by way of a float, so that the address is known only in the middle of the
# block. For that the engine has to translate the block again, when it first comes there by the taken branch.
INDICES = {
    "aarch64": "010086d20108a0f2620080d2030580d24000629e0400789e257864f8420400f181ffff54000080d2a80b80d2010000d4",
    "x86_64": "bb00304000b903000000f20f2ac1f20f2cc0488b34c3ffc975f031ffb83c0000000f05",
}


@pytest.mark.parametrize("isa", CORES)
def test_a_branch_to_a_block_that_is_translated_again_is_taken_once(isa: str, tmp_path: Path) -> None:
    program = write_program(tmp_path / "indices", isa, bytes.fromhex(INDICES[isa]))
    for core in ("ideal", *CORES[isa]):
        assert observe(program, core=core).totals["BR_COND_TAKEN"] == 2, core


# mov ebx, DATA; xor edx, edx; mov eax, 40; xor ecx, ecx; div ecx; cvttsd2si eax, xmm0; mov rsi, [rbx + rax * 8]; jmp .
DIVIDES_BY_ZERO = "bb0030400031d2b82800000031c9f7f1f20f2cc0488b34c3ebfe"


@pytest.mark.parametrize("core", CORES["x86_64"])
def test_an_exception_before_an_address_is_known(core: str, tmp_path: Path) -> None:
    program = write_program(tmp_path / "divides", "x86_64", bytes.fromhex(DIVIDES_BY_ZERO))
    seen = observe(program, core=core)
    assert seen.wait_status & 0x7F == signal.SIGFPE
    assert seen.totals["INST_RETIRED"] == seen.totals["UOPS_RETIRED"] == 4  # those before the division
