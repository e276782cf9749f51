"""The AUX area's protocol, driven by a unit for tests: heads, tails, records, wake-ups, and who may have it.

The area has 4096 bytes unless a test says otherwise, and its reader is woken at half of it. A packet has 8 bytes.
"""

from __future__ import annotations

import pytest

from emulator.linux.errors import EBUSY, EEXIST, EINVAL, EOPNOTSUPP, LinuxError
from perfcore.abi import mmap_page
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import AuxAction, AuxFlag, PerfType, SampleType
from perfcore.abi.records import Aux, ItraceStart, decode_record
from perfcore.abi.sample import decode_sample
from perfcore.events.aux_area import AuxArea
from perfcore.events.aux_output import AuxOutput
from perfcore.events.event_state import EventState
from perfcore.events.ring_buffer import RingBuffer
from unit.perf_events.fake_machine import FakeMachine, FakeTask
from unit.perf_events.trace_pmu import TracePmu

INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=1)
PAGE = 4096


class Traced:
    """A machine with the unit, and an event of its task that traces into an area."""

    def __init__(self, overwrite=False, size=PAGE, **attr):
        self.machine = FakeMachine()
        self.pmu = TracePmu()
        self.machine.perf.pmus.register(self.pmu)
        self.event = self.machine.open(PerfEventAttr(type=self.pmu.type, disabled=1, **attr))
        self.ring = RingBuffer.allocate(1)
        self.event.attach_buffer(self.ring)
        unit = self.pmu.unit
        self.area = AuxArea(
            self.ring.page,
            memoryview(bytearray(size)),
            offset=2 * PAGE,
            overwrite=overwrite,
            watermark=self.event.attr.aux_watermark,
            setup=lambda memory, overwrite: unit.setup_aux(self.event, memory, overwrite),
            free=unit.free_aux,
        )
        self.area.mappings = 1
        self.ring.aux = self.area
        self.event.enable()

    def trace(self, packets, first=0):
        for number in range(first, first + packets):
            self.pmu.trace(number.to_bytes(8, "little"))

    def soon(self):
        """What waits for the next instruction happens."""
        self.machine.timers.fire_due()

    def records(self):
        data, records = self.ring.drain(), []
        while data:
            size = int.from_bytes(data[6:8], "little")
            records.append(decode_record(data[:size]))
            data = data[size:]
        return records

    @property
    def head(self):
        return mmap_page.AUX_HEAD.read(self.ring.page)

    def give_back(self, tail):
        mmap_page.AUX_TAIL.write(self.ring.page, tail)


def test_a_stretch_is_told_when_the_event_goes_off():
    traced = Traced()
    assert traced.records() == [ItraceStart(1000, 1000)]
    traced.trace(3)
    assert (traced.head, traced.records()) == (0, [])  # nobody has been told yet
    traced.event.disable()
    assert (traced.head, traced.records()) == (24, [Aux(0, 24, 0)])
    assert bytes(traced.area.memory[:24]) == bytes([0] * 8 + [1] + [0] * 7 + [2] + [0] * 7)
    traced.event.enable()  # the trace has begun: no second ITRACE_START
    traced.trace(1)
    traced.event.disable()
    assert traced.records() == [Aux(24, 8, 0)]


def test_the_reader_is_woken_at_the_watermark_of_half_the_area():
    traced = Traced()
    traced.ring.poll_ready = False
    traced.trace(255)
    assert not traced.ring.poll_ready
    traced.trace(1)  # 256 * 8 = 2048
    assert traced.ring.poll_ready
    assert (traced.head, traced.records()[1:]) == (2048, [Aux(0, 2048, 0)])


def test_the_watermark_is_the_attrs():
    traced = Traced(aux_watermark=16)
    traced.trace(5)
    assert traced.records()[1:] == [Aux(0, 16, 0), Aux(16, 16, 0)]  # and 8 bytes that nobody has been told of
    traced.event.disable()
    assert traced.records() == [Aux(32, 8, 0)]


def test_a_full_area_truncates_and_disables():
    """One byte stays free, as in every such ring: 4095 of 4096, of which 511 packets take 4088."""
    traced = Traced()
    traced.trace(512)
    assert traced.records()[1:] == [Aux(0, 2048, 0), Aux(2048, 2040, AuxFlag.TRUNCATED)]
    assert traced.event.state == EventState.ACTIVE  # in the middle of an interrupt, say
    traced.soon()
    assert traced.event.state == EventState.OFF
    traced.event.enable()  # 7 bytes are left: that is room, if not for a packet
    traced.trace(1)
    assert traced.records() == [Aux(4088, 0, AuxFlag.TRUNCATED)]
    traced.soon()
    traced.give_back(2048)
    traced.event.enable()
    traced.trace(1, first=7)
    traced.event.disable()
    assert (traced.records(), traced.head) == ([Aux(4088, 8, 0)], 4096)
    assert traced.area.memory[4088] == 7


def test_where_no_byte_is_left_nothing_begins_and_the_reader_is_woken():
    traced = Traced()
    traced.trace(511)
    traced.event.disable()
    traced.give_back((4088 - 4095) % (1 << 64))  # as if it had given back nothing, and 7 bytes more had come
    traced.ring.poll_ready = False
    traced.event.enable()
    assert traced.ring.poll_ready
    traced.soon()
    assert (traced.event.state, traced.pmu.outputs) == (EventState.OFF, {})


@pytest.mark.parametrize("tail", [1 << 63, 5000])
def test_a_tail_that_is_nonsense_leaves_no_room(tail):
    traced = Traced()
    traced.event.disable()
    traced.give_back(tail)
    traced.event.enable()
    traced.soon()
    assert traced.event.state == EventState.OFF


def test_in_overwrite_mode_it_goes_round_and_nobody_is_told_of_what_is_there():
    """600 packets of 8 bytes are 4800; at 704 of the area stands what was written first of those still there."""
    traced = Traced(overwrite=True)
    traced.trace(600)
    traced.event.disable()
    assert (traced.head, traced.records()[1:]) == (4800, [Aux(4800, 4800, AuxFlag.OVERWRITE)])
    assert [traced.area.memory[at] + 256 * traced.area.memory[at + 1] for at in (0, 696, 704)] == [512, 599, 88]
    traced.event.enable()
    traced.event.disable()  # nothing new: no record
    assert (traced.head, traced.records()) == (4800, [])


def test_what_is_skipped_is_no_part_of_what_is_told():
    traced = Traced()
    traced.event.disable()
    traced.event.state = EventState.INACTIVE
    output = AuxOutput.begin(traced.event)
    assert (output.head, output.size, output.wakeup) == (0, 4095, 2048)
    assert output.skip(4096) is False
    assert output.skip(2048) is True  # the reader is woken for it: then at 4096
    assert (output.head, output.size, output.wakeup, traced.head) == (2048, 2047, 4096, 2048)
    assert AuxOutput.begin(traced.event) is None  # one at a time
    output.write(b"12345678")
    output.end(8)
    assert traced.records()[1:] == [Aux(2048, 8, 0)]
    assert bytes(traced.area.memory[2048:2056]) == b"12345678"


def test_flags_of_the_unit_are_told():
    traced = Traced()
    traced.pmu.outputs[traced.event].flags |= AuxFlag.PARTIAL
    traced.event.disable()
    assert traced.records()[1:] == [Aux(0, 0, AuxFlag.PARTIAL)]


def test_without_mappings_nothing_begins():
    traced = Traced()
    traced.event.disable()
    traced.area.mappings = 0
    traced.event.enable()
    assert (traced.event.state, traced.pmu.outputs) == (EventState.ACTIVE, {})


def test_the_area_is_freed_when_nobody_has_it_and_nobody_writes():
    traced = Traced()
    traced.area.put()
    assert traced.pmu.unit.areas == ["1 pages"]  # the unit still writes
    traced.event.disable()
    assert traced.pmu.unit.areas == ["1 pages", "1 freed"]


def test_another_task_is_told_by_itrace_start_if_no_trace_has_begun():
    traced = Traced()
    traced.records()
    traced.event.aux.itrace_started = False
    traced.machine.switch_to(FakeTask(1001, traced.machine.cpu))
    traced.machine.switch_to(traced.machine.task)
    assert traced.records() == [ItraceStart(1000, 1000)]


# ---- events that need one


def sampled(traced, **attr):
    """An event of the CPU's PMU behind it. The group is installed anew then, as the leader's attr says: disabled."""
    event = traced.machine.open(INSTRUCTIONS.copy(**attr), group=traced.event)
    traced.event.enable()
    return event


def test_a_sample_has_what_the_leaders_unit_has_written_last():
    traced = Traced()
    event = sampled(traced, sample_period=100, sample_type=SampleType.AUX, aux_sample_size=20)
    event.attach_buffer(traced.ring)
    traced.trace(3)
    traced.records()
    traced.machine.run(100)
    sample = decode_sample(event.attr, traced.ring.drain())
    assert sample.aux == bytes([1] + [0] * 7 + [2] + [0] * 7)  # 20 bytes, rounded down to 8


def test_what_has_not_been_written_is_zero_and_no_sample_is_larger_than_its_area():
    traced = Traced()
    event = sampled(traced, sample_period=100, sample_type=SampleType.AUX, aux_sample_size=60000)
    event.attach_buffer(RingBuffer.allocate(16))
    traced.trace(1, first=9)
    traced.machine.run(100)
    sample = decode_sample(event.attr, event.ring_buffer.drain())
    assert sample.aux == bytes([9]) + bytes(4095)


def test_a_record_has_at_most_65535_bytes():
    """8 of the header, 8 of the size: 65519 are left, and 65512 is a multiple of 8."""
    traced = Traced(size=16 * PAGE)
    event = sampled(traced, sample_period=100, sample_type=SampleType.AUX, aux_sample_size=1 << 20)
    event.attach_buffer(RingBuffer.allocate(32))
    traced.machine.run(100)
    assert len(decode_sample(event.attr, event.ring_buffer.drain()).aux) == 65512


def test_samples_without_an_aux_event_have_none():
    machine = FakeMachine()
    event = machine.open(INSTRUCTIONS.copy(sample_period=100, sample_type=SampleType.AUX))
    event.attach_buffer(RingBuffer.allocate(1))
    machine.run(100)
    assert decode_sample(event.attr, event.ring_buffer.drain()).aux == b""


def code_of(open_):
    with pytest.raises(LinuxError) as failure:
        open_()
    return failure.value.code


def test_who_needs_an_aux_event_must_follow_one_that_serves():
    traced = Traced()
    assert code_of(lambda: traced.machine.open(INSTRUCTIONS.copy(aux_sample_size=8))) == EINVAL
    assert code_of(lambda: sampled(traced, aux_output=1)) == EOPNOTSUPP  # the CPU's PMU cannot write a trace
    traced.machine.drivers[0].writes_aux = True
    assert code_of(lambda: traced.machine.open(INSTRUCTIONS.copy(aux_output=1))) == EINVAL
    assert sampled(traced, aux_output=1).aux.source is traced.event
    assert code_of(lambda: sampled(traced, aux_output=1, config=0)) == EINVAL  # not of those that match
    assert code_of(lambda: sampled(traced, aux_output=1, aux_sample_size=8)) == EINVAL
    traced.pmu.unit.takes_snapshots = False
    assert code_of(lambda: sampled(traced, aux_sample_size=8)) == EINVAL


def test_with_the_aux_event_goes_what_was_for_it():
    traced = Traced()
    event = sampled(traced, aux_sample_size=8)
    assert event.state == EventState.ACTIVE
    traced.event.close()
    assert (event.state, event.aux.source) == (EventState.INACTIVE, None)


def test_an_overflow_pauses_a_trace_and_another_one_lets_it_go_on():
    traced = Traced(aux_action=AuxAction.START_PAUSED)
    sampled(traced, sample_period=100, aux_action=AuxAction.RESUME)
    sampled(traced, sample_period=150, aux_action=AuxAction.PAUSE)
    for number in range(6):  # at 100 it goes on, at 150 it stops, at 200 it goes on; at 300 both: what was put on first
        traced.trace(1, first=number)
        traced.machine.run(50)
    traced.event.disable()
    assert traced.pmu.unit.areas[1:] == ["resumed", "paused", "resumed", "paused"]
    assert traced.records()[-1:] == [Aux(0, 24, 0)]
    assert [traced.area.memory[at] for at in (0, 8, 16)] == [2, 4, 5]


def test_what_pauses_needs_a_unit_that_can():
    traced = Traced()
    assert code_of(lambda: traced.machine.open(INSTRUCTIONS.copy(aux_action=AuxAction.START_PAUSED))) == EOPNOTSUPP
    assert code_of(lambda: traced.machine.open(INSTRUCTIONS.copy(aux_action=AuxAction.PAUSE))) == EINVAL
    assert code_of(lambda: sampled(traced, aux_action=AuxAction.PAUSE | AuxAction.RESUME)) == EINVAL
    traced.pmu.unit.pausable = False
    assert code_of(lambda: sampled(traced, aux_action=AuxAction.PAUSE)) == EINVAL


# ---- whose the unit is


def test_an_exclusive_unit_serves_tasks_or_cpus_and_each_once():
    machine, pmu = FakeMachine(), TracePmu(exclusive=True)
    machine.perf.pmus.register(pmu)
    attr = PerfEventAttr(type=pmu.type)
    other = FakeTask(1001, machine.cpu)
    first = machine.open(attr)
    assert code_of(lambda: machine.open(attr)) == EBUSY
    assert code_of(lambda: machine.open(attr, cpu=0)) == EBUSY  # all CPUs are taken for this task
    assert code_of(lambda: machine.open(attr, task=None, cpu=0)) == EBUSY
    second = machine.open(attr, task=other)
    first.close()
    second.close()
    of_cpu = machine.open(attr, task=None, cpu=0)
    assert code_of(lambda: machine.open(attr)) == EBUSY
    of_cpu.close()
    machine.open(attr)


# ---- PMUs that come and go


def test_types_are_given_from_the_lowest_that_is_free():
    pmus = FakeMachine().perf.pmus  # armv8_pmuv3_0 has 8
    first, second, third, fourth = (TracePmu(name=f"trace{n}") for n in range(4))
    pmus.register(first)
    pmus.register(second, type=11)
    pmus.register(third)
    assert (first.type, second.type, third.type) == (9, 11, 10)
    pmus.remove(first)
    pmus.register(fourth)
    assert fourth.type == 9
    assert code_of(lambda: pmus.register(TracePmu(name="trace3"))) == EEXIST
    assert code_of(lambda: pmus.register(TracePmu(name=""))) == EINVAL
    assert code_of(lambda: pmus.register(first, type=8)) == EEXIST


def test_of_the_events_of_a_pmu_that_goes_nothing_is_left():
    traced = Traced()
    event = sampled(traced)
    traced.trace(1)
    traced.records()
    traced.machine.perf.unregister_pmu(traced.pmu)
    assert traced.records() == [Aux(0, 8, 0)]
    assert (traced.event.state, traced.event.read(), traced.event.ring_buffer) == (EventState.REVOKED, b"", None)
    assert event.is_leader
    traced.machine.run(100)
    traced.machine.switch_to(FakeTask(1001, traced.machine.cpu))
    traced.event.close()
    with pytest.raises(LinuxError):
        traced.machine.open(PerfEventAttr(type=traced.pmu.type))
