"""More events than counters: who counts when, in Linux's order (kernel/events/core.c), and what scaling makes of it.

One instruction takes 1 ns here, and groups take turns each TICK_NS (perf_event_mux_interval_ms: 4 ms).
"""

from __future__ import annotations

import pytest

from emulator.linux.structures import TICK_NS
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, SoftwareId
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from pmu.generic_events import HardwareId
from unit.perf_events.fake_machine import FakeMachine, FakeTask

INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.INSTRUCTIONS, exclude_kernel=1)
DUMMY = PerfEventAttr(type=PerfType.SOFTWARE, config=SoftwareId.DUMMY)


def active(events: list[PerfEvent]) -> list[int]:
    return [number for number, event in enumerate(events) if event.state == EventState.ACTIVE]


def turns(machine: FakeMachine, events: list[PerfEvent], number: int) -> list[list[int]]:
    """Who is on now, and after each tick."""
    seen = [active(events)]
    for _ in range(number):
        machine.run(TICK_NS)
        seen.append(active(events))
    return seen


def test_the_first_that_is_on_goes_behind_all_others():
    machine = FakeMachine("aarch64", counters=2)
    events = [machine.open(INSTRUCTIONS) for _ in range(3)]
    # 0 1 2; 1 2 0; 2 0 1; 0 1 2
    assert turns(machine, events, 3) == [[0, 1], [1, 2], [0, 2], [0, 1]]
    assert [event.read_values()[:3] for event in events] == [
        (2 * TICK_NS, 3 * TICK_NS, 2 * TICK_NS)
    ] * 3  # value, enabled, running: each counted in two turns of three


def test_a_group_goes_on_whole_and_nobody_goes_past_it():
    """Three counters: while the group of three waits, what is behind it waits, too, though a counter is free."""
    machine = FakeMachine("aarch64", counters=3)
    single = machine.open(INSTRUCTIONS)
    leader = machine.open(INSTRUCTIONS)
    siblings = [machine.open(INSTRUCTIONS, group=leader) for _ in range(2)]
    last = machine.open(INSTRUCTIONS)
    # order: single, group, last; group, last, single; last, single, group; single, group, last
    assert turns(machine, [single, leader, *siblings, last], 3) == [[0], [1, 2, 3], [0, 4], [0]]


@pytest.mark.parametrize(("isa", "counters"), [("aarch64", 6), ("x86_64", 4)])
def test_twenty_events_scale_to_the_truth_and_a_pinned_one_is_exact(isa, counters):
    """Of a program that does the same all the time; x86-64 has a fixed counter for instructions besides its four."""
    machine = FakeMachine(isa, counters=counters)
    pinned = machine.open(INSTRUCTIONS.copy(pinned=1))
    events = [machine.open(INSTRUCTIONS) for _ in range(20)]
    passed = 100 * TICK_NS + 12345
    machine.run(passed)
    assert pinned.read_values()[:3] == (passed, passed, passed)
    for event in events:
        value, enabled, running = event.read_values()[:3]
        assert enabled == passed
        assert 0 < running < passed
        assert value * enabled / running == pytest.approx(passed, rel=0.01)
    in_turns = sum(event.read_values().running for event in events)
    assert in_turns == passed * (counters if isa == "x86_64" else counters - 1)  # no counter is idle


def test_who_needs_no_counter_counts_all_the_time():
    machine = FakeMachine("aarch64", counters=1)
    hardware = [machine.open(INSTRUCTIONS) for _ in range(2)]
    software = machine.open(DUMMY)
    machine.run(6 * TICK_NS)
    assert software.read_values().running == software.read_values().enabled == 6 * TICK_NS
    assert [event.read_values().running for event in hardware] == [3 * TICK_NS] * 2


def test_turns_fall_on_multiples_of_the_interval_and_end_when_all_fit():
    machine = FakeMachine("aarch64", counters=1)
    machine.run(1000)
    events = [machine.open(INSTRUCTIONS) for _ in range(2)]
    machine.run(TICK_NS - 1001)
    assert active(events) == [0]
    machine.run(1)
    assert active(events) == [1]
    events[0].close()
    machine.run(10 * TICK_NS)
    assert events[1].read_values()[:3] == (10 * TICK_NS, 11 * TICK_NS - 1000, 10 * TICK_NS)
    assert machine.timers.next_cycle() > machine.cpu.core.cycles + 100 * TICK_NS  # nobody has a timer


def test_another_interval():
    machine = FakeMachine("aarch64", counters=1)
    machine.drivers[0].mux_interval_ns = 1_000_000
    events = [machine.open(INSTRUCTIONS) for _ in range(2)]
    machine.run(1_000_000)
    assert active(events) == [1]
    machine.run(1_000_000)
    assert active(events) == [0]


def test_the_cpus_own_events_and_its_tasks_take_turns_apart():
    """Two counters, two events of the CPU and two of its task: the CPU's go first, and turn among themselves."""
    machine = FakeMachine("aarch64", counters=2)
    own = [machine.open(INSTRUCTIONS, task=None, cpu=0) for _ in range(3)]
    of_task = [machine.open(INSTRUCTIONS) for _ in range(2)]
    assert turns(machine, own + of_task, 3) == [[0, 1], [1, 2], [0, 2], [0, 1]]
    own[0].close()
    own[1].close()
    machine.run(TICK_NS)
    # 2 has a counter, and one of the task's the other: of those the first that waited went behind at each of four ticks
    assert active(own + of_task) == [2, 3]
    machine.switch_to(FakeTask(1001, machine.cpu))
    assert active(own + of_task) == [2]


def test_an_exclusive_group_has_its_turn_alone():
    machine = FakeMachine("aarch64", counters=3)
    first, alone, last = (machine.open(INSTRUCTIONS.copy(exclusive=number == 1)) for number in range(3))
    # first; alone cannot go beside it, and nobody goes past; alone; last, first
    assert turns(machine, [first, alone, last], 3) == [[0], [1], [0, 2], [0]]


def test_an_order_that_comes_between_turns_keeps_the_order():
    machine = FakeMachine("aarch64", counters=2)
    events = [machine.open(INSTRUCTIONS) for _ in range(4)]
    machine.run(TICK_NS)
    assert active(events) == [1, 2]  # 1 2 3 0
    events[1].disable()
    assert active(events) == [2]  # its counter waits for the next turn
    events[1].enable()
    assert active(events) == [1, 2]
    events[2].disable()
    machine.run(TICK_NS)
    assert active(events) == [0, 3]  # 2 3 0 1


def test_a_software_group_that_gets_a_hardware_event_is_installed_anew():
    """move_group of perf_event_open: behind all others, and each event on or off as its attr says."""
    machine = FakeMachine("aarch64", counters=1)
    leader = machine.open(DUMMY.copy(disabled=1))
    leader.enable()
    other = machine.open(INSTRUCTIONS)
    sibling = machine.open(INSTRUCTIONS, group=leader)
    assert (leader.state, sibling.state) == (EventState.OFF, EventState.INACTIVE)
    leader.enable()
    assert active([other, leader, sibling]) == [0]
    machine.run(TICK_NS)
    assert active([other, leader, sibling]) == [1, 2]


def test_the_copies_of_a_group_that_a_software_event_leads_are_on_as_those_of_the_parent_are():
    """Although their attr says `disabled`: that was before the parent was switched on."""
    machine = FakeMachine("aarch64", counters=1)
    leader = machine.open(DUMMY.copy(disabled=1, inherit=1))
    sibling = machine.open(INSTRUCTIONS.copy(inherit=1), group=leader)
    machine.open(DUMMY)  # of the parent alone: so the two contexts are not exchanged at the switch
    leader.enable()
    child = FakeTask(2000, machine.cpu)
    machine.tracepoints.task_fork.fire(machine.task, child)
    machine.run(100)
    machine.switch_to(child)
    machine.run(10)
    assert sibling.read_values().value == 110
