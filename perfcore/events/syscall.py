"""The guest's way in: perf_event_open(2), the two prctls, sysfs and sysctl files. `install_syscall` brings them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Protocol

from emulator.linux.cgroup.cgroupfs import opened_group
from emulator.linux.cgroup.cgroups import Cgroup
from emulator.linux.errors import EBADF, EINVAL, EMFILE, ENODEV, ESRCH, LinuxError
from emulator.linux.fs.open_files import PathFile
from emulator.linux.fs.virtual_files import Row, Rows
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.syscalls.entry import SyscallEntry
from emulator.linux.syscalls.table import ROWS, Address, Support, Syscall, ULong
from emulator.linux.user_breakpoints import UserBreakpoints
from perfcore.abi.constants import PERF_FLAG_ALL, OpenFlag
from perfcore.events.copied_attr import copy_attr
from perfcore.events.drivers.tracepoint import TracepointDriver
from perfcore.events.event import PerfEvent
from perfcore.events.event_file import GuestKernel, PerfEventFile, group_file
from perfcore.events.event_room import RAM_OF_EVENT_BYTES
from perfcore.events.event_state import EventState
from perfcore.events.late_probes import LateProbes
from perfcore.events.registered_devices import RegisteredDevices
from perfcore.events.subsystem import PerfEvents
from perfcore.events.sysctl import mux_interval_files, rdpmc_files, sysctl_files
from perfcore.events.sysfs import TRACE_EVENTS, TRACEFS, sysfs_files
from perfcore.events.user_breakpoints import PerfUserBreakpoints

PR_TASK_PERF_EVENTS_DISABLE = 31  # uapi/linux/prctl.h
PR_TASK_PERF_EVENTS_ENABLE = 32
WRITTEN = (  # files of tracefs
    "uprobe_events", "kprobe_events", "dynamic_events", "error_log", "available_tracers", "current_tracer",
    "tracing_on", "set_event", "set_event_pid", "synthetic_events", "trace_clock",
)  # fmt: skip


class FileTree(Protocol):
    def register_text(
        self,
        path: str,
        text: str | Callable[[], str | bytes],
        store: Callable[[bytes], None] | None = None,
        clear: Callable[[], None] | None = None,
    ) -> None: ...
    def register_late(self, path: str, rows: Rows) -> None: ...
    def unregister(self, path: str) -> None: ...


class HostingKernel(GuestKernel, Protocol):
    """A kernel that takes in a syscall and files."""

    @property
    def file_tree(self) -> FileTree: ...

    @property
    def syscalls(self) -> SyscallEntry: ...

    user_breakpoints: UserBreakpoints[Task] | None  # filled in, for ptrace
    check_fork: Callable[[Task, bool], None]  # ..., for what a child inherits

    def calling(self) -> Task: ...


def install_syscall(kernel: HostingKernel, perf_events: PerfEvents) -> None:
    """Give the guests of `kernel` the subsystem `perf_events`."""
    opening = PerfEventOpen(kernel, perf_events)
    perf_events.room.most = kernel.memory.size_bytes // RAM_OF_EVENT_BYTES
    kernel.user_breakpoints = PerfUserBreakpoints(perf_events)
    kernel.check_fork = perf_events.check_fork
    kernel.syscalls.install(Syscall("perf_event_open", opening.open, 241, 298, Support.PARTIAL, NOTE))
    prctl = next((row for row in ROWS if row.name == "prctl"), None)
    kernel.syscalls.install(_with_perf_events(prctl, perf_events))
    isa = kernel.architecture.isa
    for driver in perf_events.pmus:
        if isinstance(driver, TracepointDriver) and driver.probes is not None:
            kernel.file_tree.register_late(TRACE_EVENTS, partial(_event_files, driver.probes))
            _register_tracing_files(kernel.file_tree, driver.probes)
    for path, text in sysfs_files(perf_events.pmus):
        kernel.file_tree.register_text(path, text)
    shown = RegisteredDevices(kernel.file_tree)
    perf_events.pmus.on_registered, perf_events.pmus.on_unregistered = shown.add, shown.remove
    writable = (
        mux_interval_files(perf_events.pmus),
        rdpmc_files(perf_events.pmus),
        sysctl_files(isa, perf_events.settings),
    )
    for path, text, store in chain(*writable):
        kernel.file_tree.register_text(path, text, store)


def _event_files(probes: LateProbes) -> Iterator[Row]:
    return probes.get().event_files()


def _register_tracing_files(tree: FileTree, probes: LateProbes) -> None:
    """Where probes are defined and listed, and others of tracefs; of each the text is made when it is read."""

    def register(directory: str, name: str, written: bool = False) -> None:
        def store(data: bytes) -> None:
            probes.get().store(name, data)

        def clear() -> None:
            probes.get().clear(name)

        path = f"{directory}/{name}"
        tree.register_text(path, lambda: probes.get().text(name), *((store, clear) if written else ()))

    for name in WRITTEN:
        register(TRACEFS, name, written=True)
    for name in ("uprobe_profile", "kprobe_profile", "README", "available_events", "available_filter_functions"):
        register(TRACEFS, name)
    register("/proc", "kallsyms")


NOTE = "tracepoints of tasks, signals and system calls, probes; no branch records; no PMU traces"


class PerfEventOpen:
    """The syscall. Checks come in the order of kernel/events/core.c."""

    def __init__(self, kernel: HostingKernel, perf_events: PerfEvents) -> None:
        self._kernel = kernel
        self._perf_events = perf_events

    def open(self, task: Task, attr: Address, pid: int, cpu: int, group_fd: int, flags: ULong) -> int:
        if flags & ~PERF_FLAG_ALL:
            raise LinuxError(EINVAL, f"perf_event_open flags {flags:#x}")
        wanted = copy_attr(task, attr)
        self._perf_events.check(wanted, task)
        of_cgroup = bool(flags & OpenFlag.PID_CGROUP)
        if of_cgroup and -1 in (pid, cpu):
            raise LinuxError(EINVAL, "PERF_FLAG_PID_CGROUP: pid is a cgroup's directory, on one CPU")
        files = task.files
        if files.in_use >= files.limit:
            raise LinuxError(EMFILE, f"there are {files.limit} descriptors, and all are in use")
        group = None if group_fd == -1 else group_file(task, group_fd)
        if group is not None and group.event.state <= EventState.REVOKED:
            raise LinuxError(ENODEV, f"the PMU {group.event.driver.name} of the group leader has gone")
        target = None if pid == -1 or of_cgroup else self._target(task, pid)
        self._perf_events.room.check(1)
        leader = None if group is None else group.event
        connect = partial(_cgroup, task, pid) if of_cgroup else None
        event = self._perf_events.create(wanted, target, cpu, leader, flags, task, connect)
        file = PerfEventFile(self._perf_events, self._kernel, event, task)
        if group is not None and flags & OpenFlag.FD_OUTPUT:
            file.share_output(group)
        file.descriptor = files.install(file, bool(flags & OpenFlag.FD_CLOEXEC))
        return file.descriptor

    def _target(self, task: Task, pid: int) -> Task:
        if pid == 0:
            return task
        target = self._kernel.tasks.get(pid)
        if target is None or target.exit_code is not None:
            raise LinuxError(ESRCH, f"there is no task {pid}")
        return target


def _cgroup(task: Task, descriptor: int) -> Cgroup:
    """That whose directory is open, to be read."""
    file = task.files.get(descriptor)
    if isinstance(file, PathFile):
        raise LinuxError(EBADF, f"descriptor {descriptor} was opened with O_PATH")
    return opened_group(file).group


def _with_perf_events(row: Syscall | None, perf_events: PerfEvents) -> Syscall:
    """prctl with the two options that are ours; all others go to the kernel's own row."""
    rest = None if row is None else row.compile()
    orders: dict[int, Callable[[PerfEvent], None]] = {
        PR_TASK_PERF_EVENTS_ENABLE: PerfEvent.enable,
        PR_TASK_PERF_EVENTS_DISABLE: PerfEvent.disable,
    }

    def prctl(task: Task, option: ULong, a: ULong, b: ULong, c: ULong, d: ULong) -> int | Sleeping[int] | None:
        order = orders.get(option & 0xFFFF_FFFF)
        if order is not None:
            for event in perf_events.owned_by(task):
                order(event)
            return 0
        if rest is None:
            raise LinuxError(EINVAL, f"prctl option {option} is not modelled")
        return rest(task, (option, a, b, c, d, 0))

    if row is None:
        return Syscall("prctl", prctl, 167, 157, Support.PARTIAL, "perf events only")
    return Syscall(row.name, prctl, row.aarch64, row.x86_64, row.support, row.note)
