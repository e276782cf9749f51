"""Signals (POSIX's): numbers, default actions, and what a task has blocked, pending and installed."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

from emulator.linux.sched.waiting import WaitQueue

# uapi/asm-generic/signal.h; the same on both ISAs
SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGUSR1 = range(1, 11)
SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP = range(11, 21)
SIGTTIN, SIGTTOU, SIGURG, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO, SIGPWR, SIGSYS = range(21, 32)
NSIG = 64
SIGSET_SIZE = 8  # bytes of the kernel's sigset_t

SIG_DFL = 0
SIG_IGN = 1
SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK = range(3)

SA_NOCLDSTOP = 0x00000001
SA_NOCLDWAIT = 0x00000002
SA_SIGINFO = 0x00000004
SA_UNSUPPORTED = 0x00000400
SA_EXPOSE_TAGBITS = 0x00000800
SA_RESTORER = 0x04000000
SA_ONSTACK = 0x08000000
SA_RESTART = 0x10000000
SA_NODEFER = 0x40000000
SA_RESETHAND = 0x80000000

SS_ONSTACK = 1
SS_DISABLE = 2
SS_AUTODISARM = 1 << 31
STACK_T = struct.Struct("<QI4xQ")  # stack_t: address, flags, size

SIGEV_SIGNAL, SIGEV_NONE, SIGEV_THREAD, SIGEV_THREAD_ID = 0, 1, 2, 4  # sigev_notify

# si_code
SI_USER = 0
SI_KERNEL = 0x80
SI_QUEUE = -1
SI_TIMER = -2
SI_MESGQ = -3
SI_TKILL = -6
ILL_ILLOPC = 1
ILL_ILLOPN = 2
FPE_INTDIV = 1
FPE_FLTDIV = 3
FPE_FLTOVF = 4
FPE_FLTUND = 5
FPE_FLTRES = 6
FPE_FLTINV = 7
SEGV_MAPERR = 1
SEGV_ACCERR = 2
BUS_ADRALN = 1
BUS_ADRERR = 2
TRAP_BRKPT = 1
TRAP_TRACE = 2
TRAP_HWBKPT = 4
TRAP_PERF = 6
TRAP_PERF_FLAG_ASYNC = 1
CLD_EXITED = 1
CLD_KILLED = 2
CLD_TRAPPED = 4
SYS_SECCOMP = 1
CLD_STOPPED = 5
CLD_CONTINUED = 6


NAMES = {value: name for name, value in list(globals().items()) if name.startswith("SIG") and "_" not in name}
SIGRTMIN = 32  # from here on signals have numbers, not names, and queue


class Default(Enum):
    """What a signal does without a handler (signal(7))."""

    TERMINATE = 0
    CORE = 1
    IGNORE = 2
    STOP = 3
    CONTINUE = 4


DEFAULTS: dict[int, Default] = {
    **dict.fromkeys(
        (SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS), Default.CORE
    ),
    **dict.fromkeys((SIGCHLD, SIGURG, SIGWINCH), Default.IGNORE),
    **dict.fromkeys((SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU), Default.STOP),
    SIGCONT: Default.CONTINUE,
}


FATAL = (Default.TERMINATE, Default.CORE)


def default_action(signal: int) -> Default:
    return DEFAULTS.get(signal, Default.TERMINATE)


def bit(signal: int) -> int:
    """The bit of `signal` in a sigset."""
    return 1 << (signal - 1)


UNBLOCKABLE = bit(SIGKILL) | bit(SIGSTOP)
STOPS = bit(SIGSTOP) | bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU)
SYNCHRONOUS = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGFPE) | bit(SIGSYS)


_LOW_64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class SignalInfo:
    """siginfo_t. `address` for faults (si_addr), `pid`/`uid` for kill, `value` for timers, a child's exit code."""

    signal: int
    code: int = SI_KERNEL
    address: int = 0
    pid: int = 0
    uid: int = 0
    value: int = 0
    timer_id: int = 0
    overrun: int = 0  # how often the timer expired again while this was pending
    trap_number: int = 0  # what the signal frame shows of a fault
    error_code: int = 0
    user_ticks: int = 0  # of a child, in 1/100 s
    system_ticks: int = 0
    behind_address: bytes = b""  # of a fault: what follows si_addr
    raw: bytes = b""  # what rt_sigqueueinfo's caller filled in

    @property
    def is_fault(self) -> bool:
        """Whether it tells an address. A stop for a tracer (SIGTRAP) tells a thread instead."""
        return self.signal in (SIGILL, SIGFPE, SIGSEGV, SIGBUS, SIGTRAP) and self.code > 0 and not self.pid

    def of(self, tid: int) -> SignalInfo:
        """The same of a thread."""
        return replace(self, pid=tid)

    def pack(self) -> bytes:
        """128 bytes, uapi/asm-generic/siginfo.h on a 64-bit machine."""
        if self.raw:
            return self.raw
        head = self.signal.to_bytes(4, "little") + bytes(4) + self.code.to_bytes(4, "little", signed=True) + bytes(4)
        if self.is_fault:
            body = self.address.to_bytes(8, "little") + self.behind_address
        elif self.code == SI_TIMER:
            numbers = self.timer_id.to_bytes(4, "little") + self.overrun.to_bytes(4, "little")
            body = numbers + self.value.to_bytes(8, "little")
        else:
            body = struct.pack("<IIQQQ", self.pid, self.uid, self.value & _LOW_64, self.user_ticks, self.system_ticks)
        return (head + body).ljust(128, b"\0")


@dataclass(frozen=True, slots=True)
class SignalAction:
    """struct sigaction as the kernel takes it."""

    handler: int = SIG_DFL  # address, SIG_DFL or SIG_IGN
    flags: int = 0
    restorer: int = 0
    mask: int = 0


class Generated(IntEnum):
    """What becomes of a signal that is sent (TRACE_SIGNAL_* of include/trace/events/signal.h)."""

    DELIVERED = 0
    IGNORED = 1
    ALREADY_PENDING = 2
    OVERFLOW_FAIL = 3  # it queues, and there is no room


@dataclass(frozen=True, slots=True)
class AlternateStack:
    """stack_t."""

    address: int = 0
    flags: int = SS_DISABLE
    size: int = 0

    def holds(self, stack_pointer: int) -> bool:
        return self.address < stack_pointer <= self.address + self.size


DEFAULT_ACTION = SignalAction()


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A syscall that a signal broke off, while it is not decided whether it starts again."""

    code: int  # ERESTARTSYS or ERESTARTNOHAND
    number: int
    first_argument: int


class PendingSignals:
    """What waits to be delivered: by number, and of each number in the order in which it was sent."""

    __slots__ = ("_by_number", "_count", "mask")

    def __init__(self) -> None:
        self._by_number: dict[int, deque[SignalInfo]] = {}
        self._count = 0
        self.mask = 0  # of the numbers that there are

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[SignalInfo]:
        for number in sorted(self._by_number):
            yield from self._by_number[number]

    def append(self, info: SignalInfo) -> None:
        self._by_number.setdefault(info.signal, deque()).append(info)
        self._count += 1
        self.mask |= bit(info.signal)

    def post(self, info: SignalInfo) -> None:
        """A standard signal is pending once, those from SIGRTMIN queue."""
        if info.signal >= SIGRTMIN or not self.mask & bit(info.signal):
            self.append(info)

    def take(self, mask: int) -> SignalInfo | None:
        """The next one of the set: faults first, then the lowest number."""
        found = self.mask & mask
        if not found:
            return None
        found = found & SYNCHRONOUS or found
        number = (found & -found).bit_length()
        queue = self._by_number[number]
        info = queue.popleft()
        self._count -= 1
        if not queue:
            self._forget(number)
        return info

    def drop(self, mask: int) -> None:
        """All of the set are forgotten."""
        for number in [number for number in self._by_number if bit(number) & mask]:
            self._count -= len(self._by_number[number])
            self._forget(number)

    def clear(self) -> None:
        self.drop(self.mask)

    def _forget(self, number: int) -> None:
        del self._by_number[number]
        self.mask &= ~bit(number)

    def replace(self, old: SignalInfo, new: SignalInfo) -> None:
        """Another information of the same signal, in the same place."""
        queue = self._by_number[old.signal]
        queue[queue.index(old)] = new


@dataclass(slots=True)
class SharedSignals:
    """What is sent to a process."""

    pending: PendingSignals = field(default_factory=PendingSignals)
    arrived: WaitQueue = field(default_factory=WaitQueue)  # something may be pending: for signalfd
    chosen: dict[int, SignalState] = field(default_factory=dict)  # by number: who is to act on it (complete_signal)

    def left_by_others(self, state: SignalState) -> int:
        """The set of what is pending, less what another thread has been chosen for and does not block meanwhile."""
        found = self.pending.mask
        if found:
            for number, chosen in self.chosen.items():
                if chosen is not state and chosen.wants(number):
                    found &= ~bit(number)
        return found

    def forget(self, state: SignalState) -> None:
        """Its thread has ended."""
        self.chosen = {number: chosen for number, chosen in self.chosen.items() if chosen is not state}


@dataclass(slots=True)
class SignalState:
    """One thread's signals. Threads of one process have the same `actions` and `shared`."""

    blocked: int = 0
    actions: dict[int, SignalAction] = field(default_factory=dict)
    stack: AlternateStack = field(default_factory=AlternateStack)
    pending: PendingSignals = field(default_factory=PendingSignals)  # for this thread
    shared: SharedSignals = field(default_factory=SharedSignals)
    awaited: int = 0  # rt_sigtimedwait: what ends it, though it be blocked
    restore_mask: int | None = None  # rt_sigsuspend, pselect: what the handler's return brings back
    interrupted: Interrupted | None = None  # a call that waits for its stopped process to go on
    stops: bool = False  # it is to stop for its tracer before it executes on

    def forked(self, *, shares_actions: bool) -> SignalState:
        """Of the thread of a new process: nothing is pending. `shares_actions`: CLONE_SIGHAND, in the same memory."""
        if shares_actions:
            return SignalState(self.blocked, self.actions)
        return SignalState(self.blocked, dict(self.actions), self.stack)

    def of_thread(self) -> SignalState:
        """Of another thread of the same process (CLONE_THREAD)."""
        return SignalState(self.blocked, self.actions, shared=self.shared)

    def action(self, signal: int) -> SignalAction:
        return self.actions.get(signal, DEFAULT_ACTION)

    def ignored(self, signal: int) -> bool:
        """Whether it does nothing. SIGCONT has done it by default when it is sent."""
        handler = self.action(signal).handler
        if handler == SIG_DFL:
            return default_action(signal) in (Default.IGNORE, Default.CONTINUE)
        return handler == SIG_IGN

    def kept_away(self, signal: int) -> bool:
        """Whether it stays pending: blocked, or for rt_sigtimedwait."""
        return bool((self.blocked | self.awaited) & bit(signal))

    def wants(self, signal: int) -> bool:
        """Whether it would disturb this thread."""
        return not self.blocked & ~self.awaited & bit(signal)

    def post(self, info: SignalInfo) -> None:
        """Make a signal pending for this thread. A standard one that is pending already, or ignored, is dropped."""
        if self.ignored(info.signal) and not self.kept_away(info.signal):
            return
        self.pending.post(info)

    def pending_mask(self) -> int:
        return self.pending.mask | self.shared.pending.mask

    @property
    def due(self) -> bool:
        """Whether something is to be looked at before the thread executes on."""
        return bool(self.pending.mask or self.shared.pending.mask or self.interrupted is not None or self.stops)

    def deliverable(self) -> bool:
        return self.due and (self.stops or bool(self._to_act_on()))

    def _to_act_on(self) -> int:
        """The set of what is pending, not blocked, and not left to another thread."""
        return (self.pending.mask | self.shared.left_by_others(self)) & ~(self.blocked & ~self.awaited)

    def fatal(self) -> bool:
        """Whether one is pending that ends the process (fatal_signal_pending)."""
        mask = self._to_act_on()
        return any(
            mask & bit(signal) and self.action(signal).handler == SIG_DFL and default_action(signal) in FATAL
            for signal in range(1, mask.bit_length() + 1)
        )

    def take(self, allowed: int | None = None) -> SignalInfo | None:
        """Take the next signal to deliver: the thread's own before the process's, faults first, then the lowest number.

        `allowed`: the set of rt_sigtimedwait or of a signalfd, which leave nothing to other threads.
        """
        if allowed is not None:
            return self.pending.take(allowed) or self.shared.pending.take(allowed)
        return self.pending.take(~self.blocked) or self.shared.pending.take(
            self.shared.left_by_others(self) & ~self.blocked
        )

    def reset_for_exec(self) -> None:
        """execve: handlers become default, ignored stays ignored, the alternate stack goes."""
        self.actions = {signal: action for signal, action in self.actions.items() if action.handler == SIG_IGN}
        self.stack = AlternateStack()
