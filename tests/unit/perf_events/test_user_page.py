"""Reading a counter without a syscall: what perf_event_mmap_page tells, and what the registers then hold."""

import struct

import pytest

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import HardwareId, PerfType
from perfcore.events.ring_buffer import RingBuffer
from pmu.arm.registers import PMCCNTR_EL0, PMUSERENR_EL0, PMEVCNTRn_EL0
from unit.perf_events.fake_machine import FakeMachine

INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.INSTRUCTIONS, exclude_kernel=1)
CYCLES = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.CPU_CYCLES, exclude_kernel=1)
RDPMC = 0b10  # arm64: attr.config1 bit 1


def map_page(event):
    """What PerfEventFile.map_frames does."""
    buffer = RingBuffer.allocate(0)
    event.attach_buffer(buffer)
    event.user_page = buffer.page
    event.driver.event_mapped(event)
    event.update_page()
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
