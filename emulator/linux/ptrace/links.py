"""Links: who traces whom, from the attachment to the end of one of them (kernel/ptrace.c, kernel/exit.c)."""

from __future__ import annotations

from emulator.linux.process.task import Process, Task
from emulator.linux.process.tracee import Tracee
from emulator.linux.ptrace.abi import PtraceEvent
from emulator.linux.ptrace.stops import is_killed_with_tracer
from emulator.linux.sched.waiting import Wake
from emulator.linux.signals.signal import (
    CLD_EXITED,
    CLD_KILLED,
    SI_USER,
    SIGCHLD,
    SIGKILL,
    SIGSTOP,
    SignalInfo,
)
from emulator.linux.signals.signal_sending import child_info, send_to_process


def link(tracer: Task, task: Task, *, seized: bool, options: int = 0) -> Tracee:
    """From now on `tracer` traces `task`."""
    task.tracer = tracer
    tracee = task.tracee = Tracee(seized, options)
    if task.call is not None and task.call.number >= 0:
        tracee.call_number, tracee.first_argument = task.call.number, task.call.first_argument
    tracer.tracees[task.tid] = task
    return tracee


def unlink(task: Task, signal: int = 0) -> None:
    """Nobody traces it any more; where it is stopped for its tracer it goes on, with a signal or 0.

    In the group-stop of its process it stays.
    """
    tracer, tracee = task.tracer, task.tracee
    assert tracer is not None, f"task {task.tid} is not traced"
    assert tracee is not None, f"task {task.tid} is not traced"
    del tracer.tracees[task.tid]
    was_stopped = not tracee.goes_on
    tracee.stop, tracee.injected = None, signal
    task.tracer = task.tracee = None
    task.signals.stops = False
    if was_stopped:
        task.wake(Wake.READY)
    if task.process.stopped and not was_stopped and task.exit_code is None:
        task.kernel.dispatcher.stop(task)


def inherit(parent: Task, child: Task, event: int | None) -> None:
    """A new task of a traced one is traced, too, and stops at once (ptrace_init_task). `event`: that tells of it."""
    tracer, above = parent.tracer, parent.tracee
    if tracer is None or above is None:
        return
    own = link(tracer, child, seized=above.seized, options=above.options)
    if above.seized:
        own.interrupted = child.signals.stops = True
    else:
        child.signals.pending.post(SignalInfo(SIGSTOP, SI_USER))
    if event is not None:
        above.events.append((event, child.tid))


def event_of_clone(parent: Task, *, waits: bool, exit_signal: int) -> int | None:
    """Which event a clone(2) is, if the tracer wants to hear of it. `waits`: vfork."""
    if parent.tracee is None:
        return None
    usual = PtraceEvent.FORK if exit_signal == SIGCHLD else PtraceEvent.CLONE
    event = PtraceEvent.VFORK if waits else usual
    return event if parent.tracee.options >> event & 1 else None


def renumber(task: Task, before: int) -> None:
    """execve of a thread has made it the main one; `before` was its tid."""
    if task.tracer is not None:
        task.tracer.tracees.pop(before, None)
        task.tracer.tracees[task.tid] = task


# ---- the end


def tracer_ends(tracer: Task) -> None:
    """exit_ptrace(): whom it has traced goes on, or ends with it."""
    for task in list(tracer.tracees.values()):
        tracee = task.tracee
        if tracee is None:
            continue
        if task.exit_code is not None:
            forget(task)
            continue
        killed = is_killed_with_tracer(tracee)
        stopped_at = tracee.stop
        signal = 0
        if stopped_at is not None and stopped_at.info is not None and stopped_at.info.signal == stopped_at.code:
            signal = stopped_at.code  # a signal on its way arrives
        unlink(task, signal)
        if killed:
            task.kernel.lifecycle.end_process(task.process, SIGKILL)


def thread_ended(task: Task, status: int) -> None:
    """A traced thread other than the main one has ended: its tracer waits for that."""
    tracer, tracee = task.tracer, task.tracee
    if tracer is None or tracee is None:
        return
    tracee.stop, tracee.ended = None, status
    _tell_end(task, tracer, status)


def is_traced_by_stranger(process: Process) -> bool:
    """Whether its main thread is traced by another process than its parent."""
    leader = process.leader
    return leader is not None and leader.tracer is not None and leader.tracer.process is not process.parent


def process_ended(process: Process) -> bool:
    """A process has ended. Whether its tracer, who is not its parent, has been told: the parent hears later."""
    leader = process.leader
    if leader is None or leader.tracer is None or leader.tracee is None:
        return False
    leader.tracee.stop = None
    if not is_traced_by_stranger(process):
        return False
    assert process.exit_status is not None, "it has ended"
    _tell_end(leader, leader.tracer, process.exit_status)
    return True


def _tell_end(task: Task, tracer: Task, status: int) -> None:
    signal = status & 0x7F
    info = child_info(task.process, SIGCHLD, CLD_KILLED if signal else CLD_EXITED, signal or status >> 8)
    send_to_process(tracer.process, info.of(task.tid))
    tracer.process.child_ended.wake()


def forget(task: Task) -> None:
    """The tracer of one that has ended has waited for it, or has ended itself. Its parent is told now."""
    process = task.process
    stranger = is_traced_by_stranger(process)
    if task.tracer is not None:
        task.tracer.tracees.pop(task.tid, None)
    task.tracer = task.tracee = None
    if task is process.leader and process.exit_status is not None and stranger:
        task.kernel.lifecycle.tell_end(process)
