"""Branch records have the last taken branches of the kinds that were asked for, as the path's recorder has them all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest

from emulator._native import BranchRecords, RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from guests import guest
from pmu.branch_records import BranchKind

CORES = {"aarch64": ("ideal", "cortex-a55", "neoverse-n1"), "x86_64": ("ideal", "skylake", "zen5")}
PROGRAMS = {"embedded_mix": "2", "recursion": "", "string_instructions": "", "self_modifying": "", "textbook": ""}
EVERY_KIND = sum(1 << kind for kind in BranchKind if kind)
CALLS = 1 << BranchKind.CALL | 1 << BranchKind.INDIRECT_CALL
Branch = tuple[int, int, int, int, bool, bool]  # from, to, cycle, kind, taken, mispredicted


@dataclass(frozen=True)
class Wanted:
    entries: int
    kinds: int
    as_stack: bool = False


WANTED = (
    *(Wanted(entries, EVERY_KIND) for entries in (1, 2, 16, 32, 5000)),
    *(Wanted(32, 1 << kind) for kind in BranchKind if kind),
    Wanted(16, CALLS),
)


def cases() -> list[tuple[str, str, str]]:
    """(program, ISA, core) of all programs that there are."""
    found = []
    for isa, cores in CORES.items():
        for program in PROGRAMS:
            with suppress(StopIteration):
                guest(program, isa)
                found += [(program, isa, core) for core in cores]
    return found


def run(program: str, isa: str, core_name: str, wanted: Sequence[Wanted]) -> tuple[list[Branch], list[BranchRecords]]:
    machine = LinuxMachine(MachineConfig(isa, core=load_core(core_name)))
    core = machine.cpus[0].core
    records = [BranchRecords(each.entries) for each in wanted]
    for unit, each in zip(records, wanted, strict=True):
        unit.record(each.kinds, each.as_stack)
        core.listen(unit)
    recorder = RetirementRecorder(keep=True)
    core.listen(recorder)
    path = str(guest(program, isa).path)
    arguments = (PROGRAMS[program],) if PROGRAMS[program] else ()
    machine.start(Program(path, (path, *arguments), stdout=-1))
    machine.run()
    return recorder.take_branches(), records


def entries_of(unit: BranchRecords) -> list[tuple[int, int, int, int, bool, bool]]:
    """Newest first, without those that are empty."""
    found = [unit.read((unit.top - age) % unit.size) for age in range(unit.size)]
    return [entry[:6] for entry in found if entry[3]]


def expected(branches: Sequence[Branch], wanted: Wanted) -> list[tuple[int, int, int, int, bool, bool]]:
    """As many as there are entries, newest first."""
    kept = []
    before: int | None = None
    for from_address, to_address, cycle, kind, taken, mispredicted in branches:
        if taken and wanted.kinds >> kind & 1:
            cycles = 0 if before is None else cycle - before
            kept.append((from_address, to_address, cycles, kind, mispredicted, before is not None))
            before = cycle
    return kept[: -wanted.entries - 1 : -1]


@pytest.mark.parametrize(("program", "isa", "core"), cases())
def test_records_are_the_last_branches(program: str, isa: str, core: str) -> None:
    branches, records = run(program, isa, core, WANTED)
    for wanted, unit in zip(WANTED, records, strict=True):
        assert entries_of(unit) == expected(branches, wanted), wanted
        recorded = sum(taken and wanted.kinds >> kind & 1 for _, _, _, kind, taken, _ in branches)
        assert unit.recorded == recorded
        assert unit.top == (recorded - 1) % unit.size
    assert len(entries_of(records[0])) == 1


@pytest.mark.parametrize(("program", "isa", "core"), cases())
def test_records_alone_are_the_same_as_beside_one_who_hears_all(program: str, isa: str, core: str) -> None:
    """Alone a unit hears only of the last branches of each stretch that the core learns of at once."""
    wanted = Wanted(32, EVERY_KIND)
    branches, _ = run(program, isa, core, ())
    machine = LinuxMachine(MachineConfig(isa, core=load_core(core)))
    unit = BranchRecords(wanted.entries)
    machine.cpus[0].core.listen(unit)
    path = str(guest(program, isa).path)
    arguments = (PROGRAMS[program],) if PROGRAMS[program] else ()
    machine.start(Program(path, (path, *arguments), stdout=-1))
    machine.run()
    assert entries_of(unit) == expected(branches, wanted)


@pytest.mark.parametrize("isa", CORES)
@pytest.mark.parametrize("entries", [4, 32])
def test_a_stack_has_the_calls_that_have_not_returned(isa: str, entries: int) -> None:
    """recursion: deeper than any stack, so that the oldest calls are lost. Of a stack that has been emptied the records
    are not told apart from one in which nothing was: a pop of nothing goes on around the ring, as on hardware."""
    wanted = Wanted(entries, CALLS, as_stack=True)
    branches, records = run("recursion", isa, CORES[isa][2], [wanted])
    # As the ring does it: entries that are there, and how far down they go.
    ring: list[tuple[int, int] | None] = [None] * entries
    top = entries - 1
    for from_address, to_address, _, kind, _, _ in branches:
        if kind == BranchKind.RETURN:
            ring[top] = None
            top = (top - 1) % entries
        elif CALLS >> kind & 1:
            top = (top + 1) % entries
            ring[top] = from_address, to_address
    found = [records[0].read(number)[:2] for number in range(entries)]
    assert found == [entry or (0, 0) for entry in ring]
    assert records[0].top == top
    assert sum(kind == BranchKind.RETURN for _, _, _, kind, _, _ in branches) > entries
