"""/proc and /sys: the machine's own, row by row; and the links that lead to what is open."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from emulator.arch.cpuid import Cpuid
from emulator.arch.processor import X86_64_CACHES, Processor
from emulator.linux.errors import EINVAL, ENOENT, LinuxError
from emulator.linux.fs import sysfs
from emulator.linux.fs.file import O_RDWR, O_WRONLY, File
from emulator.linux.mm.mapping import MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE, MappedFile, Mapping
from emulator.linux.mm.program_bounds import ProgramBounds
from emulator.linux.proc import procfs
from emulator.linux.process.credentials import Credentials
from emulator.linux.process.limits import Limits
from emulator.linux.process.task import TaskState
from emulator.linux.random import Random
from emulator.sysregs import SystemRegisters

TEXT = MappedFile("/bin/program", 8, 1, 1001)


class Machine:
    """A kernel of one process, as /proc looks at it."""

    def __init__(self, guest) -> None:
        self.guest = guest
        self.architecture = guest.task.architecture
        self.clock = guest.task.clock
        self.memory = SimpleNamespace(size_bytes=4 << 30)
        self.processor = Processor(1, 1_000_000_000, caches=X86_64_CACHES)
        registers = SystemRegisters()
        registers.claim_cpuid(Cpuid(self.processor, 0))
        core = SimpleNamespace(cycles=0)
        self.cpus = [SimpleNamespace(number=0, idle_cycles=0, core=core, system_registers=registers)]
        self.random = Random(1)
        self.file_tree = guest.tree
        self.comms: list[str] = []
        task = guest.task
        task.comm, task.ppid, task.pgid, task.sid = "program", 999, 1000, 999
        task.executable = "/bin/program"
        task.cpu = self.cpus[0]
        task.kernel.tasks = {task.tid: task}
        task.kernel.cpus = self.cpus
        task.kernel.rename = self.rename
        task.exit_code = None
        task.state, task.nice = TaskState.RUNNABLE, 0
        task.process = SimpleNamespace(threads=[task])
        task.start_time_ns = task.running_since = 0
        task.user_ns = lambda: 250_000_000
        task.system_ns = lambda: 40_000_000
        task.personality = 0
        task.tracer = None
        task.no_new_privileges = False
        task.seccomp = None
        task.affinity = 1
        task.limits = Limits()
        task.credentials = Credentials()
        mm = task.mm
        mm.mappings = [
            Mapping(0x40_0000, 0x40_1000, PROT_READ | PROT_EXEC, MAP_PRIVATE, 0x2000, TEXT),
            Mapping(0x60_0000, 0x60_3000, PROT_READ | PROT_WRITE, MAP_PRIVATE, name="[heap]"),
            Mapping(0x7FFF_F7FF_D000, 0x7FFF_F7FF_E000, PROT_READ, MAP_PRIVATE),
        ]
        mm.resident_pages = lambda: 3
        task.minor_faults, task.major_faults = 5, 1
        mm.brk_start = 0
        mm.program = ProgramBounds(
            0x40_0000,
            0x40_0800,
            argument_start=0x1000,
            argument_end=0x100B,
            environment_start=0x100B,
            environment_end=0x100F,
            auxiliary_vector=bytes(16),
        )
        mm.write(0x1000, b"program\0-x\0A=1\0")
        self.tasks = {1000: task}

    def calling(self) -> object:
        return self.guest.task

    def rename(self, task: object, comm: str, by_exec: bool = False) -> None:
        self.guest.task.comm = comm


@pytest.fixture
def machine(guest) -> Machine:
    machine = Machine(guest)
    procfs.install(machine)
    sysfs.install(machine)
    return machine


def text(machine: Machine, path: str) -> str:
    return machine.guest.read(path).decode()


def test_maps(machine):
    lines = text(machine, "/proc/self/maps").splitlines()
    assert lines == [
        "00400000-00401000 r-xp 00002000 08:01 1001" + " " * 31 + "/bin/program",
        "00600000-00603000 rw-p 00000000 00:00 0" + " " * 34 + "[heap]",
        "7ffff7ffd000-7ffff7ffe000 r--p 00000000 00:00 0 ",
    ]
    assert lines[0].index("/") == lines[1].index("[") == 73  # the names' column in Linux


def test_stat_has_its_52_fields(machine):
    fields = text(machine, "/proc/self/stat").split()
    assert len(fields) == 52
    assert fields[:5] == ["1000", "(program)", "R", "999", "1000"]
    assert fields[13] == "25"  # utime: 0.25 s in ticks of 10 ms
    assert fields[21] == "10000"  # the machine started 100 s after its boot
    assert fields[22] == str(5 * 4096)  # vsize: 1 + 3 + 1 pages
    assert text(machine, "/proc/self/statm") == "5 3 0 1 0 3 0\n"  # text: 0x800 bytes are a page; data: the heap


def test_status_limits_and_arguments(machine):
    status = dict(line.split(":\t", 1) for line in text(machine, "/proc/self/status").splitlines())
    assert (status["Name"], status["Pid"], status["VmRSS"]) == ("program", "1000", "      12 kB")
    assert "Max open files            1024                 524288               files" in text(
        machine, "/proc/self/limits"
    )
    assert text(machine, "/proc/self/cmdline") == "program\0-x\0"
    assert text(machine, "/proc/1000/environ") == "A=1\0"


def test_comm_can_be_written(machine):
    machine.guest.write("/proc/self/comm", b"renamed\n", O_WRONLY)
    assert text(machine, "/proc/1000/comm") == "renamed\n"
    with pytest.raises(LinuxError) as caught:
        machine.guest.write("/proc/self/maps", b"x", O_RDWR)
    assert caught.value.code == EINVAL


def test_links(machine):
    tree, start = machine.guest.tree, machine.guest.start()
    assert tree.find(start, "/proc/self", follow=False).node.target() == "1000"
    assert tree.find(start, "/proc/thread-self", follow=False).node.target() == "1000/task/1000"
    assert tree.find(start, "/proc/self/exe", follow=False).node.target() == "/bin/program"
    assert tree.find(start, "/proc/self/cwd").path == str(machine.guest.cwd)


def test_the_root_link_leads_to_the_guests_root(machine):
    (machine.guest.elsewhere / "a").write_bytes(b"content")
    assert machine.guest.read(f"/proc/self/root{machine.guest.elsewhere}/a") == b"content"
    with pytest.raises(LinuxError):
        machine.guest.write(f"/proc/self/root{machine.guest.elsewhere}/a", b"x")
    assert machine.guest.tree.find(machine.guest.start(), "/proc/self/root/..").path == "/"


def test_a_descriptors_link_opens_the_file_again_by_its_own_rules(machine):
    guest = machine.guest
    (guest.elsewhere / "a").write_bytes(b"content")
    number = guest.open(guest.elsewhere / "a")
    assert guest.names("/proc/self/fd") == [str(number)]
    assert guest.read(f"/proc/self/fd/{number}") == b"content"
    with pytest.raises(LinuxError):
        guest.write(f"/proc/self/fd/{number}", b"x")
    assert (guest.elsewhere / "a").read_bytes() == b"content"
    directory = guest.open(guest.elsewhere)
    assert guest.read(f"/proc/self/fd/{directory}/a") == b"content"


def test_a_descriptors_link_opens_a_file_that_has_lost_its_name(machine):
    guest = machine.guest
    guest.write(guest.tmp / "a", b"content")
    number = guest.open(guest.tmp / "a")
    guest.tree.remove(guest.start(), str(guest.tmp / "a"))
    assert guest.read(f"/proc/self/fd/{number}") == b"content"


@pytest.mark.parametrize(
    "path", ["/proc/2", "/proc/999", "/proc/kcore", "/proc/self/syscall", "/proc/sys/kernel/core_pattern"]
)
def test_what_is_not_a_row_does_not_exist(machine, path):
    with pytest.raises(LinuxError) as caught:
        machine.guest.open(path)
    assert caught.value.code == ENOENT


def test_the_machines_rows(machine):
    assert text(machine, "/proc/sys/kernel/pid_max") == "4194304\n"
    assert text(machine, "/proc/meminfo").splitlines()[0] == "MemTotal:        4194304 kB"
    assert text(machine, "/proc/uptime") == "100.00 0.00\n"
    assert text(machine, "/sys/devices/system/cpu/online") == "0\n"
    assert text(machine, "/sys/devices/system/node/node0/cpu0/node0/cpulist") == "0\n"  # by links, there and back
    first, second = (text(machine, "/proc/sys/kernel/random/uuid") for _ in range(2))
    assert first != second
    assert first[14] == "4"


def test_cpuinfo_is_the_modelled_processors(machine, make_guest):
    assert "CPU part\t: 0xd08\n" in text(machine, "/proc/cpuinfo")  # Cortex-A72
    assert text(machine, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1") == "0x00000000410fd083\n"
    other = Machine(make_guest("x86_64"))
    procfs.install(other)
    sysfs.install(other)
    assert "model\t\t: 94\n" in text(other, "/proc/cpuinfo")  # family 6, model 5EH
    assert text(other, "/sys/devices/system/cpu/cpu0/cache/index0/size") == "32K\n"


def test_another_room_adds_a_file(machine):
    class Type(File):
        def read(self, task, destination):
            return destination.give(b"8\n")

    machine.guest.tree.register("/sys/bus/event_source/devices/pmu/type", lambda task, flags: Type(flags))
    assert text(machine, "/sys/bus/event_source/devices/pmu/type") == "8\n"
    assert machine.guest.names("/sys/bus/event_source/devices") == ["pmu"]
    machine.guest.tree.register_text("/sys/bus/event_source/devices/pmu/format/event", "config:0-15\n")
    assert text(machine, "/sys/bus/event_source/devices/pmu/format/event") == "config:0-15\n"
    with pytest.raises(ValueError, match="not below"):
        machine.guest.tree.register("/etc/x", lambda task, flags: Type(flags))


LOOKS = {
    "stat": lambda guest: guest.stat("/sys/late").links == 4,  # `a` and `empty`, itself and its name
    "list": lambda guest: guest.names("/sys/late") == ["a", "b", "empty"],
    "open": lambda guest: guest.read("/sys/late/a/id") == b"1\n",
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_late_directory_is_filled_once_when_somebody_looks_into_it(guest, look):
    asked: list[str] = []

    def rows():
        asked.append(look)
        yield "a/id", "1\n"
        yield "b", lambda: "2\n"

    guest.tree.register_late("/sys/late", rows)
    guest.tree.register_directory("/sys/late/empty")
    guest.tree.register_text("/sys/other", "3\n")
    assert guest.read("/sys/other") == b"3\n"
    assert {"late", "other"} <= set(guest.names("/sys"))
    assert asked == []
    assert all(LOOKS[name](guest) for name in (look, *LOOKS))
    assert guest.read("/sys/late/b") == b"2\n"
    assert asked == [look]
