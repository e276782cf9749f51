"""The way of a traced task back to user mode: stops, and signals, which its tracer sees first (get_signal)."""

from __future__ import annotations

from emulator.linux.process.task import Task
from emulator.linux.process.tracee import Tracee
from emulator.linux.ptrace.abi import PtraceEvent
from emulator.linux.ptrace.isas import TRACED_REGISTERS
from emulator.linux.ptrace.stepping import stepped_info
from emulator.linux.ptrace.stops import report, stop_at_signal, trap
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.signals.dequeuing import dequeue
from emulator.linux.signals.signal import (
    FATAL,
    SIG_DFL,
    SIG_IGN,
    Default,
    Interrupted,
    SignalInfo,
    default_action,
)
from emulator.linux.signals.signal_delivery import act_by_default, enter_handler


def returning(task: Task, tracee: Tracee, interrupted: Interrupted | None) -> Sleeping[None]:
    """All that happens before a task executes on which was traced as it came here; it may be let go meanwhile."""
    signals = task.signals
    restart = TRACED_REGISTERS[task.architecture.isa].restart(task.cpu.core, tracee, interrupted)
    while task.exit_code is None:
        if task.tracee is not None and signals.stops:
            yield from trap(task, task.tracee)
            continue
        if task.tracee is None and task.process.stopped:
            break
        info = dequeue(task)
        if info is not None and task.tracee is not None:
            info = yield from stop_at_signal(task, info)
            if info is None:
                continue
        if info is None:
            break
        action = signals.action(info.signal)
        task.kernel.tell_delivered(task, info, action)
        if action.handler == SIG_IGN:
            continue
        if action.handler == SIG_DFL:
            yield from _act_by_default(task, info)
            continue
        restart.settle(task.cpu.core, action)
        enter_handler(task, info, action)
        _trap_at_handler(task)
    if task.exit_code is not None:
        return
    restart.settle(task.cpu.core, None)
    if signals.restore_mask is not None:
        signals.blocked, signals.restore_mask = signals.restore_mask, None
    if task.tracee is None and task.process.stopped:
        task.kernel.dispatcher.stop(task)


def _trap_at_handler(task: Task) -> None:
    """Who is stepped into a handler stops before its first instruction (signal_setup_done)."""
    tracee = task.tracee
    if tracee is not None and tracee.steps:
        task.signals.pending.append(stepped_info(task))


def _act_by_default(task: Task, info: SignalInfo) -> Sleeping[None]:
    action = default_action(info.signal)
    if action in FATAL:
        yield from report(task, PtraceEvent.EXIT, info.signal)
        if task.exit_code is not None:
            return
    act_by_default(task, info)
    tracee = task.tracee
    if action is Default.STOP and tracee is not None and task.process.stopped:
        task.process.stop_signal = info.signal
        tracee.group_stop = task.signals.stops = True
