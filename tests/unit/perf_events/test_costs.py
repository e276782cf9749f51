"""What n events cost grows as n does: told by the calls that Python makes, which no host's load changes."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, ReadFormat, SoftwareId
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from pmu.generic_events import HardwareId
from unit.perf_events.fake_machine import FakeMachine, FakeTask

INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.INSTRUCTIONS, exclude_kernel=1)
SWITCHES = PerfEventAttr(type=PerfType.SOFTWARE, config=SoftwareId.CONTEXT_SWITCHES)
MIGRATIONS = PerfEventAttr(type=PerfType.SOFTWARE, config=SoftwareId.CPU_MIGRATIONS)
FEW, MANY = 100, 400


def calls(work: Callable[[], object]) -> int:
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made


def opened(machine: FakeMachine, events: int, attr: PerfEventAttr, leader: PerfEvent | None = None) -> list[PerfEvent]:
    return [machine.open(attr, group=leader) for _ in range(events)]


def group_of_software(machine: FakeMachine, events: int) -> None:
    opened(machine, events, SWITCHES, machine.open(SWITCHES))


def group_led_by_hardware(machine: FakeMachine, events: int) -> None:
    opened(machine, events, SWITCHES, machine.open(INSTRUCTIONS))


def group_through_its_life(machine: FakeMachine, events: int) -> None:
    leader = machine.open(SWITCHES.copy(disabled=1, read_format=ReadFormat.GROUP))
    siblings = opened(machine, events, SWITCHES.copy(disabled=1), leader)
    for event in (leader, *siblings):
        event.enable()
    leader.disable(whole_group=True)
    leader.enable(whole_group=True)
    leader.read()
    for event in (leader, *siblings):
        event.close()


def more_than_there_are_counters(machine: FakeMachine, events: int) -> None:
    made = opened(machine, events, INSTRUCTIONS.copy(disabled=1))
    for order in (PerfEvent.enable, PerfEvent.disable, PerfEvent.enable, PerfEvent.close):
        for event in made:
            order(event)


def hardware_beside_software(machine: FakeMachine, events: int) -> None:
    """Each finds the counters taken, by one that may stay."""
    machine.open(INSTRUCTIONS)
    opened(machine, events, SWITCHES)
    opened(machine, events, INSTRUCTIONS)


def inherited_by_children(machine: FakeMachine, events: int) -> None:
    opened(machine, events, SWITCHES.copy(inherit=1), machine.open(SWITCHES.copy(inherit=1)))
    for tid in range(1001, 1004):
        child = FakeTask(tid, machine.cpu, ppid=1000)
        machine.tracepoints.task_fork.fire(machine.task, child)
        child.exit_code = 0
        machine.tracepoints.task_exit.fire(child)


def one_child_each(machine: FakeMachine, events: int) -> None:
    """An event with so many children, which end in the order in which they came."""
    machine.open(SWITCHES.copy(inherit=1))
    children = [FakeTask(1001 + number, machine.cpu, ppid=1000) for number in range(events)]
    for child in children:
        machine.tracepoints.task_fork.fire(machine.task, child)
    for child in children:
        child.exit_code = 0
        machine.tracepoints.task_exit.fire(child)


@pytest.mark.parametrize(
    "work",
    [
        group_of_software,
        group_led_by_hardware,
        group_through_its_life,
        more_than_there_are_counters,
        hardware_beside_software,
        inherited_by_children,
        one_child_each,
    ],
)
def test_costs_are_linear(work: Callable[[FakeMachine, int], None]) -> None:
    few, many = (calls(lambda number=number: work(FakeMachine(counters=2), number)) for number in (FEW, MANY))
    assert many < few * (MANY // FEW) * 1.1


@pytest.mark.parametrize("attr", [MIGRATIONS, INSTRUCTIONS], ids=["software", "hardware"])
def test_a_switch_costs_what_the_task_has_open(attr: PerfEventAttr) -> None:
    def switches(of_the_cpu: int) -> int:
        machine = FakeMachine(counters=2)
        for _ in range(of_the_cpu):
            machine.open(attr, task=None, cpu=0)
        assert machine.open(SWITCHES).state == EventState.ACTIVE
        other = FakeTask(1001, machine.cpu)

        def there_and_back() -> None:
            machine.switch_to(other)
            machine.switch_to(machine.task)

        return calls(there_and_back)

    assert switches(MANY) <= switches(FEW) + 5
