"""Events of control groups: what counts while whose task has the CPU, for how long, and what a move changes.

Each instruction takes 1 ns. `a` is below the root, `b` below `a`, and `c` beside `a`.
"""

from __future__ import annotations

import pytest

from emulator.linux.cgroup.cgroups import Cgroup
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, ReadFormat, RecordType, SampleType, SoftwareId
from perfcore.abi.records import Cgroup as CgroupRecord
from perfcore.abi.records import decode_record
from perfcore.events.ring_buffer import RingBuffer
from unit.perf_events.fake_machine import ROOT, FakeMachine, FakeTask

INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=1)
A = Cgroup("a", ROOT, 11)
B = Cgroup("b", A, 12)
C = Cgroup("c", ROOT, 13)


class Groups:
    """A machine with a task in each group; the one that runs first is the root's."""

    def __init__(self, counters=None):
        self.machine = FakeMachine(counters=counters)
        tasks = [FakeTask(1001 + n, self.machine.cpu, cgroup=group) for n, group in enumerate((A, B, C))]
        self.tasks = {ROOT: self.machine.task} | {task.cgroup: task for task in tasks}

    def open(self, group, attr=INSTRUCTIONS, leader=None):
        return self.machine.perf.open(attr, None, 0, leader, cgroup=group)

    def run(self, group, instructions):
        """A task of that group comes and executes; None: the CPU idles for as many ns."""
        self.machine.switch_to(None if group is None else self.tasks[group])
        if group is None:
            self.machine.idle(instructions)
        else:
            self.machine.run(instructions)


def test_a_group_counts_its_tasks_and_those_below_it():
    groups = Groups()
    events = {group: groups.open(group) for group in (ROOT, A, B, C)}
    for group, instructions in ((A, 100), (B, 20), (ROOT, 3), (B, 400), (None, 5000)):
        groups.run(group, instructions)
    assert [events[group].count() for group in (ROOT, A, B, C)] == [523, 520, 420, 0]


def test_its_time_is_that_of_its_tasks_and_the_idle_task_is_the_roots():
    groups = Groups()
    events = {group: groups.open(group) for group in (ROOT, A, B, C)}
    for group, time in ((A, 100), (B, 20), (None, 5000), (C, 7)):
        groups.run(group, time)
    values = {group: event.read_values() for group, event in events.items()}
    times = {ROOT: 5127, A: 120, B: 20, C: 7}
    assert {group: value.enabled for group, value in values.items()} == times
    assert {group: value.running for group, value in values.items()} == times


def test_an_event_that_is_opened_while_its_group_runs_counts_at_once():
    groups = Groups()
    groups.run(B, 50)
    event = groups.open(A)
    groups.run(B, 7)
    assert (event.count(), event.read_values().enabled) == (7, 7)


def test_a_move_takes_effect_at_once():
    groups = Groups()
    event = groups.open(A)
    task = groups.tasks[ROOT]
    for group in (ROOT, B, C):
        task.cgroup = group
        groups.machine.tracepoints.cgroup_attach_task.fire(task)
        groups.machine.run(100)
    assert event.count() == 100  # what it executed in B
    other = groups.tasks[C]
    other.cgroup = A  # who does not run
    groups.machine.tracepoints.cgroup_attach_task.fire(other)
    groups.machine.run(100)
    assert event.count() == 100


def test_events_of_groups_that_are_never_there_at_once_share_a_counter():
    groups = Groups(counters=1)
    a, c = groups.open(A), groups.open(C)
    groups.run(A, 1000)
    groups.run(C, 2000)
    assert [(event.count(), event.read_values().running) for event in (a, c)] == [(1000, 1000), (2000, 2000)]


def test_a_pinned_event_of_a_group_that_finds_no_counter_is_in_error():
    groups = Groups(counters=1)
    own = groups.machine.perf.open(INSTRUCTIONS.copy(pinned=1), None, 0)
    event = groups.open(A, INSTRUCTIONS.copy(pinned=1))
    groups.run(C, 100)
    assert event.read() != b""
    groups.run(A, 100)
    assert event.read() == b""
    assert own.count() == 200


def test_a_disabled_event_has_no_time():
    groups = Groups()
    event = groups.open(A, INSTRUCTIONS.copy(disabled=1))
    groups.run(A, 100)
    event.enable()
    groups.run(A, 10)
    groups.run(C, 1000)
    event.disable()
    assert (event.count(), event.read_values().enabled) == (10, 10)


def test_a_groups_events_form_groups_of_their_own():
    groups = Groups()
    leader = groups.open(A, INSTRUCTIONS.copy(read_format=ReadFormat.GROUP))
    sibling = groups.open(A, leader=leader)
    groups.run(B, 30)
    assert [values.value for values in leader.read_group()] == [30, 30]
    leader.close()
    groups.run(ROOT, 100)
    groups.run(A, 5)
    assert sibling.count() == 35  # a leader now, and still of its group


@pytest.mark.parametrize(("before", "behind", "counted"), [(A, B, 1), (A, A, 0), (A, None, 1), (ROOT, None, 0)])
def test_switches_between_groups_are_counted(before, behind, counted):
    groups = Groups()
    switches = PerfEventAttr(type=PerfType.SOFTWARE, config=SoftwareId.CGROUP_SWITCHES)
    groups.run(before, 1)
    event = groups.machine.perf.open(switches, None, 0)
    groups.run(behind, 1)
    assert event.count() == counted


def test_a_sample_says_whose_task_it_is_and_a_record_which_group_is_new():
    groups = Groups()
    event = groups.machine.perf.open(
        INSTRUCTIONS.copy(sample_period=100, sample_type=SampleType.CGROUP, cgroup=1), None, 0
    )
    buffer = RingBuffer.allocate(1)
    event.attach_buffer(buffer)
    groups.run(B, 100)
    groups.run(ROOT, 100)
    groups.machine.tracepoints.cgroup_mkdir.fire(groups.tasks[ROOT], Cgroup("new", A, 99))
    records = buffer.drain()
    assert [records[at : at + 8][0] for at in (0, 16)] == [RecordType.SAMPLE] * 2
    assert [int.from_bytes(records[at + 8 : at + 16], "little") for at in (0, 16)] == [B.id, ROOT.id]
    assert decode_record(records[32:]) == CgroupRecord(99, "/a/new")
