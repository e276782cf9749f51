"""Task: a Linux thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from emulator._native import PhysicalMemory
from emulator.arch.architecture import Architecture
from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.file import FileTable
from emulator.linux.file_tree import FileTree
from emulator.linux.interval_timers import IntervalTimer
from emulator.linux.limits import Limits
from emulator.linux.mm import MemoryMap
from emulator.linux.random import Random
from emulator.linux.signal import SignalInfo, SignalState
from emulator.linux.timers import Timers

COMM_LENGTH = 15  # characters that /proc/PID/comm keeps (TASK_COMM_LEN less its NUL)


@dataclass(slots=True)
class FileContext:
    """Linux's fs_struct: what a process's paths and creations depend on."""

    system: FileTree
    cwd: str = "/"  # absolute, normal form
    umask: int = 0o022


@dataclass(slots=True)
class PosixTimer:
    """What timer_create made."""

    clock: int
    timer: IntervalTimer
    overruns: int = 0  # of its latest signal, which may be pending
    overruns_before: int = 0  # of the one before


@dataclass(frozen=True, slots=True)
class Credentials:
    """Pinned: the guest is root of its machine. What files it reaches is decided by the host user's rights."""

    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()


class KernelServices(Protocol):
    """What a task asks of its kernel (a ``Kernel``)."""

    @property
    def architecture(self) -> Architecture: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def memory(self) -> PhysicalMemory: ...
    @property
    def random(self) -> Random: ...
    @property
    def timers(self) -> Timers: ...
    @property
    def tasks(self) -> dict[int, Task]: ...
    @property
    def cpus(self) -> list[Cpu]: ...

    def name_once(self, message: str) -> None:
        """A one-line diagnostic for the user, unless the same was given before."""

    def rename(self, task: Task, comm: str, by_exec: bool = False) -> None: ...

    def send_signal(self, task: Task, info: SignalInfo) -> None: ...

    def exit_group(self, task: Task, status: int) -> None:
        """End the task's process with a wait status word."""

    def execute(self, task: Task, path: str, argv: list[bytes], environment: list[bytes]) -> None:
        """Replace the task's program; raises LinuxError while the old one can still go on."""

    def sleep_until(self, task: Task, elapsed_ns: int | None) -> bool:
        """Idle until the machine's clock shows `elapsed_ns` (None: for ever); False if a signal came first."""


@dataclass(slots=True, eq=False)
class Task:
    """One thread of one process. Registers are in the core while it runs; `cpu` is where."""

    tid: int
    pid: int  # thread group
    ppid: int
    comm: str
    mm: MemoryMap
    files: FileTable
    fs: FileContext
    kernel: KernelServices
    cpu: Cpu
    start_time_ns: int = 0  # elapsed_ns of the machine's clock
    start_busy_ns: int = 0
    system_cycles: int = 0  # that the kernel has worked for it
    pgid: int = 0
    sid: int = 0
    exit_code: int | None = None  # wait status word, once it has ended
    signals: SignalState = field(default_factory=SignalState)
    credentials: Credentials = field(default_factory=Credentials)
    limits: Limits = field(default_factory=Limits)
    executable: str = ""  # guest path, as /proc/PID/exe shows it
    clear_child_tid: int = 0  # address zeroed when the thread ends
    robust_list: tuple[int, int] = (0, 0)  # address, length
    parent_death_signal: int = 0
    dumpable: int = 1
    no_new_privileges: bool = False
    timer_slack_ns: int = 50_000
    personality: int = 0
    affinity: int = 1  # mask of CPUs
    policy: int = 0  # SCHED_OTHER
    priority: int = 0
    nice: int = 0
    interval_timers: dict[int, IntervalTimer] = field(default_factory=dict)  # by ITIMER_*
    posix_timers: dict[int, PosixTimer] = field(default_factory=dict)  # by timer_t

    @property
    def clock(self) -> Clock:
        return self.kernel.clock

    @property
    def architecture(self) -> Architecture:
        return self.kernel.architecture

    def cpu_ns(self) -> int:
        """CPU time. The only running task has used all that its CPU executed since it started."""
        return self.kernel.clock.busy_ns() - self.start_busy_ns

    def system_ns(self) -> int:
        """... and of that, what the kernel took."""
        return self.kernel.clock.ns_of(self.system_cycles)

    def user_ns(self) -> int:
        return self.cpu_ns() - self.system_ns()

    def __hash__(self) -> int:
        return self.tid
