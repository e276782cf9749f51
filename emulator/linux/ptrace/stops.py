"""Stops: how a task stops for its tracer, and what it tells of that (kernel/signal.c, ptrace_stop; linux/ptrace.h).

Each is a part of what the kernel does for the task, written as a generator: the stop is a sleep, which nobody ends but
its tracer, or the task's end.
"""

from __future__ import annotations

from emulator.linux.process.task import Task
from emulator.linux.process.tracee import Stop, Tracee
from emulator.linux.ptrace.abi import (
    PTRACE_EVENTMSG_SYSCALL_ENTRY,
    PTRACE_EVENTMSG_SYSCALL_EXIT,
    PTRACE_O_EXITKILL,
    PTRACE_O_TRACESYSGOOD,
    PtraceEvent,
)
from emulator.linux.sched.waiting import Sleep, Sleeping, Wake
from emulator.linux.signals.signal import (
    CLD_STOPPED,
    CLD_TRAPPED,
    SA_NOCLDSTOP,
    SI_KERNEL,
    SI_USER,
    SIG_IGN,
    SIGCHLD,
    SIGKILL,
    SIGTRAP,
    SignalInfo,
    bit,
)
from emulator.linux.signals.signal_sending import child_info, send_to_process, send_to_thread

EVENT_SHIFT = 8  # of a stop's code
SYSCALL_GOOD = 0x80  # in the signal of a stop at a system call, with PTRACE_O_TRACESYSGOOD


def stop(task: Task, stopped: Stop, message: int = 0) -> Sleeping[int]:
    """Stop until the tracer lets it go on: with which signal, or 0."""
    tracee = task.tracee
    assert tracee is not None, f"task {task.tid} is not traced"
    tracee.stop, tracee.message, tracee.injected = stopped, message, 0
    tracee.interrupted = tracee.listens = False
    if stopped.why == CLD_STOPPED:
        tracee.group_stop = tracee.notified = False
    task.signals.stops = tracee.has_to_stop
    tell_tracer(task, stopped)
    while not tracee.goes_on:
        yield Sleep((), None, f"{task.comm} is stopped for its tracer", interruptible=False, traced=True)
    tracee.message = 0
    return tracee.injected


def let_go(task: Task, signal: int = 0) -> None:
    """End its stop."""
    tracee = task.tracee
    assert tracee is not None, f"task {task.tid} is not traced"
    tracee.stop, tracee.injected = None, signal
    task.wake(Wake.READY)


def tell_tracer(task: Task, stopped: Stop) -> None:
    """SIGCHLD, unless the tracer does not want it, and whoever waits wakes (do_notify_parent_cldstop)."""
    tracer = task.tracer
    if tracer is None or tracer.exit_code is not None:
        return
    action = tracer.signals.action(SIGCHLD)
    if action.handler != SIG_IGN and not action.flags & SA_NOCLDSTOP:
        info = child_info(task.process, SIGCHLD, stopped.why, stopped.code & 0x7F)
        send_to_process(tracer.process, info.of(task.tid))
    tracer.process.child_ended.wake()


def _trap_info(task: Task, signal: int, code: int) -> SignalInfo:
    return SignalInfo(signal, code, pid=task.tid, uid=task.credentials.uid)


def notify(task: Task, code: int, message: int = 0) -> Sleeping[int]:
    """ptrace_notify()"""
    return stop(task, Stop(code, CLD_TRAPPED, _trap_info(task, SIGTRAP, code)), message)


# ---- events


def reports(task: Task, event: int) -> bool:
    """Whether its tracer wants to hear of such events."""
    return task.tracee is not None and bool(task.tracee.options >> event & 1)


def report(task: Task, event: int, message: int) -> Sleeping[None]:
    """ptrace_event(): a stop if the tracer has asked for it; of execve it hears anyway, by SIGTRAP."""
    if reports(task, event):
        yield from notify(task, SIGTRAP | event << EVENT_SHIFT, message)
    elif event == PtraceEvent.EXEC and task.tracee is not None and not task.tracee.seized:
        send_to_thread(task, SignalInfo(SIGTRAP, SI_USER, pid=task.pid, uid=task.credentials.uid))


def report_noted(task: Task) -> Sleeping[None]:
    """What the system call has noted on its way."""
    while task.tracee is not None and task.tracee.events:
        yield from report(task, *task.tracee.events.pop(0))


def note(task: Task, event: int, message: int) -> None:
    if task.tracee is not None:
        task.tracee.events.append((event, message))


# ---- system calls


def _report_call(task: Task, tracee: Tracee, message: int) -> Sleeping[None]:
    """ptrace_report_syscall()"""
    code = SIGTRAP | (SYSCALL_GOOD if tracee.options & PTRACE_O_TRACESYSGOOD else 0)
    signal = yield from notify(task, code, message)
    if signal:
        send_to_thread(task, SignalInfo(signal, SI_KERNEL))


def report_entry(task: Task, tracee: Tracee) -> Sleeping[None]:
    """A stop before a system call is made."""
    return _report_call(task, tracee, PTRACE_EVENTMSG_SYSCALL_ENTRY)


def report_exit(task: Task, tracee: Tracee) -> Sleeping[None]:
    """... and behind it, with its result."""
    return _report_call(task, tracee, PTRACE_EVENTMSG_SYSCALL_EXIT)


# ---- signals


def stop_at_signal(task: Task, info: SignalInfo) -> Sleeping[SignalInfo | None]:
    """ptrace_signal(): the tracer sees it first, and says what is delivered instead; None: nothing."""
    if info.signal == SIGKILL:
        return info
    stopped = Stop(info.signal, CLD_TRAPPED, info)
    tracer = task.tracer
    signal = yield from stop(task, stopped)
    if not signal:
        return None
    shown = stopped.info
    assert shown is not None, "a signal-delivery-stop has its signal"
    if signal != shown.signal:
        pid, uid = (tracer.pid, tracer.credentials.uid) if tracer is not None else (0, 0)
        shown = SignalInfo(signal, SI_USER, pid=pid, uid=uid)
    if task.signals.blocked & bit(signal):
        task.signals.pending.post(shown)
        return None
    return shown


def trap(task: Task, tracee: Tracee) -> Sleeping[None]:
    """do_jobctl_trap(): a group-stop, or a stop that the tracer has asked for."""
    process = task.process
    signal = process.stop_signal if process.stopped else SIGTRAP
    if tracee.seized:
        code = signal | PtraceEvent.STOP << EVENT_SHIFT
        yield from stop(task, Stop(code, CLD_STOPPED, _trap_info(task, signal, code)))
    else:
        yield from stop(task, Stop(signal, CLD_STOPPED, None))


def is_killed_with_tracer(tracee: Tracee) -> bool:
    return bool(tracee.options & PTRACE_O_EXITKILL)
