"""HrTimer: a timer of the kernel as its tracepoints tell of it. kernel/time/hrtimer.c, kernel/time/alarmtimer.c.

``Timers`` lets it come true, and whoever has one says here what happens to it. It expires at `softexpires`: the slack
behind that, in which Linux may let it expire with others, is only told.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from emulator.clock import Clock
from emulator.linux.clock_ids import (
    CLOCK_BOOTTIME,
    CLOCK_BOOTTIME_ALARM,
    CLOCK_MONOTONIC,
    CLOCK_REALTIME,
    CLOCK_REALTIME_ALARM,
    CLOCK_TAI,
)
from emulator.linux.tracepoint import Tracepoint

# Where the kernel's objects are said to be. Nothing is there.
_TASKS, _TASK_BYTES = 0xFFFF_8880_0000_0000, 0x4000  # what belongs to a task, by its tid
_DL_TIMER, _INACTIVE_TIMER, _REAL_TIMER = 0x0, 0x48, 0x2000  # struct task_struct, struct signal_struct
_STACKS, _STACK_BYTES, _ON_STACK = 0xFFFF_C900_0000_0000, 0x8000, 0x3D00
_MADE, _MADE_BYTES = 0xFFFF_8890_0000_0000, 0x100

HRTIMER_WAKEUP, ALARMTIMER_FIRED = "hrtimer_wakeup", "alarmtimer_fired"
IT_REAL_FN, POSIX_TIMER_FN, TIMERFD_TMRPROC = "it_real_fn", "posix_timer_fn", "timerfd_tmrproc"
_ALARMS = {CLOCK_REALTIME_ALARM: CLOCK_REALTIME, CLOCK_BOOTTIME_ALARM: CLOCK_BOOTTIME}  # whose time each is of

KTIME_MAX = (1 << 63) - 1  # ns

T = TypeVar("T")


class HrTimerMode(IntEnum):
    """enum hrtimer_mode: those that there are here."""

    ABS = 0
    REL = 1
    REL_HARD = 9


class HrTimer:
    """One timer, known by its address. `function` is what it calls."""

    __slots__ = ("_armed", "_clock", "_mode", "_tracepoints", "address", "clock_id", "function", "slack_ns")

    def __init__(
        self,
        tracepoints: HrTimerTracepoints,
        clock: Clock,
        address: int,
        function: str,
        clock_id: int,
        mode: HrTimerMode = HrTimerMode.ABS,
        slack_ns: int = 0,
    ) -> None:
        self._tracepoints = tracepoints
        self._clock = clock
        self._mode = mode
        self._armed = False
        self.address = address
        self.function = function
        self.clock_id = clock_id
        self.slack_ns = slack_ns
        if clock_id in _ALARMS:
            self.function, self.clock_id, self._mode, self.slack_ns = ALARMTIMER_FIRED, _ALARMS[clock_id], _ABS, 0

    def init(self) -> None:
        """It has been made, or what it is of is about to change."""
        if self._tracepoints.init:
            self._tracepoints.init.fire(self, self._mode)

    def set_mode(self, mode: HrTimerMode) -> None:
        """Who sets it makes it anew. Alarms are absolute."""
        if self.function != ALARMTIMER_FIRED:
            self._mode = mode
        self.init()

    def start(self, due_ns: int, mode: HrTimerMode | None = None) -> None:
        """It is to expire at `due_ns` of the machine's clock; its own mode, if no other is said, is told."""
        self._armed = True
        if self._tracepoints.start:
            soft_ns = self._shown(due_ns)
            expires_ns = min(soft_ns + self.slack_ns, KTIME_MAX)
            self._tracepoints.start.fire(self, expires_ns, soft_ns, self._mode if mode is None else mode)

    def expire(self, call: Callable[[], T]) -> T:
        """It has expired: what it does is done, and told."""
        self._armed = False
        tracepoints = self._tracepoints
        if tracepoints.expire_entry:
            tracepoints.expire_entry.fire(self, self._shown(self._clock.elapsed_ns()))
        done = call()
        if tracepoints.expire_exit:
            tracepoints.expire_exit.fire(self)
        return done

    def cancel(self) -> None:
        """It is wanted no more, if it is armed at all."""
        if self._armed:
            self._armed = False
            if self._tracepoints.cancel:
                self._tracepoints.cancel.fire(self)

    def _shown(self, elapsed_ns: int) -> int:
        """On its clock. A relative one of CLOCK_REALTIME is of CLOCK_MONOTONIC: __hrtimer_init()."""
        realtime = self.clock_id == CLOCK_TAI or (self.clock_id == CLOCK_REALTIME and not self._mode & _REL)
        return min(self._clock.shown_at(elapsed_ns, realtime=realtime), KTIME_MAX)


_ABS, _REL = HrTimerMode.ABS, HrTimerMode.REL


class HrTimerTracepoints:
    """What happens to all of them."""

    def __init__(self) -> None:
        self.init: Tracepoint[[HrTimer, HrTimerMode]] = Tracepoint()
        self.start: Tracepoint[[HrTimer, int, int, HrTimerMode]] = Tracepoint()
        """(timer, expires in ns of its clock, softexpires, mode); none is armed then"""
        self.expire_entry: Tracepoint[[HrTimer, int]] = Tracepoint()
        """(timer, what its clock shows in ns)"""
        self.expire_exit: Tracepoint[[HrTimer]] = Tracepoint()
        self.cancel: Tracepoint[[HrTimer]] = Tracepoint()


class HrTimers:
    """Makes those of a machine."""

    def __init__(self, tracepoints: HrTimerTracepoints, clock: Clock) -> None:
        self._tracepoints = tracepoints
        self._clock = clock
        self._made = 0

    def sleeper(self, tid: int, clock_id: int, mode: HrTimerMode, slack_ns: int) -> HrTimer:
        """On the stack of a task that is about to sleep: hrtimer_init_sleeper_on_stack()."""
        address = _STACKS + _STACK_BYTES * tid + _ON_STACK
        timer = HrTimer(self._tracepoints, self._clock, address, HRTIMER_WAKEUP, clock_id, mode, slack_ns)
        timer.init()
        return timer

    def create(self, function: str, clock_id: int) -> HrTimer:
        """Of a POSIX timer or a timerfd."""
        self._made += 1
        address = _MADE + _MADE_BYTES * self._made
        timer = HrTimer(self._tracepoints, self._clock, address, function, clock_id)
        timer.init()
        return timer

    def real_timer(self, pid: int) -> HrTimer:
        """A process's ITIMER_REAL, which there is since its fork."""
        return self._of_task(pid, _REAL_TIMER, IT_REAL_FN, _REL)

    def forked(self, tid: int, *, is_process: bool) -> None:
        """copy_process(): those of each task, which nobody uses, and of each process."""
        if self._tracepoints.init:
            self._of_task(tid, _DL_TIMER, "dl_task_timer", HrTimerMode.REL_HARD).init()
            self._of_task(tid, _INACTIVE_TIMER, "inactive_task_timer", HrTimerMode.REL_HARD).init()
            if is_process:
                self.real_timer(tid).init()

    def _of_task(self, tid: int, offset: int, function: str, mode: HrTimerMode) -> HrTimer:
        address = _TASKS + _TASK_BYTES * tid + offset
        return HrTimer(self._tracepoints, self._clock, address, function, CLOCK_MONOTONIC, mode)
