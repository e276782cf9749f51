"""Dequeuing: a task takes one of its pending signals. kernel/signal.c, dequeue_signal()."""

from __future__ import annotations

from emulator.linux.process.task import Task
from emulator.linux.sched.interval_timers import ITIMER_REAL
from emulator.linux.signals.signal import SI_TIMER, SIGALRM, SignalInfo


def dequeue(task: Task, allowed: int | None = None) -> SignalInfo | None:
    """As SignalState.take(). The periodic timer that has sent it, which rests since then, goes on."""
    info = task.signals.take(allowed)
    if info is None:
        return None
    if info.signal == SIGALRM:  # whoever has sent that
        timer = task.interval_timers.get(ITIMER_REAL)
        if timer is not None:
            timer.go_on()
    if info.code == SI_TIMER and not info.raw:
        return task.posix_timers.dequeued(info)
    return info
