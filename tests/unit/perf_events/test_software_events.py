"""Software events and sideband records, driven by tracepoints."""

from emulator.linux.mm.mapping import MappedFile, Mapping
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, ReadFormat, RecordType, SampleType, SoftwareId
from perfcore.abi.records import Comm, Exit, Fork, Mmap, Mmap2, Read, Switch, decode_record
from perfcore.abi.sample import HEADER, decode_sample_id, sample_id_size
from perfcore.events.event_state import EventState
from perfcore.events.ring_buffer import RingBuffer
from pmu.generic_events import HardwareId
from unit.perf_events.fake_machine import FakeMachine, FakeTask
from unit.perf_events.test_sampling import BOOT_NS, record, records, samples

INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=HardwareId.INSTRUCTIONS, exclude_kernel=1)
DUMMY = PerfEventAttr(type=PerfType.SOFTWARE, config=SoftwareId.DUMMY)
FAULTS = PerfEventAttr(type=PerfType.SOFTWARE, config=SoftwareId.PAGE_FAULTS)
PROGRAM = MappedFile("/bin/program", 8, 1, 4242, 3)
CODE = Mapping(0x400000, 0x402000, 5, 2, 0x1000, PROGRAM)
DATA = Mapping(0x410000, 0x411000, 3, 2)


def software(config):
    return PerfEventAttr(type=PerfType.SOFTWARE, config=config)


def decoded(event):
    return [decode_record(data) for data in records(event.ring_buffer.drain())]


def fault(machine, address=0x1234, major=False, user=True):
    """As Linux tells it: first that it is one, then what became of it."""
    machine.tracepoints.page_fault_entry.fire(machine.task, address, 1, False, user)
    machine.tracepoints.page_fault.fire(machine.task, address, major, user)


def test_faults_are_counted_by_kind():
    machine = FakeMachine()
    kinds = (SoftwareId.PAGE_FAULTS, SoftwareId.PAGE_FAULTS_MIN, SoftwareId.PAGE_FAULTS_MAJ, SoftwareId.DUMMY)
    events = [machine.open(software(kind)) for kind in kinds]
    assert machine.tracepoints.page_fault
    assert machine.tracepoints.page_fault_entry
    for major in (False, True, False, None):  # None: it ended in a signal
        fault(machine, major=major)
    assert [event.count() for event in events] == [4, 2, 1, 0]
    for event in events:
        event.disable()
    assert not machine.tracepoints.page_fault  # nobody listens, so nobody pays
    assert not machine.tracepoints.page_fault_entry


def test_a_fault_is_not_counted_without_user_mode():
    machine = FakeMachine()
    event = machine.open(FAULTS.copy(exclude_user=1))
    fault(machine)
    assert event.count() == 0


def test_a_fault_of_the_kernels_own_copy_is_the_kernels():
    machine = FakeMachine()
    both, user, kernel = (
        machine.open(FAULTS.copy(exclude_user=without_user, exclude_kernel=without_kernel))
        for without_user, without_kernel in ((0, 0), (0, 1), (1, 0))
    )
    for by_user in (True, False, True):
        fault(machine, user=by_user)
    assert [event.count() for event in (both, user, kernel)] == [3, 2, 1]


def test_every_third_fault_is_sampled_with_its_address():
    machine = FakeMachine()
    event = record(machine, FAULTS.copy(sample_period=3, sample_type=SampleType.ADDR))
    for number in range(10):
        fault(machine, 0x1000 * number)
    assert [sample.addr for sample in samples(event)] == [0x2000, 0x5000, 0x8000]  # the 3rd, 6th and 9th


def test_with_a_period_in_the_sample_every_fault_is_one():
    machine = FakeMachine()
    event = record(machine, FAULTS.copy(sample_period=3, sample_type=SampleType.PERIOD))
    for _ in range(4):
        fault(machine)
    assert [sample.period for sample in samples(event)] == [1, 1, 1, 1]  # perf_swevent_event


def test_context_switches_are_the_kernels():
    machine = FakeMachine()
    kernel = machine.open(software(SoftwareId.CONTEXT_SWITCHES))
    user = machine.open(software(SoftwareId.CONTEXT_SWITCHES).copy(exclude_kernel=1))
    for _ in range(3):
        machine.switch_to(None)
        machine.switch_to(machine.task)
    assert (kernel.count(), user.count()) == (3, 0)


def test_task_clock_is_guest_time():
    machine = FakeMachine()
    event = machine.open(software(SoftwareId.TASK_CLOCK).copy(disabled=1))
    machine.run(1000)
    event.enable()
    machine.run(777)
    assert event.count() == 777


def test_the_records_of_an_exec():
    machine = FakeMachine()
    event = record(machine, DUMMY.copy(comm=1, mmap=1, mmap2=1, task=1))
    machine.tracepoints.task_comm.fire(machine.task, True)
    machine.tracepoints.mmap.fire(machine.task, CODE)
    machine.tracepoints.mmap.fire(machine.task, DATA)  # not executable, and mmap_data is not set
    comm, mapped = records(event.ring_buffer.drain())
    assert HEADER.unpack_from(comm)[1] == 1 << 13  # PERF_RECORD_MISC_COMM_EXEC
    assert decode_record(comm) == Comm(1000, 1000, "fake")
    assert HEADER.unpack_from(mapped)[1] == 2  # PERF_RECORD_MISC_USER
    assert decode_record(mapped) == Mmap2(1000, 1000, 0x400000, 0x2000, 0x1000, 8, 1, 4242, 3, 5, 2, "/bin/program")


def test_data_mappings_are_for_who_wants_them():
    machine = FakeMachine()
    event = record(machine, DUMMY.copy(mmap_data=1))
    machine.tracepoints.mmap.fire(machine.task, CODE)
    machine.tracepoints.mmap.fire(machine.task, DATA)
    (mapped,) = records(event.ring_buffer.drain())
    assert HEADER.unpack_from(mapped)[1] == 2 | 1 << 13  # PERF_RECORD_MISC_MMAP_DATA
    # anonymous memory has its address as its offset
    assert decode_record(mapped) == Mmap(1000, 1000, 0x410000, 0x1000, 0x410000, "//anon")


def test_sideband_ends_with_the_sample_id():
    machine = FakeMachine()
    wanted = SampleType.IP | SampleType.TID | SampleType.TIME | SampleType.ID | SampleType.CPU
    event = record(machine, DUMMY.copy(comm=1, sample_id_all=1, sample_type=wanted))
    machine.run(50)
    machine.tracepoints.task_comm.fire(machine.task, False)
    (comm,) = records(event.ring_buffer.drain())
    assert decode_record(comm, sample_id_size(wanted)) == Comm(1000, 1000, "fake")
    trailer = decode_sample_id(wanted, comm)
    assert (trailer.pid, trailer.tid, trailer.time, trailer.id, trailer.cpu) == (1000, 1000, BOOT_NS + 50, event.id, 0)


def test_a_child_inherits_counts_apart_and_gives_its_count_back():
    machine = FakeMachine()
    times = ReadFormat.TOTAL_TIME_ENABLED | ReadFormat.TOTAL_TIME_RUNNING
    event = machine.open(INSTRUCTIONS.copy(inherit=1, task=1, inherit_stat=1, read_format=times))
    event.attach_buffer(RingBuffer.allocate(8))
    alone = machine.open(INSTRUCTIONS)
    machine.run(100)
    child = FakeTask(1001, machine.cpu, ppid=1000)
    machine.tracepoints.task_fork.fire(machine.task, child)
    machine.switch_to(child)
    machine.run(30)
    assert (event.count(), alone.count()) == (130, 100)
    child.exit_code = 0
    machine.tracepoints.task_exit.fire(child)
    assert not event.children
    assert event.count() == 130
    assert event.read_values()[:3] == (130, 130, 130)
    fork, end, read = decoded(event)
    assert fork == Fork(1001, 1000, 1001, 1000, BOOT_NS + 100)
    assert end == Exit(1001, 1000, 1001, 1000, BOOT_NS + 130)
    assert read == Read(1001, 1001, (30).to_bytes(8, "little") * 3)


def test_samples_of_a_child_go_to_the_parents_buffer_under_its_id():
    machine = FakeMachine()
    attr = INSTRUCTIONS.copy(
        inherit=1, sample_period=100, sample_type=SampleType.TID | SampleType.ID | SampleType.STREAM_ID
    )
    event = record(machine, attr)
    child = FakeTask(1001, machine.cpu, ppid=1000)
    machine.tracepoints.task_fork.fire(machine.task, child)
    machine.switch_to(child)
    machine.run(100)
    (sample,) = samples(event)
    assert (sample.tid, sample.id) == (1001, event.id)
    assert sample.stream_id == next(iter(event.children)).id != event.id


def test_a_disabled_parent_has_disabled_children_and_orders_reach_them():
    machine = FakeMachine()
    event = machine.open(INSTRUCTIONS.copy(inherit=1, disabled=1))
    child = FakeTask(1001, machine.cpu, ppid=1000)
    machine.tracepoints.task_fork.fire(machine.task, child)
    machine.switch_to(child)
    machine.run(10)
    assert event.count() == 0
    event.enable()
    machine.run(10)
    assert event.count() == 10


def test_the_event_of_a_task_that_has_gone_keeps_its_count():
    machine = FakeMachine()
    event = machine.open(INSTRUCTIONS)
    machine.run(10)
    machine.tracepoints.task_exit.fire(machine.task)
    machine.run(10)
    assert event.count() == 10
    assert event.state == EventState.EXIT
    event.close()


def test_switches_are_recorded_for_who_wants_them():
    machine = FakeMachine()
    event = record(machine, DUMMY.copy(context_switch=1))
    machine.switch_to(None)
    machine.switch_to(machine.task)
    out, back = records(event.ring_buffer.drain())
    assert HEADER.unpack_from(out) == (RecordType.SWITCH, 1 << 13, 8)  # PERF_RECORD_MISC_SWITCH_OUT
    assert HEADER.unpack_from(back) == (RecordType.SWITCH, 0, 8)
    assert decode_record(out) == Switch()
