"""BRBE's records say of each branch what the core knows of it, by the filters of BRBFCR_EL1 and BRBCR_EL1."""

from __future__ import annotations

from pathlib import Path

import pytest

from c_programs import build
from counts.test_branch_records import PROGRAMS, Branch
from emulator._native import RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from guests import guest
from pmu.arm.branch_record_buffer import BranchRecordBuffer
from pmu.arm.brbe_registers import (
    BRBCR_EL1,
    BRBFCR_EL1,
    BranchType,
    BRBINFn_EL1,
    BRBSRCn_EL1,
    BRBTGTn_EL1,
    Valid,
    cycle_count,
)
from pmu.branch_records import BranchKind
from pmu.register import Register

CORES = ("ideal", "cortex-a55", "neoverse-n1")
TYPES = {
    BranchKind.CONDITIONAL: (BRBFCR_EL1.CONDDIR, BranchType.DIRECT_COND),
    BranchKind.DIRECT: (BRBFCR_EL1.DIRECT, BranchType.DIRECT_UNCOND),
    BranchKind.INDIRECT: (BRBFCR_EL1.INDIRECT, BranchType.INDIRECT),
    BranchKind.CALL: (BRBFCR_EL1.DIRCALL, BranchType.DIRECT_LINK),
    BranchKind.INDIRECT_CALL: (BRBFCR_EL1.INDCALL, BranchType.INDIRECT_LINK),
    BranchKind.RETURN: (BRBFCR_EL1.RTN, BranchType.RET),
}
ALL = BRBFCR_EL1.make(CONDDIR=1, DIRECT=1, INDIRECT=1, DIRCALL=1, INDCALL=1, RTN=1)
EVERYTHING = BRBCR_EL1.make(E0BRE=1, CC=1, MPRED=1)
UNKNOWN_CYCLES = BRBINFn_EL1.make(CCU=1)
Record = tuple[int, int, int]  # information, source, target

# Five jumps back, getppid(), five more: of each loop the last pass falls through.
TWO_LOOPS = """
void _start(void) {
    __asm__("mov x19, #6\\n1: subs x19, x19, #1\\n b.ne 1b\\n"
            "mov x8, #173\\n svc #0\\n"
            "mov x19, #6\\n2: subs x19, x19, #1\\n b.ne 2b\\n"
            "mov x0, #0\\n mov x8, #94\\n svc #0");
}
"""


def write(unit: BranchRecordBuffer, register: type[Register], value: int) -> None:
    access = unit.accesses()[register].write
    assert access is not None
    access(value, 0)


def read(unit: BranchRecordBuffer, register: type[Register], number: int) -> int:
    access = unit.accesses()[register].read
    assert access is not None
    return access(number)


def run(path: Path, argument: str, core_name: str, control: int, function: int) -> tuple[list[Branch], list[Record]]:
    """All of its branches, and the unit's records, the newest first."""
    machine = LinuxMachine(MachineConfig("aarch64", core=load_core(core_name)))
    core = machine.cpus[0].core
    unit = BranchRecordBuffer(core, 64)
    write(unit, BRBCR_EL1, control)
    write(unit, BRBFCR_EL1, function)
    recorder = RetirementRecorder(keep=True)
    core.listen(recorder)
    machine.start(Program(str(path), (str(path), *filter(None, [argument])), stdout=-1))
    machine.run()
    found: list[Record] = []
    for number in range(64):
        write(unit, BRBFCR_EL1, function | BRBFCR_EL1.make(BANK=number // 32, PAUSED=1))
        information = read(unit, BRBINFn_EL1, number % 32)
        if BRBINFn_EL1(information).VALID != Valid.FULL:
            break
        found.append((information, *(read(unit, bank, number % 32) for bank in (BRBSRCn_EL1, BRBTGTn_EL1))))
    return recorder.take_branches(), found


def expected(branches: list[Branch], kinds: set[BranchKind]) -> list[Record]:
    """As many as there are records, if the kernel is not entered between any two."""
    made: list[Record] = []
    before: int | None = None
    for source, target, cycle, kind, taken, mispredicted in branches:
        if not taken or kind not in kinds:
            continue
        cycles = UNKNOWN_CYCLES if before is None else cycle_count(cycle - before) << BRBINFn_EL1.CC.lo
        _, type_ = TYPES[BranchKind(kind)]
        made.append((BRBINFn_EL1.make(VALID=3, TYPE=type_, MPRED=mispredicted) | cycles, source, target))
        before = cycle
    return made[:-65:-1]


def untimed(made: list[Record], found: list[Record]) -> list[Record]:
    """Without the cycles of those that `found` has none of: the first behind each system call and fault."""
    unknown = [bool(information & UNKNOWN_CYCLES) for information, _, _ in found]
    assert sum(unknown) <= len(found) // 4 + 1
    return [
        (information & ~BRBINFn_EL1.CC.mask | UNKNOWN_CYCLES if is_unknown else information, *addresses)
        for (information, *addresses), is_unknown in zip(made, unknown, strict=True)
    ]  # type: ignore[misc]


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("program", ["recursion", "embedded_mix", "textbook"])
def test_records_are_the_last_branches(program: str, core: str) -> None:
    path = guest(program, "aarch64").path
    branches, found = run(path, PROGRAMS[program], core, EVERYTHING, ALL)
    assert len(found) == 64
    assert found == untimed(expected(branches, set(TYPES)), found)


@pytest.mark.parametrize("excludes", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_types(kind: BranchKind, excludes: bool) -> None:
    field, _ = TYPES[kind]
    path = guest("embedded_mix", "aarch64").path
    branches, found = run(path, "2", "neoverse-n1", EVERYTHING, field.mask | BRBFCR_EL1.make(EnI=int(excludes)))
    kinds = set(TYPES) - {kind} if excludes else {kind}
    assert found == untimed(expected(branches, kinds), found)
    assert found or not any(taken and each in kinds for *_, each, taken, _ in branches)


def test_what_is_not_asked_for_is_not_said() -> None:
    path = guest("embedded_mix", "aarch64").path
    branches, found = run(path, "2", "neoverse-n1", BRBCR_EL1.make(E0BRE=1), ALL)
    unknown = BRBINFn_EL1.MPRED.mask | BRBINFn_EL1.CC.mask
    told = [(information & ~unknown | UNKNOWN_CYCLES, *rest) for information, *rest in expected(branches, set(TYPES))]
    assert found == told
    assert any(branch[5] for branch in branches)  # mispredicted


@pytest.mark.parametrize("core", CORES)
def test_cycles_are_not_known_behind_the_kernel(core: str, tmp_path: Path) -> None:
    source, program = tmp_path / "loops.c", tmp_path / "loops"
    source.write_text(TWO_LOOPS, encoding="utf-8")
    build(source, "aarch64", program, "-nostdlib", "-ffreestanding")
    branches, found = run(program, "", core, EVERYTHING, ALL)
    assert sum(taken for *_, taken, _ in branches) == len(found) == 10
    assert [BRBINFn_EL1(information).CCU for information, _, _ in found] == [0, 0, 0, 0, 1] * 2
    assert len({source for _, source, _ in found}) == 2
