"""Groups, and what read(2) returns."""

import struct

import pytest

from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.structures import TICK_NS
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, ReadFormat, SoftwareId
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.event_state import EventState
from pmu.generic_events import HardwareId
from unit.perf_events.fake_machine import FakeMachine, FakeTask

INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.INSTRUCTIONS, exclude_kernel=1)
GROUP = (
    ReadFormat.GROUP | ReadFormat.TOTAL_TIME_ENABLED | ReadFormat.TOTAL_TIME_RUNNING | ReadFormat.ID | ReadFormat.LOST
)
TASK_CLOCK = PerfEventAttr(type=PerfType.SOFTWARE, config=SoftwareId.TASK_CLOCK)


def test_a_group_reads_as_nr_times_and_a_row_per_event():
    machine = FakeMachine()
    leader = machine.open(INSTRUCTIONS.copy(read_format=GROUP))
    machine.run(10)
    sibling = machine.open(INSTRUCTIONS, group=leader)
    clock = machine.open(TASK_CLOCK, group=leader)
    machine.run(90)
    # nr, enabled, running; then value, id, lost of each
    expected = (3, 100, 100, 100, leader.id, 0, 90, sibling.id, 0, 90, clock.id, 0)
    assert leader.read() == struct.pack("<12Q", *expected)


@pytest.mark.parametrize(
    ("read_format", "words"),
    [
        (0, ["value"]),
        (ReadFormat.ID, ["value", "id"]),
        (ReadFormat.TOTAL_TIME_RUNNING, ["value", "running"]),
        (ReadFormat.TOTAL_TIME_ENABLED | ReadFormat.TOTAL_TIME_RUNNING, ["value", "enabled", "running"]),
        (GROUP & ~ReadFormat.GROUP, ["value", "enabled", "running", "id", "lost"]),
    ],
)
def test_one_event_reads_in_the_order_of_the_abi(read_format, words):
    machine = FakeMachine()
    event = machine.open(INSTRUCTIONS.copy(read_format=read_format, disabled=1))
    event.enable()
    machine.run(33)
    known = {"value": 33, "enabled": 33, "running": 33, "id": event.id, "lost": 0}
    assert event.read() == struct.pack(f"<{len(words)}Q", *(known[word] for word in words))


def test_all_of_a_group_or_nothing():
    machine = FakeMachine("aarch64", counters=2)
    leader = machine.open(INSTRUCTIONS.copy(disabled=1))
    siblings = [machine.open(INSTRUCTIONS, group=leader)]
    lone = machine.open(INSTRUCTIONS)
    leader.enable()
    machine.run(10)
    # the lone one was on a counter; the group, older, needs both
    assert [event.count() for event in (leader, *siblings, lone)] == [10, 10, 0]


def test_a_group_that_no_pmu_could_hold_is_refused_at_open():
    machine = FakeMachine("aarch64", counters=2)
    leader = machine.open(INSTRUCTIONS)
    machine.open(INSTRUCTIONS, group=leader)
    with pytest.raises(LinuxError) as error:
        machine.open(INSTRUCTIONS, group=leader)
    assert error.value.code == EINVAL


@pytest.mark.parametrize("attr", [INSTRUCTIONS, TASK_CLOCK], ids=["hardware", "software"])
def test_when_a_leader_that_is_off_is_closed_its_siblings_count_from_the_next_switch_on(attr):
    """perf_group_detach puts nobody on a PMU; seen on Linux 6.18 with software events."""
    machine = FakeMachine()
    leader = machine.open(attr.copy(disabled=1))
    sibling = machine.open(attr, group=leader)
    machine.run(10)
    leader.close()
    machine.run(20)
    assert sibling.count() == 0
    machine.switch_to(None)
    machine.switch_to(machine.task)
    machine.run(30)
    assert sibling.count() == 30


def test_a_group_has_one_clock():
    """perf_event_open: leader and sibling have the same, and so have an event and whose buffer it writes."""
    machine = FakeMachine()
    leader = machine.open(TASK_CLOCK)
    with pytest.raises(LinuxError) as error:
        machine.open(TASK_CLOCK.copy(use_clockid=1, clockid=1), group=leader)
    assert error.value.code == EINVAL
    assert "perf's own clock" in error.value.why
    machine.open(
        TASK_CLOCK.copy(use_clockid=1, clockid=1), group=machine.open(TASK_CLOCK.copy(use_clockid=1, clockid=1))
    )


def test_a_disabled_leader_keeps_its_siblings_from_counting_and_ageing():
    machine = FakeMachine()
    leader = machine.open(INSTRUCTIONS.copy(disabled=1))
    sibling = machine.open(INSTRUCTIONS, group=leader)
    machine.run(50)
    assert sibling.read_values()[:3] == (0, 0, 0)
    leader.enable()
    machine.run(20)
    assert sibling.read_values()[:3] == (20, 20, 20)


def test_the_group_flag_reaches_the_group_from_any_member():
    machine = FakeMachine()
    leader = machine.open(INSTRUCTIONS.copy(disabled=1))
    sibling = machine.open(INSTRUCTIONS.copy(disabled=1), group=leader)
    leader.enable()
    machine.run(5)
    assert (leader.count(), sibling.count()) == (5, 0)
    sibling.enable(whole_group=True)
    machine.run(5)
    assert (leader.count(), sibling.count()) == (10, 5)
    sibling.reset(whole_group=True)
    assert (leader.count(), sibling.count()) == (0, 0)
    sibling.disable(whole_group=True)
    machine.run(5)
    assert (leader.count(), sibling.count()) == (0, 0)


def test_a_closed_leader_leaves_its_siblings_as_leaders():
    machine = FakeMachine()
    leader = machine.open(INSTRUCTIONS)
    sibling = machine.open(INSTRUCTIONS, group=leader)
    machine.run(5)
    leader.close()
    machine.run(5)
    assert sibling.count() == 10
    assert sibling.is_leader


def test_what_cannot_be_in_one_group():
    machine = FakeMachine()
    leader = machine.open(INSTRUCTIONS)
    sibling = machine.open(INSTRUCTIONS, group=leader)
    other = FakeTask(1001, machine.cpu)
    for arguments in (
        {"group": sibling},  # not a leader
        {"group": leader, "task": other},  # another task
        {"group": leader, "cpu": 0},  # another CPU than the leader's -1
    ):
        with pytest.raises(LinuxError) as error:
            machine.open(INSTRUCTIONS, **arguments)
        assert error.value.code == EINVAL
    for attr in (INSTRUCTIONS.copy(pinned=1), INSTRUCTIONS.copy(exclusive=1), INSTRUCTIONS.copy(inherit=1)):
        with pytest.raises(LinuxError) as error:
            machine.open(attr, group=leader)
        assert error.value.code == EINVAL


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_opening_enabling_and_closing_costs_what_it_changes(isa, monkeypatch):
    """Counters are looked for in proportion to the events, however many wait for one: cubic, 400 events took 7 s."""
    looks = 0
    look = HardwareDriver.free_index

    def counted(self, *arguments):
        nonlocal looks
        looks += 1
        return look(self, *arguments)

    monkeypatch.setattr(HardwareDriver, "free_index", counted)
    per_event = []
    for number in (50, 400):
        machine = FakeMachine(isa)
        looks = 0
        events = [machine.open(INSTRUCTIONS.copy(disabled=1)) for _ in range(number)]
        for event in events:
            event.enable()
        for event in events:
            machine.run(TICK_NS)
            assert event.count() > 0
            event.close()
        per_event.append(looks / number)
    assert per_event[1] < 1.1 * per_event[0]


def test_who_waits_goes_on_at_its_turn_and_what_comes_first_takes_counters_back():
    """Two counters; groups go on in the order of opening, one that is pinned before all others."""
    machine = FakeMachine("aarch64", counters=2)
    first, second, third, fourth = (machine.open(INSTRUCTIONS) for _ in range(4))

    def active():
        return [event.state == EventState.ACTIVE for event in (first, second, third, fourth)]

    assert active() == [True, True, False, False]
    first.disable()
    assert active() == [False, True, False, False]  # they wait for their turn
    machine.run(TICK_NS)  # the first that is on goes behind all others
    assert active() == [False, False, True, True]
    first.enable()  # it is the first again: places are kept while off
    assert active() == [True, False, True, False]
    pinned = machine.open(INSTRUCTIONS.copy(pinned=1))
    assert pinned.state == EventState.ACTIVE
    assert active() == [True, False, False, False]
    alone = machine.open(INSTRUCTIONS.copy(pinned=1, exclusive=1))
    assert alone.state == EventState.ERROR
    pinned.close()
    first.close()
    machine.run(TICK_NS)  # nobody was on: the first of all, the third, is the last from now on
    assert active()[1:] == [True, False, True]
