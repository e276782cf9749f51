"""On a core whose time is modelled: counters overflow at the exact instruction, and watching changes nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from emulator.core_file.core_file import load_core
from emulator.cpu import ExitReason, Level
from emulator.linux.machine import LinuxMachine
from emulator.linux.mm.mapping import PROT_EXEC
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import guest

CORES = {"aarch64": ("cortex-a55", "neoverse-n1"), "x86_64": ("redwood-cove", "skylake", "zen5")}
MACHINES = [(isa, core) for isa, cores in CORES.items() for core in cores]
# Page faults, system calls, data-dependent branches; changing code; REP; locks; code across pages
PROGRAMS = ("loop_1k", "memory_access", "self_modifying", "string_instructions", "page_crossing", "locked_operations")
WATCHED = {
    Probe.CYCLES: 97,
    Probe.L1D_REFILL_LOAD: 3,
    Probe.L1D_ACCESS_LOAD: 11,
    Probe.L1I_ACCESS: 17,
    Probe.BR_MISPREDICTED: 2,
    Probe.DTLB_REFILL_STORE: 1,
    Probe.UOPS_RETIRED: 101,
    Probe.INST_RETIRED: 53,
}


@dataclass(frozen=True)
class Run:
    """What one run of a program was: `overflows` are (instructions, cycles, the probe's total, address that fired)."""

    status: int
    totals: dict[str, int]
    cycles: int
    overflows: list[tuple[int, int, int, int]]
    breaks: int


def run(
    program: str,
    isa: str,
    core_name: str,
    watched: Probe | None = None,
    period: int = 0,
    until: int = 0,
    breaks: int = 0,
) -> Run:
    """Run to the end; `until`: stop and go on at every so many cycles, too, as a timer would; `breaks`: breakpoints at
    so many bytes from each other."""
    machine = LinuxMachine(MachineConfig(isa, core=load_core(core_name)))
    kernel, cpu = machine.kernel, machine.cpus[0]
    core = cpu.core
    core.follow_branches()
    path = str(guest(program, isa).path)
    bank = core.add_bank(1)
    machine.start(Program(path, (path,), stdout=-1))
    overflows: list[tuple[int, int, int, int]] = []
    if breaks:
        memory = kernel.lifecycle.first.mm
        for mapping in (mapping for mapping in memory.mappings if mapping.protection & PROT_EXEC):
            for address in range(mapping.start, mapping.end, breaks):
                memory.space.set_breakpoint(address)
    if watched is not None:
        bank.set_width(0, 48)
        bank.connect(0, 1 << watched)
        bank.filter(0, 1 << Level.USER)
        bank.write(0, 2**48 - period)
        bank.arm(1)
    broken = 0
    answers = {
        ExitReason.SYSCALL: kernel.syscalls.handle,
        ExitReason.REGISTER: kernel.handle_register,
        ExitReason.FAULT: kernel.handle_fault,
        ExitReason.EXCEPTION: kernel.handle_exception,
    }
    while (turn := kernel.scheduler.next_turn()) is not None:
        deadline = core.cycles + until if until else turn[1]
        reason = ExitReason(core.run(deadline))
        if reason is ExitReason.OVERFLOW:
            assert watched is not None
            assert bank.overflowed() == 1
            bank.clear_overflowed(1)
            fired = core.total(watched, Level.USER)
            overflows.append((core.total(Probe.INST_RETIRED), core.cycles, fired, core.last_retired_pc))
            bank.write(0, 2**48 - (period - fired % period))
        elif reason is ExitReason.BREAKPOINT:
            broken += 1
        elif reason is ExitReason.DEADLINE:
            assert core.cycles >= deadline
            overflows.append((core.total(Probe.INST_RETIRED), core.cycles, 0, core.pc))
        else:
            answers[reason](cpu)
    totals = {probe.name: core.total(probe, Level.USER) for probe in Probe}
    assert kernel.exit_status is not None
    return Run(kernel.exit_status, totals, core.cycles, overflows, broken)


@cache
def unwatched(program: str, isa: str, core_name: str) -> Run:
    return run(program, isa, core_name)


def programs(isa: str) -> list[str]:
    return [name for name in PROGRAMS if guest_exists(name, isa)]


def guest_exists(name: str, isa: str) -> bool:
    try:
        guest(name, isa)
    except StopIteration:
        return False
    return True


CASES = [(program, isa, core) for isa, core in MACHINES for program in programs(isa)]


@pytest.mark.parametrize(("program", "isa", "core"), CASES)
@pytest.mark.parametrize("watched", WATCHED, ids=lambda probe: probe.name)
def test_an_overflow_is_at_the_first_instruction_that_reaches_the_period(
    program: str, isa: str, core: str, watched: Probe
) -> None:
    """And nothing else is otherwise than where nobody watches."""
    period = WATCHED[watched]
    every = run(program, isa, core, watched, 1).overflows
    seen = run(program, isa, core, watched, period)
    plain = unwatched(program, isa, core)
    assert (seen.status, seen.totals, seen.cycles) == (plain.status, plain.totals, plain.cycles)
    # With period 1 every instruction that fires stops the core. Of these, the first at or after each multiple:
    expected, next_multiple = [], period
    for instructions, _, total, address in every:
        if total >= next_multiple:
            expected.append((instructions, total, address))
            next_multiple = total - total % period + period
    assert [(instructions, total, address) for instructions, _, total, address in seen.overflows] == expected


@pytest.mark.parametrize(("isa", "core"), MACHINES)
def test_pairs_fuse_wherever_overflows_cut_blocks(isa: str, core: str) -> None:
    """Of sort, 1,700 times: behind compares and moves, too, on cores that fuse these with what follows them."""
    plain, seen = run("sort", isa, core), run("sort", isa, core, Probe.INST_RETIRED, 2003)
    assert len(seen.overflows) > 1000
    assert (seen.totals, seen.cycles) == (plain.totals, plain.cycles)


# Behind how many of its inner loop's seven instructions an overflow cuts matrix (211 is prime), or the end of a slice,
# which comes with the last of those that retire in one cycle.
CUTS: dict[str, tuple[dict[str, Any], int]] = {
    "overflows": ({"watched": Probe.INST_RETIRED, "period": 211}, 7),
    "slices": ({"until": 211}, 3),
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_loop_that_is_cut_is_not_fetched_anew(cut: str) -> None:
    """Where loops are fetched once: neither slots nor cycles are others."""
    options, instructions = CUTS[cut]
    assert load_core("redwood-cove").tables["pipeline"]["loop_stream"]
    plain, seen = unwatched("matrix", "x86_64", "redwood-cove"), run("matrix", "x86_64", "redwood-cove", **options)
    behind = Counter(address for *_, address in seen.overflows)
    assert sum(often > 100 for often in behind.values()) == instructions
    assert (seen.totals, seen.cycles) == (plain.totals, plain.cycles)


# While the next overflow is far away, many blocks retire at once. Nearer than the first period it never
# is; the second one is a multiple of it.
PERIODS_NEAR_AND_FAR = {Probe.CYCLES: (997, 400 * 997), Probe.L1D_ACCESS_LOAD: (997, 15 * 997)}


@pytest.mark.parametrize(("isa", "core"), MACHINES)
@pytest.mark.parametrize("watched", PERIODS_NEAR_AND_FAR, ids=lambda probe: probe.name)
def test_an_overflow_that_is_far_away_is_found_as_exactly(isa: str, core: str, watched: Probe) -> None:
    near, far = PERIODS_NEAR_AND_FAR[watched]
    often = run("sort", isa, core, watched, near)
    seldom = run("sort", isa, core, watched, far)
    crossed = (each for each in often.overflows if each[2] % far < each[2] % near + 1)
    assert len(seldom.overflows) > 2
    assert seldom.overflows == list(crossed)
    assert (seldom.totals, seldom.cycles) == (often.totals, often.cycles)


@pytest.mark.parametrize(("program", "isa", "core"), CASES)
def test_a_deadline_in_cycles_is_met_at_the_first_instruction_after_it(program: str, isa: str, core: str) -> None:
    seen = run(program, isa, core, until=1000)
    plain = unwatched(program, isa, core)
    assert (seen.status, seen.totals, seen.cycles) == (plain.status, plain.totals, plain.cycles)


@pytest.mark.parametrize(("program", "isa", "core"), CASES)
def test_breakpoints_change_nothing(program: str, isa: str, core: str) -> None:
    """At the start of a block, within it, at a REP, after a fault, in code that changes: every third instruction."""
    seen = run(program, isa, core, breaks=12 if isa == "aarch64" else 3)
    plain = unwatched(program, isa, core)
    assert seen.breaks
    assert (seen.status, seen.totals, seen.cycles) == (plain.status, plain.totals, plain.cycles)


@pytest.mark.parametrize(("isa", "core"), MACHINES)
def test_breakpoints_change_no_overflow(isa: str, core: str) -> None:
    plain = run("memory_access", isa, core, Probe.CYCLES, 997)
    seen = run("memory_access", isa, core, Probe.CYCLES, 997, breaks=20)
    assert seen.breaks
    assert (seen.overflows, seen.totals, seen.cycles) == (plain.overflows, plain.totals, plain.cycles)
