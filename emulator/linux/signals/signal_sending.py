"""Sending signals: to a thread, to a process; what that does at once, and which thread has to look.

kernel/signal.c. Since nothing executes while the kernel works, SIGKILL, stops and SIGCONT act when they are sent; all
else is pending, with the thread or with the process.
"""

from __future__ import annotations

from emulator.linux.process.limits import RLIMIT_SIGPENDING
from emulator.linux.process.task import Process, Task
from emulator.linux.process.tracee import Tracee
from emulator.linux.sched.waiting import Wake
from emulator.linux.signals.signal import (
    CLD_CONTINUED,
    CLD_STOPPED,
    SA_NOCLDSTOP,
    SI_TIMER,
    SIG_DFL,
    SIGCHLD,
    SIGCONT,
    SIGKILL,
    SIGRTMIN,
    SIGSTOP,
    STOPS,
    Default,
    Generated,
    PendingSignals,
    SharedSignals,
    SignalInfo,
    bit,
    default_action,
)
from emulator.linux.structures import NANOSECONDS, TICKS_PER_SECOND


def send_to_thread(task: Task, info: SignalInfo) -> bool:
    """False where it queues, and there is no room. One that has ended does not hear, and init does not listen."""
    if task.exit_code is not None:
        return True
    if task.process.is_init:
        task.kernel.tell_generated(task, info, False, Generated.IGNORED)
        return True
    result = _outcome(task, task.signals.pending, info)
    found_room = _acts_at_once(task, info.signal) or _post(task, info)
    task.kernel.tell_generated(task, info, False, result)
    return found_room


def send_to_process(process: Process, info: SignalInfo) -> bool:
    """To the first thread that does not block it; while there is none it waits for one. False: no room."""
    if not process.threads:
        return True
    main = process.threads[0]
    if process.is_init:
        main.kernel.tell_generated(main, info, True, Generated.IGNORED)
        return True
    result = _outcome(main, main.signals.shared.pending, info)
    found_room = _acts_at_once(main, info.signal) or _post_to_any(process, info)
    main.kernel.tell_generated(main, info, True, result)
    return found_room


def _post_to_any(process: Process, info: SignalInfo) -> bool:
    main = process.threads[0]
    shared = main.signals.shared
    if info.signal < SIGRTMIN and shared.pending.mask & bit(info.signal):
        return True
    thread = _who_wants(process, info.signal)
    if thread is not None and thread is not main and _acts_at_once(thread, info.signal):
        return True
    if not _append(main, shared.pending, info):
        return False
    _choose(thread, shared, info.signal)
    shared.arrived.wake()
    return True


def _who_wants(process: Process, signal: int) -> Task | None:
    return next((thread for thread in process.threads if thread.signals.wants(signal)), None)


def _choose(thread: Task | None, shared: SharedSignals, signal: int) -> None:
    """It is to act on a signal of its process, and looks at it. None: whoever unblocks it first."""
    if thread is None:
        shared.chosen.pop(signal, None)
    else:
        shared.chosen[signal] = thread.signals
        thread.kernel.dispatcher.interrupt(thread)


def retarget(process: Process) -> None:
    """A thread has ended: what it was to act on others do (exit_signals)."""
    shared = process.threads[0].signals.shared
    for number in range(1, shared.pending.mask.bit_length() + 1):
        if shared.pending.mask & bit(number) and number not in shared.chosen:
            _choose(_who_wants(process, number), shared, number)


def _post(task: Task, info: SignalInfo) -> bool:
    """Pending for a thread, which looks at it."""
    if not _append(task, task.signals.pending, info):
        return False
    task.signals.shared.arrived.wake()
    task.kernel.dispatcher.interrupt(task)
    return True


def _append(task: Task, pending: PendingSignals, info: SignalInfo) -> bool:
    """Where it is pending then. Those that queue may find no room."""
    if _has_no_room(task, info):
        return False
    pending.post(info)
    return True


def _has_no_room(task: Task, info: SignalInfo) -> bool:
    signals = task.signals
    used = len(signals.pending) + len(signals.shared.pending)
    return info.signal >= SIGRTMIN and used >= task.limits.soft(RLIMIT_SIGPENDING)


def _outcome(task: Task, pending: PendingSignals, info: SignalInfo) -> Generated:
    """What will become of it; `pending` is where it would wait."""
    signals, number = task.signals, info.signal
    if signals.ignored(number) and not signals.kept_away(number) and task.tracee is None:
        return Generated.IGNORED
    if number < SIGRTMIN and pending.mask & bit(number):
        return Generated.ALREADY_PENDING
    return Generated.OVERFLOW_FAIL if _has_no_room(task, info) else Generated.DELIVERED


def _acts_at_once(task: Task, signal: int) -> bool:
    """Whether nothing is left to deliver to a thread, or to the process of this main one."""
    process, signals, kernel = task.process, task.signals, task.kernel
    if signal == SIGKILL:
        kernel.lifecycle.end_process(process, SIGKILL)
        return True
    if bit(signal) & STOPS:
        _drop(process, bit(SIGCONT))
    elif signal == SIGCONT:
        _drop(process, STOPS)
        go_on(process)
    if signals.kept_away(signal) or task.tracee is not None:  # a tracer sees also what is ignored
        return False
    if signals.ignored(signal):
        return True
    if signals.action(signal).handler == SIG_DFL and default_action(signal) is Default.STOP:
        if not process.stopped:
            stop(process, signal)
        return True
    return False


def _drop(process: Process, mask: int) -> None:
    """Pending signals of the set are forgotten."""
    shared = process.threads[0].signals.shared
    for queue in (shared.pending, *(thread.signals.pending for thread in process.threads)):
        queue.drop(mask)


def forget_ignored(process: Process, signal: int) -> None:
    """Its action has changed: what is ignored now is not pending any more."""
    _drop(process, bit(signal))


def pending_of_timer(process: Process, timer_id: int) -> tuple[PendingSignals, SignalInfo] | None:
    """The signal of a POSIX timer, of which at most one is pending, and where it is."""
    if not process.threads:
        return None
    for queue in (process.threads[0].signals.shared.pending, *(thread.signals.pending for thread in process.threads)):
        for info in queue:
            if info.code == SI_TIMER and info.timer_id == timer_id and not info.raw:
                return queue, info
    return None


# ---- stopping and going on


def stop(process: Process, signal: int) -> None:
    """All threads stop, and the parent hears. The stops of a terminal do nothing to an orphaned group."""
    if process.stopped or process.exit_status is not None:
        return
    if signal != SIGSTOP and is_orphaned(process):
        return
    process.stopped = True
    process.stop_signal = process.stop_told = signal
    process.continue_told = False
    for thread in process.threads:
        if thread.tracee is None:
            thread.kernel.dispatcher.stop(thread)
        else:
            thread.tracee.group_stop = thread.signals.stops = True
            thread.kernel.dispatcher.interrupt(thread)
    if not _is_traced_by_parent(process):
        _tell_parent(process, CLD_STOPPED, signal)


def go_on(process: Process) -> None:
    """SIGCONT: a stopped process goes on, even if it blocks or ignores the signal. Who is traced does when let go."""
    for thread in process.threads:
        if thread.tracee is not None:
            _notify(thread, thread.tracee)
    if not process.stopped:
        return
    process.stopped = False
    process.stop_told, process.continue_told = None, True
    for thread in process.threads:
        thread.kernel.dispatcher.go_on(thread)
    _tell_parent(process, CLD_CONTINUED, SIGCONT)


def _notify(task: Task, tracee: Tracee) -> None:
    """Its process goes on: who is seized tells that by a stop, at once if it listens (ptrace_trap_notify)."""
    tracee.group_stop = False
    tracee.notified = tracee.seized
    task.signals.stops = tracee.has_to_stop
    if tracee.listens and tracee.stop is not None:
        tracee.stop, tracee.injected = None, 0
        task.wake(Wake.READY)
    task.kernel.dispatcher.interrupt(task)


def _is_traced_by_parent(process: Process) -> bool:
    """Its parent hears of stops as a tracer then, and only so."""
    leader = process.leader
    return leader is not None and leader.tracer is not None and leader.tracer.process is process.parent


def is_orphaned(process: Process) -> bool:
    """Whether no parent of a process of its group is in the same session and another group (setpgid(2)).

    The machine's first process has its parent, the shell, outside.
    """
    tasks = process.threads[0].kernel.tasks.values()
    for task in tasks:
        member = task.process
        if member.pgid != process.pgid or task is not member.leader or member.exit_status is not None:
            continue
        parent = member.parent
        if parent is None:
            if member.orphan_ppid == member.sid:
                return False
        elif parent.pgid != process.pgid and parent.sid == process.sid:
            return False
    return True


def child_info(process: Process, signal: int, code: int, value: int) -> SignalInfo:
    """The siginfo_t that a parent gets of its child; `value` is the exit code or the signal."""
    usage = process.usage()
    tick_ns = NANOSECONDS // TICKS_PER_SECOND
    leader = process.leader
    uid = leader.credentials.uid if leader is not None else 0
    return SignalInfo(
        signal,
        code,
        pid=process.pid,
        uid=uid,
        value=value,
        user_ticks=usage.user_ns // tick_ns,
        system_ticks=usage.system_ns // tick_ns,
    )


def _tell_parent(process: Process, code: int, value: int) -> None:
    parent = process.parent
    if parent is None or not parent.threads:
        return
    if not parent.threads[0].signals.action(SIGCHLD).flags & SA_NOCLDSTOP:
        send_to_process(parent, child_info(process, SIGCHLD, code, value))
    parent.child_ended.wake()
