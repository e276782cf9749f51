"""Totals and counters know the privilege level at which something retired, when somebody says that it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator._native import AddressSpace, Core, PhysicalMemory
from emulator.core_file.core_file import load_core
from emulator.cpu import ExitReason, Level
from emulator.probes import Probe
from guests import ISAS
from tests.unit.native.bare import CODE, DATA, DATA_PAGES, EXECUTE, FOREVER, PC, READ, WRITE, Bare, assemble

# One instruction, then 1000 times two of which the second is a branch, taken but for the last time; the system call.
LOOP = {
    "aarch64": "mov x0, #1000\n1: subs x0, x0, #1\n b.ne 1b\n svc #0",
    "x86_64": "mov $1000, %ecx\n1: dec %ecx\n jne 1b\n syscall",
}
EITHER = 1 << Level.USER | 1 << Level.KERNEL


def loop(isa: str, folder: Path) -> Bare:
    return Bare.load(isa, assemble(isa, LOOP[isa], folder))


def by_level(core: Core, probe: Probe) -> tuple[int, int]:
    return core.total(probe, Level.USER), core.total(probe, Level.KERNEL)


@pytest.mark.parametrize("isa", ISAS)
def test_without_a_change_all_is_in_user_mode(isa: str, tmp_path: Path) -> None:
    bare = loop(isa, tmp_path)
    assert bare.run() is ExitReason.SYSCALL
    assert by_level(bare.core, Probe.INST_RETIRED) == (2002, 0)
    assert bare.core.level == Level.USER


@pytest.mark.parametrize("isa", ISAS)
def test_what_retires_belongs_to_the_level_at_which_it_does(isa: str, tmp_path: Path) -> None:
    bare = loop(isa, tmp_path)
    core = bare.core
    for until, level in ((101, Level.KERNEL), (301, Level.USER), (401, Level.KERNEL)):
        assert bare.run(until) is ExitReason.DEADLINE
        core.set_level(level)
    assert bare.run() is ExitReason.SYSCALL
    # In user mode 1 + 2 * 50, then 2 * 50; in kernel mode 2 * 100 and the rest.
    assert by_level(core, Probe.INST_RETIRED) == (201, 1801)
    assert by_level(core, Probe.BR_COND) == (100, 900)
    assert by_level(core, Probe.BR_COND_TAKEN) == (100, 899)
    assert by_level(core, Probe.CYCLES) == by_level(core, Probe.INST_RETIRED)


@pytest.mark.parametrize("isa", ISAS)
def test_counters_hear_of_their_levels_alone_and_stop_the_core_exactly(isa: str, tmp_path: Path) -> None:
    bare = loop(isa, tmp_path)
    core = bare.core
    bank = core.add_bank(3)
    for counter, levels in enumerate((EITHER, 1 << Level.USER, 1 << Level.KERNEL)):
        bank.connect(counter, 1 << Probe.BR_COND)
        bank.filter(counter, levels)
    bank.set_width(2, 32)
    bank.write(2, (1 << 32) - 30)
    bank.arm(1 << 2)
    assert bare.run(101) is ExitReason.DEADLINE  # 50 branches
    core.set_level(Level.KERNEL)
    assert bare.run(141) is ExitReason.DEADLINE  # 20
    core.set_level(Level.USER)
    assert bare.run(1141) is ExitReason.DEADLINE  # 500
    core.set_level(Level.KERNEL)
    assert bare.run() is ExitReason.OVERFLOW  # behind the 10 that are left
    assert core.cycles == 1161
    assert (bank.read(0), bank.read(1), bank.read(2), bank.overflowed()) == (580, 550, 0, 1 << 2)


def test_a_filter_can_change_at_any_time(tmp_path: Path) -> None:
    bare = loop("aarch64", tmp_path)
    bank = bare.core.add_bank(1)
    bank.connect(0, 1 << Probe.INST_RETIRED)
    bare.run(11)
    bank.filter(0, 1 << Level.KERNEL)
    bare.run(31)
    assert bank.read(0) == 11
    bank.filter(0, 0)
    bare.core.set_level(Level.KERNEL)
    bare.run(41)
    assert bank.read(0) == 11
    bank.filter(0, EITHER)
    bare.run(51)
    assert bank.read(0) == 21
    with pytest.raises(ValueError, match="there is no such privilege level"):
        bank.filter(0, 4)


@pytest.mark.parametrize(("isa", "name"), [("aarch64", "cortex-a55"), ("x86_64", "zen5")])
def test_what_is_modelled_belongs_to_a_level_and_no_time_passes_between_them(
    isa: str, name: str, tmp_path: Path
) -> None:
    def run(*changes: Level) -> Core:
        memory = PhysicalMemory(64 << 20)
        space = AddressSpace(memory)
        frame = memory.allocate()
        code = assemble(isa, LOOP[isa], tmp_path)
        memory.view(frame)[: len(code)] = code
        space.map(CODE, frame, 1, READ | EXECUTE)
        space.map(DATA, memory.allocate(DATA_PAGES), DATA_PAGES, READ | WRITE)
        core = Core(isa, memory, model=load_core(name).model)
        core.follow_branches()
        core.set_address_space(space)
        core.write_register(PC[isa], CODE)
        for level in changes:
            assert core.run(core.cycles + 300) == ExitReason.DEADLINE
            core.set_level(level)
        assert core.run(FOREVER) == ExitReason.SYSCALL
        return core

    plain, switched = run(), run(Level.KERNEL, Level.USER)
    for probe in Probe:
        assert sum(by_level(switched, probe)) == switched.total(probe) == plain.total(probe), probe.name
    assert 295 < switched.total(Probe.CYCLES, Level.KERNEL) < 320
    assert 0 < switched.total(Probe.UOPS_RETIRED, Level.KERNEL) < plain.total(Probe.UOPS_RETIRED)


@pytest.mark.parametrize("isa", ISAS)
def test_a_kernel_that_works_takes_cycles_at_its_level_and_makes_counters_there_wrap(isa: str, tmp_path: Path) -> None:
    """As the modelled Linux: it executes nothing. On a core without models an instruction is a cycle."""
    bare = loop(isa, tmp_path)
    core = bare.core
    bank = core.add_bank(3)
    for counter, levels in enumerate((EITHER, 1 << Level.USER, 1 << Level.KERNEL)):
        bank.connect(counter, 1 << Probe.CYCLES)
        bank.filter(counter, levels)
    bank.set_width(2, 32)
    bank.write(2, (1 << 32) - 80)
    bank.arm(1 << 2)
    bare.run(101)
    assert not core.work(70)
    assert bare.run(core.cycles + 50) is ExitReason.DEADLINE
    assert core.work(12)
    assert [bank.read(counter) for counter in range(3)] == [101 + 70 + 50 + 12, 151, 70 + 12 - 80]
    assert by_level(core, Probe.CYCLES) == (151, 82)
    assert core.total(Probe.CYCLES) == core.cycles == 233
    assert by_level(core, Probe.INST_RETIRED) == (151, 0)
