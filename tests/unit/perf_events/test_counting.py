"""Counts and times of events that only count."""

import struct

import pytest

from emulator.linux.errors import EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.probes import Probe
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, ReadFormat
from perfcore.events.settings import Settings
from pmu.generic_events import HardwareId
from unit.perf_events.fake_machine import FakeMachine

ISAS = ("aarch64", "x86_64")
CYCLES = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.CPU_CYCLES, exclude_kernel=1)
INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.INSTRUCTIONS, exclude_kernel=1)
TIMES = ReadFormat.TOTAL_TIME_ENABLED | ReadFormat.TOTAL_TIME_RUNNING
RAW_BRANCHES = {"aarch64": 0x21, "x86_64": 0xC4}  # BR_RETIRED; BR_INST_RETIRED.ALL_BRANCHES


@pytest.mark.parametrize("isa", ISAS)
def test_counts_what_retires_between_enable_and_disable(isa):
    machine = FakeMachine(isa)
    event = machine.open(INSTRUCTIONS.copy(disabled=1))
    machine.run(1000)
    assert event.count() == 0
    event.enable()
    machine.run(12_345)
    event.disable()
    machine.run(1000)
    assert event.count() == 12_345
    event.reset()
    assert event.count() == 0
    event.enable()
    machine.run(7)
    assert event.count() == 7


@pytest.mark.parametrize(("isa", "width_bits"), [("aarch64", 32), ("x86_64", 48)])
def test_a_count_goes_on_beyond_the_width_of_the_counter(isa, width_bits):
    machine = FakeMachine(isa)
    events = [machine.open(INSTRUCTIONS), machine.open(CYCLES)]
    machine.run(5 << width_bits)
    assert [event.count() for event in events] == [5 << width_bits] * 2


@pytest.mark.parametrize("isa", ISAS)
def test_a_raw_event_counts_its_probe_and_an_unknown_code_counts_zero(isa):
    machine = FakeMachine(isa)
    branches = machine.open(PerfEventAttr(type=PerfType.RAW, config=RAW_BRANCHES[isa]))
    unknown = machine.open(PerfEventAttr(type=PerfType.RAW, config=0x7D))
    machine.bank.fire(Probe.BR_RETIRED, 21)
    machine.run(100)
    assert branches.count() == 21
    assert unknown.count() == 0


@pytest.mark.parametrize("isa", ISAS)
def test_only_user_mode_executes(isa):
    machine = FakeMachine(isa)
    with pytest.raises(LinuxError) as unknown:
        machine.open(INSTRUCTIONS.copy(exclude_user=1, exclude_kernel=0))
    assert unknown.value.code == EOPNOTSUPP
    nobody = machine.open(INSTRUCTIONS.copy(exclude_user=1, exclude_kernel=1))
    both = machine.open(INSTRUCTIONS.copy(exclude_kernel=0))
    host = machine.open(INSTRUCTIONS.copy(exclude_host=1))
    machine.run(100)
    assert (nobody.count(), both.count(), host.count()) == (0, 100, 0)


@pytest.mark.parametrize("isa", ISAS)
def test_events_that_the_pmu_cannot_know_are_refused(isa):
    machine = FakeMachine(isa)
    with pytest.raises(LinuxError) as missing:
        machine.open(PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.BRANCH_MISSES))
    assert missing.value.code == ENOENT
    with pytest.raises(LinuxError) as impossible:
        machine.open(PerfEventAttr(type=PerfType.HARDWARE, config=0xFFFFFFFF))
    assert impossible.value.code == EINVAL
    with pytest.raises(LinuxError) as no_type:
        machine.open(PerfEventAttr(type=0xFFFFFFFB))
    assert no_type.value.code == ENOENT


def test_cycles_take_the_cycle_counter_and_leave_all_event_counters_free():
    machine = FakeMachine("aarch64")  # 6 event counters and the cycle counter
    events = [machine.open(CYCLES)] + [machine.open(INSTRUCTIONS) for _ in range(6)]
    machine.run(10)
    assert [event.hw.idx for event in events] == [31, 0, 1, 2, 3, 4, 5]
    assert [event.count() for event in events] == [10] * 7


def test_intel_prefers_the_fixed_counters():
    machine = FakeMachine("x86_64")  # 4 general-purpose and 3 fixed counters
    attrs = [INSTRUCTIONS, CYCLES, PerfEventAttr(type=0, config=HardwareId.REF_CPU_CYCLES)] + [INSTRUCTIONS] * 4
    events = [machine.open(attr) for attr in attrs]
    machine.run(10)
    assert [event.hw.idx for event in events] == [32, 33, 34, 0, 1, 2, 3]
    assert [event.count() for event in events] == [10] * 7


def test_what_does_not_fit_stays_off_and_its_times_say_so():
    machine = FakeMachine("aarch64", counters=1)
    first = machine.open(INSTRUCTIONS.copy(read_format=TIMES))
    second = machine.open(INSTRUCTIONS.copy(read_format=TIMES))
    machine.run(500)
    assert struct.unpack("<3Q", first.read()) == (500, 500, 500)  # value, enabled, running: 1 ns an instruction
    assert struct.unpack("<3Q", second.read()) == (0, 500, 0)
    first.close()  # its counter is free: the other one goes on it when its turn comes, here by a switch
    machine.run(30)
    machine.switch_to(None)
    machine.switch_to(machine.task)
    machine.run(40)
    assert struct.unpack("<3Q", second.read()) == (40, 570, 40)


def test_a_pinned_event_that_does_not_fit_is_in_error_and_reads_as_end_of_file():
    machine = FakeMachine("aarch64", counters=1)
    flexible = machine.open(INSTRUCTIONS)
    pinned = machine.open(INSTRUCTIONS.copy(pinned=1))
    machine.run(100)
    assert (flexible.count(), pinned.count()) == (0, 100)  # pinned goes first
    too_many = machine.open(INSTRUCTIONS.copy(pinned=1))
    machine.run(100)
    assert too_many.read() == b""
    assert pinned.count() == 200


def test_an_exclusive_event_is_alone():
    machine = FakeMachine("aarch64")
    exclusive = machine.open(INSTRUCTIONS.copy(exclusive=1))
    other = machine.open(INSTRUCTIONS)
    machine.run(100)
    assert (exclusive.count(), other.count()) == (100, 0)
    exclusive.disable()
    other.disable()
    other.enable()
    machine.run(50)
    assert (exclusive.count(), other.count()) == (100, 50)


def test_an_event_of_a_task_counts_and_ages_only_while_the_task_runs():
    machine = FakeMachine()
    event = machine.open(INSTRUCTIONS.copy(read_format=TIMES))
    on_cpu = machine.open(INSTRUCTIONS.copy(read_format=TIMES), task=None, cpu=0)
    machine.run(100)
    machine.switch_to(None)
    machine.idle(5000)
    machine.switch_to(machine.task)
    machine.run(11)
    assert struct.unpack("<3Q", event.read()) == (111, 111, 111)
    assert struct.unpack("<3Q", on_cpu.read()) == (111, 5111, 5111)


def test_enable_on_exec_enables_once():
    machine = FakeMachine()
    event = machine.open(INSTRUCTIONS.copy(disabled=1, enable_on_exec=1))
    machine.run(100)
    machine.tracepoints.task_exec.fire(machine.task)
    machine.run(30)
    event.disable()
    machine.tracepoints.task_exec.fire(machine.task)
    machine.run(30)
    assert event.count() == 30


def test_the_callers_attr_is_not_changed():
    attr = PerfEventAttr(type=PerfType.SOFTWARE, config=0, freq=1, sample_period=4000)
    before = attr.copy()
    FakeMachine().open(attr)
    assert attr == before


def test_a_measuring_pmu_has_as_many_counters_as_the_architecture():
    machine = FakeMachine("aarch64", counters=31, settings=Settings.measuring())
    events = [machine.open(INSTRUCTIONS) for _ in range(31)]
    machine.run(100)
    assert [event.count() for event in events] == [100] * 31
