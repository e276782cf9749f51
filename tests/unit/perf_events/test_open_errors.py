"""What perf_event_open refuses, and with which errno."""

import pytest

from emulator.linux.errors import E2BIG, EACCES, EINVAL, ENODEV, ENOENT, EOPNOTSUPP, EOVERFLOW, NAMES, LinuxError
from emulator.linux.process.credentials import Credentials
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import BranchSampleType, OpenFlag, PerfType, SampleType, SoftwareId
from perfcore.events.settings import Settings
from pmu.generic_events import HardwareId
from unit.perf_events.fake_machine import FakeMachine, FakeTask

INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.INSTRUCTIONS, exclude_kernel=1)
BRANCHES = INSTRUCTIONS.copy(sample_type=SampleType.BRANCH_STACK)

CASES = [
    (INSTRUCTIONS.copy(reserved_1=1), EINVAL),
    (INSTRUCTIONS.copy(read_format=1 << 30), EINVAL),
    (INSTRUCTIONS.copy(read_format=1 << 35), EINVAL),
    (INSTRUCTIONS.copy(sample_type=1 << 25), EINVAL),
    (INSTRUCTIONS.copy(freq=1, sample_period=100_001), EINVAL),  # perf_event_max_sample_rate is 100,000
    (INSTRUCTIONS.copy(sample_period=0xC0000000000000BD), EINVAL),  # 63 bits
    (INSTRUCTIONS.copy(type=0xFFFFFFFB), ENOENT),  # -5
    (INSTRUCTIONS.copy(config=0xFFFFFFFF), EINVAL),
    (INSTRUCTIONS.copy(type=PerfType.TRACEPOINT), ENOENT),
    (INSTRUCTIONS.copy(type=PerfType.SOFTWARE, config=99), ENOENT),
    (INSTRUCTIONS.copy(type=PerfType.HW_CACHE, config=0x0000FF), EINVAL),  # no such cache
    (INSTRUCTIONS.copy(type=PerfType.HW_CACHE, config=0x010006), ENOENT),  # NODE read misses
    (BRANCHES, EINVAL),  # no branch_sample_type
    (BRANCHES.copy(branch_sample_type=BranchSampleType.ANY), EOPNOTSUPP),
    (BRANCHES.copy(type=1, config=SoftwareId.PAGE_FAULTS, branch_sample_type=BranchSampleType.ANY), EOPNOTSUPP),
    (INSTRUCTIONS.copy(sample_type=SampleType.REGS_USER), EINVAL),  # no register
    (INSTRUCTIONS.copy(sample_type=SampleType.REGS_USER, sample_regs_user=1 << 40), EINVAL),
    (INSTRUCTIONS.copy(sample_type=SampleType.STACK_USER, sample_stack_user=12), EINVAL),
    (INSTRUCTIONS.copy(sample_type=SampleType.WEIGHT | SampleType.WEIGHT_STRUCT), EINVAL),
    (INSTRUCTIONS.copy(sample_type=SampleType.CALLCHAIN, sample_max_stack=128), EOVERFLOW),
    (INSTRUCTIONS.copy(inherit=1, sample_type=SampleType.READ), EINVAL),
    (INSTRUCTIONS.copy(inherit_thread=1), EINVAL),
    (INSTRUCTIONS.copy(remove_on_exec=1, enable_on_exec=1), EINVAL),
    (INSTRUCTIONS.copy(use_clockid=1, clockid=0), EINVAL),
    (INSTRUCTIONS.copy(sample_type=SampleType.AUX, aux_sample_size=4096), EINVAL),
]


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
@pytest.mark.parametrize(("attr", "code"), CASES, ids=[f"{NAMES[code]}-{attr!r}" for attr, code in CASES])
def test_a_wrong_attr_has_the_kernels_errno(isa, attr, code):
    with pytest.raises(LinuxError) as error:
        FakeMachine(isa).open(attr)
    assert error.value.code == code
    assert error.value.why


def test_idle_cannot_be_excluded_on_arm():
    with pytest.raises(LinuxError) as error:
        FakeMachine("aarch64").open(INSTRUCTIONS.copy(exclude_idle=1))
    assert error.value.code == EOPNOTSUPP
    FakeMachine("x86_64").open(INSTRUCTIONS.copy(exclude_idle=1))


@pytest.mark.parametrize(("task", "cpu"), [("current", -5), ("current", 1), (None, -1), (None, 7)])
def test_a_cpu_must_exist_and_be_given_without_a_task(task, cpu):
    with pytest.raises(LinuxError) as error:
        FakeMachine().open(INSTRUCTIONS, task=task, cpu=cpu)
    assert error.value.code == EINVAL


def test_an_ended_task_cannot_be_counted():
    machine = FakeMachine()
    ended = FakeTask(1001, machine.cpu, exit_code=0)
    with pytest.raises(LinuxError) as error:
        machine.open(INSTRUCTIONS, task=ended)
    assert error.value.code == ENODEV


def test_paranoia_refuses_the_guest_and_never_the_tool():
    machine = FakeMachine(settings=Settings(paranoid=2))
    machine.task.credentials = Credentials(uid=1000)
    for attr, task, cpu in ((INSTRUCTIONS.copy(exclude_kernel=0), "current", -1), (INSTRUCTIONS, None, 0)):
        with pytest.raises(LinuxError) as error:
            machine.open(attr, task=task, cpu=cpu, owner=machine.task)
        assert error.value.code == EACCES
        machine.open(attr, task=task, cpu=cpu)
    machine.open(INSTRUCTIONS, owner=machine.task)
    machine.task.credentials = Credentials()
    machine.open(INSTRUCTIONS, task=None, cpu=0, owner=machine.task)


def test_a_group_whose_reading_would_have_16_kib_is_too_big():
    machine = FakeMachine()
    leader = machine.open(PerfEventAttr(type=1, config=SoftwareId.DUMMY, read_format=0x1F))
    attr = PerfEventAttr(type=1, config=SoftwareId.DUMMY)
    for _ in range(680):  # 681 in the group: 8 * (1 + 2 + 3 * 681) = 16,368 bytes
        machine.open(attr, group=leader)
    with pytest.raises(LinuxError) as error:  # 682: 16,392 bytes
        machine.open(attr, group=leader)
    assert error.value.code == E2BIG


def test_output_needs_a_buffer_to_go_to():
    machine = FakeMachine()
    leader = machine.open(INSTRUCTIONS)
    with pytest.raises(LinuxError) as error:  # as Linux since 2.6.36
        machine.open(INSTRUCTIONS, group=leader, flags=OpenFlag.FD_OUTPUT)
    assert error.value.code == EINVAL
