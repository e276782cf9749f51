"""Task: a Linux thread, and Process: what threads of one process share."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from emulator._native import Core, PhysicalMemory, RegisterState
from emulator.clock import Clock
from emulator.cpu import Cpu, TrapKind
from emulator.linux.arch.architecture import Architecture
from emulator.linux.cgroup.cgroups import Cgroup
from emulator.linux.debug_registers import DebugRegisters
from emulator.linux.fs.file import FileTable
from emulator.linux.fs.file_tree import FileTree
from emulator.linux.ipc.ipc import Ipc
from emulator.linux.mm.mapping import MappedFile
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.credentials import Credentials
from emulator.linux.process.limits import Limits
from emulator.linux.process.posix_timers import PosixTimers
from emulator.linux.process.tracee import Tracee
from emulator.linux.process.usage import Usage
from emulator.linux.random import Random
from emulator.linux.sched.futexes import Futexes
from emulator.linux.sched.hrtimers import HrTimer, HrTimerMode, HrTimers
from emulator.linux.sched.interval_timers import IntervalTimer
from emulator.linux.sched.policies import REAL_TIME
from emulator.linux.sched.timers import Timer, Timers
from emulator.linux.sched.waiting import Sleep, WaitQueue, Wake
from emulator.linux.seccomp.filters import Seccomp
from emulator.linux.signals.signal import Generated, Interrupted, SignalAction, SignalInfo, SignalState
from emulator.linux.user_breakpoints import UserBreakpoints
from emulator.sysregs import UndefinedRegister

INIT = 1  # the pid of the process that has always been there
COMM_LENGTH = 15  # characters that /proc/PID/comm keeps (TASK_COMM_LEN less its NUL)


@dataclass(slots=True)
class FileContext:
    """Linux's fs_struct: what a process's paths and creations depend on."""

    system: FileTree
    cwd: str = "/"  # absolute, normal form
    umask: int = 0o022


@dataclass(slots=True)
class Registration:
    """What a thread has shown the kernel for its restartable sequences (rseq(2))."""

    address: int
    length: int
    signature: int
    cpu: int = -1  # whose number stands there
    stale: bool = False  # the thread has been away from its CPU


class DispatcherServices(Protocol):
    """What system calls ask of who puts tasks onto CPUs (a ``Dispatcher``)."""

    def wake(self, task: Task, reason: Wake) -> bool: ...

    def interrupt(self, task: Task) -> None: ...

    def yield_(self, task: Task) -> None: ...

    def reclassify(self, task: Task) -> None: ...

    def set_affinity(self, task: Task, mask: int) -> None: ...

    def stop(self, task: Task) -> None: ...

    def go_on(self, task: Task) -> None: ...

    def registers_of(self, task: Task) -> AbstractContextManager[Core]: ...

    def timers_of(self, cpu: Cpu) -> Timers: ...


class LifecycleServices(Protocol):
    """What system calls ask of who makes and ends tasks (a ``Lifecycle``)."""

    @property
    def last_tid(self) -> int: ...

    def clone(self, parent: Task, request: CloneRequest) -> Task: ...

    def execute(self, task: Task, path: str, argv: list[bytes], environment: list[bytes]) -> None:
        """Replace the task's program; raises LinuxError while the old one can still go on."""

    def end_thread(self, task: Task, status: int) -> None: ...

    def end_process(self, process: Process, status: int) -> None:
        """... with a wait status word."""

    def tell_end(self, process: Process) -> None:
        """To the parent of one that has ended."""

    def reap(self, child: Process) -> None: ...

    def unshare_files(self, task: Task) -> None: ...


class PtraceBreakpoints(Protocol):
    """Hardware breakpoints that a tracer has set (``TaskDebugRegisters`` of x86-64)."""

    def flush(self) -> None:
        """All of them are gone: what they were for is (flush_ptrace_hw_breakpoint)."""


class SteppingServices(Protocol):
    """What ptrace(2) asks of who steps tasks (a ``Stepping``)."""

    def begin(self) -> None: ...


class TerminalServices(Protocol):
    """What is asked of the machine's terminals (a ``Terminals``)."""

    def told_of(self, process: Process) -> tuple[int, int]:
        """The device number of its terminal, and the group in the foreground of that, as /proc/PID/stat says it."""


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
    def timers(self) -> Timers:
        """Of the CPU for which the machine works at the moment."""

    @property
    def outside_hears(self) -> Callable[[int, int], bool]:
        """Of a signal for a process that is none of the machine's: whether anybody takes it."""

    @property
    def tasks(self) -> dict[int, Task]: ...
    @property
    def cpus(self) -> list[Cpu]: ...
    @property
    def dispatcher(self) -> DispatcherServices: ...
    @property
    def lifecycle(self) -> LifecycleServices: ...
    @property
    def terminals(self) -> TerminalServices: ...
    @property
    def futexes(self) -> Futexes: ...
    @property
    def hrtimers(self) -> HrTimers: ...
    @property
    def ipc(self) -> Ipc: ...
    @property
    def debug_registers(self) -> dict[int, DebugRegisters]:
        """By the CPU's number."""

    @property
    def check_fork(self) -> Callable[[Task, bool], None]:
        """Of a parent, and whether it makes a thread. LinuxError: there is no child."""

    @property
    def user_breakpoints(self) -> UserBreakpoints[Task] | None:
        """None: there is no perf."""

    def writes_mapped(self, file: MappedFile) -> bool:
        """Whether any process has it mapped so that it could write it."""

    def name_once(self, message: str) -> None:
        """A one-line diagnostic for the user, unless the same was given before."""

    def rename(self, task: Task, comm: str, by_exec: bool = False) -> None: ...

    def send_signal(self, task: Task, info: SignalInfo) -> bool:
        """To a thread; False where a signal that queues finds no room."""

    def signal_process(self, process: Process, info: SignalInfo) -> bool:
        """To the first thread of a process that does not block it."""

    # To whoever wants to hear; see ``Tracepoints``

    def tell_generated(self, task: Task, info: SignalInfo, group: bool, result: Generated) -> None: ...

    def tell_delivered(self, task: Task, info: SignalInfo, action: SignalAction) -> None: ...

    def tell_waits(self, task: Task, number: int) -> None: ...

    def tell_itimer(self, task: Task, which: int, value_ns: int, interval_ns: int) -> None: ...

    def tell_itimer_expired(self, process: Process, which: int) -> None: ...

    def calling(self) -> Task:
        """The task for which the machine works at the moment: it made the system call."""

    def out_of_memory(self, task: Task) -> None:
        """The machine has no frame left for what `task` does: its process ends."""

    @property
    def stepping(self) -> SteppingServices: ...

    def return_traced(self, task: Task, interrupted: Interrupted | None) -> None:
        """A traced task is on its way back to user mode, and may stop there."""

    def dies_of_instruction(self, task: Task, pc: int) -> None:
        """SIGILL ends the task's process, and nobody has sent that."""


@dataclass(frozen=True, slots=True)
class CloneRequest:
    """What clone(2) is asked for."""

    flags: int  # CLONE_*, without the signal
    exit_signal: int = 0
    stack_pointer: int = 0  # 0: the parent's
    parent_tid: int = 0  # addresses
    child_tid: int = 0
    tls: int = 0
    pidfd: int = 0  # the address where CLONE_PIDFD puts it
    cgroup: Cgroup | None = None  # CLONE_INTO_CGROUP; None: the parent's


class TaskState(Enum):
    """What a task does."""

    RUNNABLE = "R"  # it executes, or waits for a CPU
    SLEEPING = "S"
    STOPPED = "T"  # by a signal
    TRACED = "t"  # for its tracer
    ZOMBIE = "Z"  # it has ended


@dataclass(slots=True)
class Call:
    """A system call that sleeps."""

    generator: Generator[Sleep, Wake, int | None]
    number: int
    first_argument: int
    timer: HrTimer | None = None  # of its sleep, until it goes on


@dataclass(slots=True, eq=False)
class Process:
    """Threads that are one process: Linux's signal_struct."""

    pid: int
    parent: Process | None  # None: nobody whom the guest could see
    orphan_ppid: int = INIT  # what it calls its parent then: init, who reaps
    maker: Task | None = None  # the thread of its parent that made it
    pgid: int = 0
    sid: int = 0
    exit_signal: int = 0  # that its parent gets at its end
    children: dict[int, Process] = field(default_factory=dict)  # by pid, in the order of their making; ended ones, too
    threads: list[Task] = field(default_factory=list)  # that have not ended, by tid
    leader: Task | None = None  # the thread whose tid is the pid, also when it has ended
    limits: Limits = field(default_factory=Limits)
    executable: str = ""  # guest path, as /proc/PID/exe shows it
    has_executed: bool = False  # since its fork: its parent can no longer move it to another group
    is_subreaper: bool = False  # PR_SET_CHILD_SUBREAPER: the parent of its descendants whose own has ended
    exit_status: int | None = None  # wait status word, once it has ended
    stopped: bool = False
    stop_signal: int = 0  # that stopped it last
    stop_told: int | None = None  # the signal that stopped it, until its parent has waited for that
    continue_told: bool = False  # whether it has gone on, until its parent has waited for that
    interval_timers: dict[int, IntervalTimer] = field(default_factory=dict)  # by ITIMER_*
    posix_timers: PosixTimers = field(default_factory=PosixTimers)
    cpu_timers: list[IntervalTimer] = field(default_factory=list)  # those of them that measure CPU time
    ended_usage: Usage = field(default_factory=Usage)  # of threads that have ended
    waited_usage: Usage = field(default_factory=Usage)  # of children that have been waited for
    child_ended: WaitQueue = field(default_factory=WaitQueue)
    ended: WaitQueue = field(default_factory=WaitQueue)  # woken when it ends, and when it has been waited for
    reaped: bool = False  # nobody will wait for it any more
    mm_released: WaitQueue = field(default_factory=WaitQueue)  # that it was made in: its parent waits after vfork

    @property
    def ppid(self) -> int:
        return self.parent.pid if self.parent is not None else self.orphan_ppid

    @property
    def is_init(self) -> bool:
        """SIGNAL_UNKILLABLE: signals do nothing to it."""
        return self.pid == INIT

    def cpu_ns(self) -> int:
        """CPU time of all its threads."""
        ended = self.ended_usage
        return ended.user_ns + ended.system_ns + sum(thread.cpu_ns() for thread in self.threads)

    def user_ns(self) -> int:
        return self.ended_usage.user_ns + sum(thread.user_ns() for thread in self.threads)

    def measure(self, timer: IntervalTimer) -> None:
        """The timer runs while threads do, those that do so now included."""
        self.cpu_timers.append(timer)
        for thread in self.threads:
            if thread.running_since is not None:
                timer.resume(thread, thread.kernel.dispatcher.timers_of(thread.cpu))

    def delete_timer(self, number: int) -> None:
        """timer_delete(2); execve does so with all."""
        timer = self.posix_timers.delete(number)
        if timer in self.cpu_timers:
            self.cpu_timers.remove(timer)

    def usage(self) -> Usage:
        """Of all its threads, until now or until their end."""
        usage = self.ended_usage
        for thread in self.threads:
            usage += thread.usage()
        return usage


@dataclass(slots=True, eq=False)
class Task:
    """One thread of one process. Registers are in the core while it runs, and may stay there; `cpu` is where."""

    tid: int
    process: Process
    comm: str
    mm: MemoryMap
    files: FileTable
    fs: FileContext
    kernel: KernelServices
    cpu: Cpu  # on which it runs or ran last
    cgroup: Cgroup  # also when it has ended
    birth_tid: int = field(init=False)
    start_time_ns: int = 0  # elapsed_ns of the machine's clock
    system_cycles: int = 0  # reference cycles that the kernel has worked for it
    exit_code: int | None = None  # wait status word, once it has ended
    signals: SignalState = field(default_factory=SignalState)
    credentials: Credentials = field(default_factory=Credentials)
    clear_child_tid: int = 0  # address zeroed when the thread ends
    robust_list: tuple[int, int] = (0, 0)  # address, length
    rseq: Registration | None = None
    parent_death_signal: int = 0
    dumpable: int = 1
    allowed_tracer: int = 0  # PR_SET_PTRACER: a pid, or -1 for any
    no_new_privileges: bool = False
    seccomp: Seccomp | None = None  # None: it may make any call
    trapped_instructions: frozenset[TrapKind] = frozenset()  # that it may not execute: PR_SET_TSC
    timer_slack_ns: int = 50_000
    personality: int = 0
    affinity: int = 1  # mask of CPUs
    policy: int = 0  # SCHED_OTHER
    priority: int = 0  # 0 without a real-time policy
    nice: int = 0
    io_priority: int = 0  # as ioprio_set(2) writes it
    tracer: Task | None = None  # who traces it
    tracee: Tracee | None = None  # ... and how that is: None if nobody does
    tracees: dict[int, Task] = field(default_factory=dict)  # by tid, whom it traces; ended ones, too
    ptrace_breakpoints: PtraceBreakpoints | None = None  # once any tracer has set one: they outlive its leaving
    debug_status: int = 0  # x86: of DR6 as a tracer sees it, what is not as after a reset (thread.virtual_dr6)
    # what the scheduler and the kernel note of it
    state: TaskState = TaskState.RUNNABLE
    registers: RegisterState | None = None  # as they were when another task came onto its core
    cycles_used: int = 0  # reference cycles on CPUs, until it last left one
    minor_faults: int = 0
    major_faults: int = 0
    running_since: int | None = None  # cycle of its CPU, while it is on one
    asleep_since: int | None = None  # cycle at which it left its CPU to sleep
    virtual_cycles: int = 0  # vruntime, in reference cycles: it decides who of a CPU goes next, see RunQueue
    charged_at: int = 0  # cycle of its CPU up to which that is told
    ready_at: int = 0  # cycle before which it may not go on: that of its waker, or of its birth
    call: Call | None = None  # in which it sleeps
    sleep: Sleep | None = None
    sleep_timer: Timer | None = None
    woken_by: Wake | None = None  # until the call has heard of it

    def spend(self, cycles: int) -> None:
        """The kernel works for it, which is system time."""
        now = self.cpu.core.cycles
        self.system_cycles += self.clock.passed(now, now + cycles)
        self.cpu.work(cycles)

    def check_instruction(self, kind: TrapKind) -> None:
        """Raises UndefinedRegister for one that it has asked not to execute."""
        if kind in self.trapped_instructions:
            raise UndefinedRegister(kind.name)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def ppid(self) -> int:
        return self.process.ppid

    @property
    def pgid(self) -> int:
        return self.process.pgid

    @pgid.setter
    def pgid(self, group: int) -> None:
        self.process.pgid = group

    @property
    def sid(self) -> int:
        return self.process.sid

    @sid.setter
    def sid(self, session: int) -> None:
        self.process.sid = session

    @property
    def limits(self) -> Limits:
        return self.process.limits

    @property
    def executable(self) -> str:
        return self.process.executable

    @property
    def interval_timers(self) -> dict[int, IntervalTimer]:
        return self.process.interval_timers

    @property
    def posix_timers(self) -> PosixTimers:
        return self.process.posix_timers

    @property
    def clock(self) -> Clock:
        return self.kernel.clock

    @property
    def slack_ns(self) -> int:
        """By how much later than it wishes its sleeps may end: tasks in real time are not kept waiting."""
        return 0 if self.policy in REAL_TIME else self.timer_slack_ns

    def sleeper(self, clock_id: int, mode: HrTimerMode, slack_ns: int | None = None) -> HrTimer:
        """The timer of a sleep that is about to begin; `slack_ns`: if that is not the task's."""
        return self.kernel.hrtimers.sleeper(self.tid, clock_id, mode, self.slack_ns if slack_ns is None else slack_ns)

    @property
    def architecture(self) -> Architecture:
        return self.kernel.architecture

    def wake(self, reason: Wake) -> bool:
        return self.kernel.dispatcher.wake(self, reason)

    def __post_init__(self) -> None:
        self.birth_tid = self.tid

    def cpu_ns(self) -> int:
        """CPU time: of all stretches that it has been on a CPU."""
        cycles = self.cycles_used
        if self.running_since is not None:
            cycles += self.clock.passed(self.running_since, self.cpu.core.cycles)
        return self.clock.ns(cycles)

    def system_ns(self) -> int:
        """... and of that, what the kernel took."""
        return self.clock.ns(self.system_cycles)

    def user_ns(self) -> int:
        return self.cpu_ns() - self.system_ns()

    def usage(self) -> Usage:
        return Usage(self.user_ns(), self.system_ns(), self.minor_faults, self.major_faults, self.mm.resident_pages())

    def __hash__(self) -> int:
        """No address of the host: what is hashed shall not depend on those. execve may change the tid."""
        return self.birth_tid
