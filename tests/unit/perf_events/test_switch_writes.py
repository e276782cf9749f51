"""What a switch writes to the PMU's registers: as PMUs let it, once for several counters, and no more than changes.

Counters themselves are left out: both tasks have had theirs, which are written past `write`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType
from unit.perf_events.fake_machine import FakeMachine, FakeTask

BRANCHES = {"aarch64": 0x21, "x86_64": 0xC4}  # BR_RETIRED; BR_INST_RETIRED.ALL_BRANCHES: no fixed counter has it
OTHER = {"aarch64": 0x06, "x86_64": 0x2C4}  # LD_RETIRED; BR_INST_RETIRED.NEAR_CALL


def raw(config: int) -> PerfEventAttr:
    return PerfEventAttr(type=PerfType.RAW, config=config, exclude_kernel=1)


def written_by_a_switch(isa: str, events: int, other: bool) -> Counter[str]:
    """Registers by name, where two tasks have so many events each, both of which have been on before.

    `other`: the second's count something else.
    """
    machine = FakeMachine(isa)
    first, second = machine.task, FakeTask(2000, machine.cpu)
    opened = []
    for task, config in ((first, BRANCHES[isa]), (second, (OTHER if other else BRANCHES)[isa])):
        opened += [machine.open(raw(config), task=task) for _ in range(events)]
    for task in (second, first):
        machine.switch_to(task)
    written: Counter[str] = Counter()
    write = machine.pmu.write

    def noted(register, value, index=0):
        written[register.__name__] += 1
        write(register, value, index)

    machine.pmu.write = noted
    machine.switch_to(second)
    machine.pmu.write = write
    machine.run(10)
    assert set(machine.drivers[0].events_on(0).values()) == set(opened[events:])
    return written


@pytest.mark.parametrize("events", [1, 4])
def test_aarch64_masks_are_written_once(events):
    """Off: disabled, no interrupt, no overflow left; on: with interrupt, enabled. PMEVTYPER only where it changes."""
    masks = ("PMCNTENCLR_EL0", "PMINTENCLR_EL1", "PMOVSCLR_EL0", "PMINTENSET_EL1", "PMCNTENSET_EL0")
    expected = {**dict.fromkeys(masks, 1), "PMEVTYPERn_EL0": events}
    assert written_by_a_switch("aarch64", events, other=True) == expected


@pytest.mark.parametrize("events", [1, 4])
def test_x86_64_global_control_is_written_once(events):
    """Each counter's select register: without EN as its event goes, with it as the next one comes."""
    written = written_by_a_switch("x86_64", events, other=True)
    assert written == {"IA32_PERFEVTSELx": 2 * events, "IA32_PERF_GLOBAL_CTRL": 1}


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_counters_that_count_on_the_same_are_not_controlled(isa):
    assert written_by_a_switch(isa, 4, other=False) == {}
