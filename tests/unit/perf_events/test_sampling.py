"""Samples: when they come, and their bytes."""

import struct

import pytest

from emulator.linux.arch import architecture
from emulator.linux.errors import EINVAL, LinuxError
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfContext, PerfType, ReadFormat, RecordType, SampleType, SoftwareId
from perfcore.abi.records import Throttle, Unthrottle, decode_record
from perfcore.abi.sample import HEADER, decode_sample
from perfcore.events.event_state import POLL_HUP, POLL_IN, EventState
from perfcore.events.preparations import sampled_registers
from perfcore.events.ring_buffer import RingBuffer
from perfcore.events.settings import Settings
from pmu.generic_events import HardwareId
from unit.perf_events.fake_machine import CODE, FakeMachine

ISAS = ("aarch64", "x86_64")
BOOT_NS = 100_000_000_000  # CLOCK_MONOTONIC at cycle 0
INSTRUCTIONS = PerfEventAttr(
    type=PerfType.HARDWARE, config=HardwareId.INSTRUCTIONS, exclude_kernel=1, sample_type=SampleType.IP
)
CPU_CLOCK = PerfEventAttr(type=PerfType.SOFTWARE, config=SoftwareId.CPU_CLOCK, sample_type=SampleType.IP)


def records(data):
    """The records in bytes from a ring buffer."""
    found = []
    while data:
        size = HEADER.unpack_from(data)[2]
        found.append(data[:size])
        data = data[size:]
    return found


def record(machine, attr, pages=64):
    event = machine.open(attr)
    event.attach_buffer(RingBuffer.allocate(pages))
    return event


def samples(event):
    """All samples in the event's buffer; other records are left out."""
    found = records(event.ring_buffer.drain())
    return [decode_sample(event.attr, data) for data in found if HEADER.unpack_from(data)[0] == RecordType.SAMPLE]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("period", "instructions"), [(997, 1_000_000), (10_007, 5_000_000), (1_000_003, 20_000_000)])
def test_there_are_floor_n_by_p_samples_each_at_its_instruction(isa, period, instructions):
    machine = FakeMachine(isa, settings=Settings.measuring())
    event = record(machine, INSTRUCTIONS.copy(sample_period=period))
    machine.run(instructions)
    got = samples(event)
    assert len(got) == instructions // period
    assert [sample.ip for sample in got] == [CODE + 4 * period * (n + 1) for n in range(len(got))]  # the next one's PC


@pytest.mark.parametrize("isa", ISAS)
def test_no_counter_stops_for_a_sample(isa):
    """Each that stops would be connected anew, which would be most of what a sample costs."""
    machine = FakeMachine(isa, settings=Settings.measuring())
    event = record(machine, INSTRUCTIONS.copy(sample_period=100))
    machine.open(INSTRUCTIONS)
    connected = []
    machine.bank.connect = lambda counter, probes: connected.append(counter)
    machine.run(1000)
    assert len(samples(event)) == 10
    assert not connected


@pytest.mark.parametrize("isa", ISAS)
def test_precise_samples_name_the_instruction_that_overflowed(isa):
    machine = FakeMachine(isa)
    event = record(machine, INSTRUCTIONS.copy(sample_period=100, precise_ip=2))
    machine.run(100)
    (sample,) = samples(event)
    assert sample.ip == CODE + 4 * 99
    assert sample.misc == 0x4002  # PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP


@pytest.mark.parametrize("isa", ISAS)
def test_a_period_longer_than_half_the_counter_is_counted_in_parts(isa):
    machine = FakeMachine(isa, settings=Settings.measuring())
    period = 3 * 2**31 + 7 if isa == "aarch64" else 3 * 2**47 + 7
    event = record(machine, INSTRUCTIONS.copy(sample_period=period))
    machine.run(period - 1)
    assert samples(event) == []
    machine.run(1)
    assert [sample.ip for sample in samples(event)] == [CODE + 4 * period]
    assert event.count() == period


def test_the_bytes_of_a_sample():
    machine = FakeMachine()
    sample_type = (
        SampleType.IDENTIFIER
        | SampleType.IP
        | SampleType.TID
        | SampleType.TIME
        | SampleType.ADDR
        | SampleType.ID
        | SampleType.STREAM_ID
        | SampleType.CPU
        | SampleType.PERIOD
        | SampleType.READ
        | SampleType.CALLCHAIN
    )
    event = record(machine, INSTRUCTIONS.copy(sample_period=50, sample_type=sample_type, read_format=ReadFormat.ID))
    machine.cpu.core.frames = [0x1111, 0x2222]
    machine.run(50)
    expected = struct.pack(
        "<IHH QQIIQQQQIIQ QQ Q4Q",
        *(9, 2, 136),  # PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER; header 8 + 9 * 8 + READ 2 * 8 + CALLCHAIN 5 * 8
        event.id,
        CODE + 200,
        *(1000, 1000),
        BOOT_NS + 50,
        0,
        event.id,
        event.id,
        *(0, 0),
        50,
        *(50, event.id),
        *(4, PerfContext.USER, CODE + 200, 0x1111, 0x2222),
    )
    assert event.ring_buffer.drain() == expected


def test_registers_of_a_sample_come_in_the_order_of_their_bits():
    machine = FakeMachine()
    event = record(
        machine,
        INSTRUCTIONS.copy(
            sample_period=5, sample_type=SampleType.REGS_USER, sample_regs_user=1 << 29 | 1 << 0 | 1 << 31
        ),
    )
    machine.run(5)
    assert event.ring_buffer.drain() == struct.pack("<IHH4Q", 9, 2, 40, 2, 0x1000, 0x101D, 0x101F)


def test_segments_are_what_they_always_are_in_user_mode():
    """uapi/asm/perf_regs.h: CS is 10 and SS 11; DS, ES, FS and GS are refused (REG_NOSUPPORT)."""
    registers = sampled_registers(architecture("x86_64"))
    assert {bit: value for bit, (native, value) in registers.items() if native < 0} == {10: 0x33, 11: 0x2B}
    assert sorted(registers) == [*range(12), *range(16, 24)]


def test_a_group_samples_the_counts_of_all_its_members():
    machine = FakeMachine()
    attr = INSTRUCTIONS.copy(sample_period=100, sample_type=SampleType.READ, read_format=ReadFormat.GROUP)
    leader = record(machine, attr)
    machine.run(30)
    machine.open(INSTRUCTIONS.copy(read_format=ReadFormat.GROUP), group=leader)
    machine.run(170)
    assert [[values.value for values in sample.read] for sample in samples(leader)] == [[100, 70], [200, 170]]


@pytest.mark.parametrize("isa", ISAS)
def test_refresh_stops_after_so_many_overflows_and_signals_hup_at_the_last(isa):
    machine = FakeMachine(isa)
    event = record(machine, INSTRUCTIONS.copy(sample_period=1000, disabled=1))
    reasons = []
    event.on_signal = reasons.append
    event.refresh(2)
    machine.run(5000)
    assert reasons == [POLL_IN, POLL_HUP]
    assert event.state == EventState.OFF
    assert event.count() == 2000
    event.refresh(1)
    machine.run(5000)
    assert reasons == [POLL_IN, POLL_HUP, POLL_HUP]
    assert event.count() == 3000


def test_refresh_is_for_sampling_events_only():
    machine = FakeMachine()
    with pytest.raises(LinuxError) as error:
        machine.open(INSTRUCTIONS).refresh(1)
    assert error.value.code == EINVAL


@pytest.mark.parametrize("isa", ISAS)
def test_two_events_that_overflow_at_once_are_both_counted_though_one_disables_the_group(isa):
    machine = FakeMachine(isa)
    leader = record(machine, INSTRUCTIONS.copy(sample_period=1000, disabled=1))
    sibling = machine.open(INSTRUCTIONS.copy(sample_period=500), group=leader)
    sibling.attach_buffer(RingBuffer.allocate(1))
    leader.refresh(1)
    machine.run(3000)
    assert len(samples(leader)) == 1
    assert len(samples(sibling)) == 2
    assert leader.count() == sibling.count() == 1000


def test_a_new_period_starts_at_once():
    machine = FakeMachine()
    event = record(machine, INSTRUCTIONS.copy(sample_period=1000))
    machine.run(900)
    event.set_period(300)
    machine.run(700)  # samples 300 and 600 after the change
    assert [sample.ip for sample in samples(event)] == [CODE + 4 * 1200, CODE + 4 * 1500]
    with pytest.raises(LinuxError):
        event.set_period(0)


def test_cpu_clock_samples_by_guest_time():
    machine = FakeMachine()
    event = record(machine, CPU_CLOCK.copy(freq=1, sample_period=4000))
    machine.run(1_000_000)  # 1 ms; 4000 Hz is every 250,000 ns
    assert [sample.ip for sample in samples(event)] == [CODE + 4 * 250_000 * n for n in (1, 2, 3, 4)]
    assert event.count() == 1_000_000


def test_a_clock_event_samples_at_most_every_10_microseconds():
    machine = FakeMachine()
    event = record(machine, CPU_CLOCK.copy(sample_period=1000))
    machine.run(100_000)
    # the first period is taken as it is (perf_swevent_start_hrtimer)
    assert [sample.ip for sample in samples(event)] == [CODE + 4 * (1000 + 10_000 * n) for n in range(10)]


def test_a_clock_event_keeps_the_rest_of_its_period_while_its_task_is_away():
    machine = FakeMachine()
    event = record(machine, CPU_CLOCK.copy(sample_period=100_000))
    machine.run(40_000)
    machine.switch_to(None)
    machine.idle(1_000_000)
    machine.switch_to(machine.task)
    machine.run(60_000)
    assert [sample.ip for sample in samples(event)] == [CODE + 400_000]
    assert event.count() == 100_000


@pytest.mark.parametrize("isa", ISAS)
def test_a_frequency_is_reached_within_some_samples(isa):
    machine = FakeMachine(isa, settings=Settings.measuring())
    event = record(
        machine, INSTRUCTIONS.copy(freq=1, sample_period=4000, sample_type=SampleType.IP | SampleType.PERIOD)
    )
    machine.run(100_000_000)  # 0.1 s at 1 GHz and one instruction a cycle: 250,000 between samples
    got = samples(event)
    assert abs(got[-1].period - 250_000) < 2_500
    # the first period is 1; each one goes an eighth of the way, so that (7/8)**n of the difference is left
    assert got[0].period == 1
    assert 395 <= len(got) <= 425


def test_too_many_samples_in_a_tick_throttle_a_guests_event_until_the_next():
    machine = FakeMachine("aarch64", settings=Settings(sample_rate_hz=2500))  # 10 in a tick of 4 ms
    event = record(machine, INSTRUCTIONS.copy(sample_period=100_000))
    machine.run(8_000_000)  # 80 periods; ticks at 4 ms and 8 ms
    kinds = [HEADER.unpack_from(data)[0] for data in records(event.ring_buffer.drain())]
    sample, throttle, unthrottle = RecordType.SAMPLE, RecordType.THROTTLE, RecordType.UNTHROTTLE
    # the sample that is one too many is still written, after the record that says so
    first_tick = [sample] * 10 + [throttle, sample]
    second_tick = [unthrottle] + [sample] * 10 + [throttle, sample]
    assert kinds == first_tick + second_tick + [unthrottle]


def test_throttle_records_name_the_event():
    machine = FakeMachine("aarch64", settings=Settings(sample_rate_hz=250))  # 1 in a tick
    event = record(machine, INSTRUCTIONS.copy(sample_period=1_000_000))
    machine.run(4_000_000)
    found = records(event.ring_buffer.drain())
    assert decode_record(found[1]) == Throttle(BOOT_NS + 2_000_000, event.id, event.id)
    assert decode_record(found[3]) == Unthrottle(BOOT_NS + 4_000_000, event.id, event.id)


def test_a_measuring_subsystem_never_throttles():
    machine = FakeMachine("aarch64", settings=Settings.measuring())
    event = record(machine, INSTRUCTIONS.copy(sample_period=1000))
    machine.run(4_000_000)
    assert len(samples(event)) == 4000


@pytest.mark.parametrize("isa", ISAS)
def test_what_a_slow_reader_misses_is_a_record_and_a_count(isa):
    """A sample takes 8 + 8 + 8 + 8 bytes: 127 leave 32 of the page, one of which stays free; 73 of 200 are lost."""
    machine = FakeMachine(isa, settings=Settings.measuring())
    wanted = SampleType.IP | SampleType.TID | SampleType.TIME
    attr = INSTRUCTIONS.copy(sample_period=1000, sample_type=wanted, sample_id_all=1, read_format=ReadFormat.LOST)
    event = record(machine, attr, pages=1)
    machine.run(200_000)
    assert len(samples(event)) == 127
    machine.run(1000)
    lost, sample = records(event.ring_buffer.drain())
    pid, tid, time = struct.unpack_from("<IIQ", sample, 16)
    assert time == BOOT_NS + 201_000
    assert lost == struct.pack("<IHHQQIIQ", 2, 0, 40, event.id, 73, pid, tid, time)
    assert struct.unpack("<2Q", event.read()) == (201_000, 73)


def test_a_sample_that_no_record_can_hold_is_lost():
    """8191 addresses and their number are 65,536 bytes, one more than a header can say."""
    machine = FakeMachine("x86_64", settings=Settings(max_stack=10_000))
    machine.cpus[0].core.frame_chain = lambda most: [CODE] * most
    attr = INSTRUCTIONS.copy(sample_period=1000, sample_type=SampleType.CALLCHAIN, sample_max_stack=9000)
    event = record(machine, attr)
    machine.run(2500)
    assert (samples(event), event.lost_samples, event.ring_buffer.lost) == ([], 2, 2)
