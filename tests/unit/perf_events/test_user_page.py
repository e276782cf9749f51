"""Reading a counter without a syscall: what perf_event_mmap_page tells, and what the registers then hold."""

import struct

import pytest

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType
from perfcore.events.ring_buffer import RingBuffer
from perfcore.events.user_page import UserClock
from pmu.arm.registers import PMCCNTR_EL0, PMUSERENR_EL0, PMEVCNTRn_EL0
from pmu.generic_events import HardwareId
from unit.perf_events.fake_machine import FakeMachine, FakeTask

INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.INSTRUCTIONS, exclude_kernel=1)
CYCLES = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.CPU_CYCLES, exclude_kernel=1)
RDPMC = 0b10  # arm64: attr.config1 bit 1


def map_page(event):
    """What PerfEventFile.map_frames does."""
    buffer = RingBuffer.allocate(0)
    event.attach_buffer(buffer)
    event.map_page(buffer.page)
    return buffer.page


def read_counter(machine, index):
    """The instruction that user space executes."""
    if machine.isa == "x86_64":
        return machine.pmu.rdpmc(index - 1)
    if index == 32:
        return machine.pmu.read(PMCCNTR_EL0)
    return machine.pmu.read(PMEVCNTRn_EL0, index - 1)


def user_space_count(machine, page):
    """The loop in the comment of struct perf_event_mmap_page, without the loop."""
    index, offset = struct.unpack_from("<Iq", page, 12)
    if index == 0:
        return offset
    (width,) = struct.unpack_from("<H", page, 48)
    value = read_counter(machine, index) & (1 << width) - 1
    return offset + value - (value >> width - 1 << width)


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
@pytest.mark.parametrize("attr", [INSTRUCTIONS, CYCLES], ids=["instructions", "cycles"])
def test_user_space_reads_what_read_returns(isa, attr):
    machine = FakeMachine(isa)
    event = machine.open(attr.copy(config1=RDPMC if isa == "aarch64" else 0))
    machine.run(10)
    page = map_page(event)
    assert struct.unpack_from("<Q", page, 40)[0] & 4  # cap_user_rdpmc
    for instructions in (0, 1, 1000, 5 << 31):
        machine.run(instructions)
        assert user_space_count(machine, page) == event.count()
    event.reset()
    machine.run(7)
    assert user_space_count(machine, page) == event.count() == 7
    event.disable()
    assert struct.unpack_from("<I", page, 12) == (0,)
    assert user_space_count(machine, page) == 7


def test_arm_user_space_reads_only_what_asked_for_it():
    machine = FakeMachine("aarch64")
    page = map_page(machine.open(INSTRUCTIONS))
    assert struct.unpack_from("<I", page, 12) == (0,)
    assert machine.pmu.read(PMUSERENR_EL0) == 0
    map_page(machine.open(INSTRUCTIONS.copy(config1=RDPMC)))
    assert machine.pmu.read(PMUSERENR_EL0) == 0b1100  # ER, CR


def user_space_times(machine, page):
    """The same comment: time_enabled and time_running as user space makes them of the counter that it reads."""
    enabled, running, capabilities = struct.unpack_from("<QQQ", page, 24)
    shift, mult, offset = struct.unpack_from("<HIQ", page, 50)
    (index,) = struct.unpack_from("<I", page, 12)
    hz = machine.architecture.counter_hz(machine.clock)
    ticks = machine.clock.monotonic_ns() * hz // 1_000_000_000
    if capabilities & 8 and enabled != running:  # cap_user_time
        delta = offset + (ticks >> shift) * mult + ((ticks & (1 << shift) - 1) * mult >> shift) & (1 << 64) - 1
        enabled += delta
        running += delta if index else 0
    return enabled, running


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
@pytest.mark.parametrize("hz", [1_000_000_000, 100_000_000, 3_700_000_000])
def test_user_space_knows_the_times_while_they_pass_and_when_they_stand(isa, hz):
    machine = FakeMachine(isa, counters=1)
    machine.architecture.hz = hz
    attr = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.BRANCH_INSTRUCTIONS, exclude_kernel=1)
    first = machine.open(attr)
    event = machine.open(attr.copy(config1=RDPMC if isa == "aarch64" else 0))
    machine.run(10)  # user space asks what passes where the page's times differ, so not before
    page = map_page(event)

    def check(enabled, running):
        values = event.read_values()
        assert (values.enabled, values.running) == (enabled, running)
        assert user_space_times(machine, page) == pytest.approx((enabled, running), abs=1_000_000_000 // hz + 1)

    machine.run(1000)
    check(1010, 0)  # it waits for a counter
    first.disable()
    machine.switch_to(None)
    machine.switch_to(machine.task)  # where it goes on
    machine.run(2000)
    check(3010, 2000)
    machine.switch_to(None)
    machine.idle(4000)
    check(3010, 2000)
    machine.switch_to(machine.task)
    machine.run(500)
    check(3510, 2500)
    event.disable()
    machine.run(700)
    check(3510, 2500)


def test_arm_user_space_reads_nothing_while_another_task_runs():
    machine = FakeMachine("aarch64")
    map_page(machine.open(INSTRUCTIONS.copy(config1=RDPMC)))
    machine.open(CYCLES, task=None, cpu=0)
    machine.run(10)
    machine.switch_to(FakeTask(1001, machine.cpu))
    assert machine.pmu.read(PMUSERENR_EL0) == 0
    machine.switch_to(machine.task)
    assert machine.pmu.read(PMUSERENR_EL0) == 0b1100
    assert machine.pmu.read(PMEVCNTRn_EL0, 5) == 0


def test_conversions_have_32_bits_and_the_error_of_one():
    for hz in (1_000_000, 24_000_000, 100_000_000, 1_000_000_000, 2_600_000_000, 5_000_000_000):
        clock = UserClock(hz, 56)
        assert clock.mult < 1 << 32
        assert clock.shift <= 31
        assert clock.mult * hz >> clock.shift in range(999_999_990, 1_000_000_001)
