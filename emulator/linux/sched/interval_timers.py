"""IntervalTimer: fires once or again and again: setitimer, alarm and POSIX timers."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from emulator.clock import Clock
from emulator.linux.sched.hrtimers import HrTimer, HrTimerMode
from emulator.linux.sched.timers import Timer, Timers
from emulator.linux.structures import TICK_NS

ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF = range(3)  # uapi/linux/time.h


class IntervalTimer:
    """A timer on elapsed time, or on a CPU time, which `cpu_ns` reads: of a process, or of `thread` alone.

    `fires` says whether a periodic one goes on at once; else it rests until `go_on`. `hrtimer` is what tells of it.

    One of CPU time rests while none of the threads is on a CPU; it comes as much earlier as there are more.
    """

    def __init__(
        self,
        timers: Timers,
        clock: Clock,
        fires: Callable[[], bool],
        cpu_ns: Callable[[], int] | None = None,
        thread: Hashable | None = None,
        hrtimer: HrTimer | None = None,
    ) -> None:
        self._timers = timers
        self._clock = clock
        self._fires = fires
        self._cpu_ns = cpu_ns
        self._thread = thread
        self._hrtimer = hrtimer
        self._running: dict[Hashable, Timers] = {}  # threads that use the CPU time; of which CPU
        self._timer: Timer | None = None
        self._armed = False
        self._due_ns = 0
        self.interval_ns = 0
        self.missed = 0  # intervals that had passed, too, when it went on last

    def now_ns(self) -> int:
        return self._clock.elapsed_ns() if self._cpu_ns is None else self._cpu_ns()

    def set(self, value_ns: int, interval_ns: int, mode: HrTimerMode = HrTimerMode.REL) -> None:
        """Fire in `value_ns`, then every `interval_ns` (0: never again). A value of 0 disarms. `mode` is told."""
        self.cancel()
        if value_ns > 0:
            self._start(self.now_ns() + value_ns, interval_ns, mode)

    def set_absolute(self, due_ns: int, interval_ns: int) -> None:
        """Fire at `due_ns` of the timer's own clock; at once if that has passed."""
        self.cancel()
        self._start(due_ns, interval_ns, HrTimerMode.ABS)

    def _start(self, due_ns: int, interval_ns: int, mode: HrTimerMode) -> None:
        self.missed = 0
        self.interval_ns = interval_ns
        self._arm(due_ns)
        if self._hrtimer is not None:
            self._hrtimer.start(due_ns, mode)

    def cancel(self) -> None:
        self._stop()
        self._armed = False
        self.interval_ns = 0
        if self._hrtimer is not None:
            self._hrtimer.cancel()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def suspend(self, thread: Hashable) -> None:
        """A thread whose CPU time it measures leaves its CPU."""
        if self._running.pop(thread, None) is not None:
            self._arm_again()

    def resume(self, thread: Hashable, timers: Timers) -> None:
        """... and comes onto the one whose timers these are."""
        if self._thread in (None, thread):
            self._running[thread] = timers
            self._arm_again()

    def _arm_again(self) -> None:
        self._stop()
        if self._armed:
            self._arm(self._due_ns)

    @property
    def rests(self) -> bool:
        """Whether it is periodic, has fired, and does not go on."""
        return bool(self.interval_ns) and not self._armed

    def go_on(self, least_ns: int = 0) -> None:
        """If it rests: fire again at the next multiple of its interval that is more than `least_ns` away."""
        if self.rests:
            self.missed = max(self.now_ns() + least_ns - self._due_ns, 0) // self.interval_ns
            self._arm(self._due_ns + (self.missed + 1) * self.interval_ns)
            if self._hrtimer is not None:
                self._hrtimer.start(self._due_ns, HrTimerMode.ABS)

    def remaining_ns(self) -> int:
        """Until it fires; 0 if it is not armed."""
        if not self._armed:
            return 0
        return max(self._due_ns - self.now_ns(), 1)

    def until_next_ns(self) -> int:
        """... or until it would fire next, while it rests: common_timer_get()."""
        if self.rests:
            return (self._due_ns - self.now_ns()) % self.interval_ns or self.interval_ns
        return self.remaining_ns()

    def _arm(self, due_ns: int) -> None:
        self._due_ns = due_ns
        self._armed = True
        if self._cpu_ns is not None:
            for timers in self._running.values():
                left_ns = max(due_ns - self._cpu_ns(), 0) // len(self._running)
                cycle = self._clock.cycle_at(self._clock.elapsed_ns() + max(left_ns, 1))
                self._timer = timers.at_cycle(cycle, self._expire)
                return
        else:
            self._timer = self._timers.at_time(due_ns, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._armed = False
        if self.now_ns() < self._due_ns:  # meanwhile the kernel has worked, and the timer is of user time
            self._arm(self._due_ns)
            return
        goes_on = self._fires() if self._hrtimer is None else self._hrtimer.expire(self._fires)
        if goes_on:  # posix_timer_fn() leaves a tick at least to who hears nothing of it
            self.go_on(TICK_NS if self._hrtimer is not None and self.interval_ns < TICK_NS else 0)
