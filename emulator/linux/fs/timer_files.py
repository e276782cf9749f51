"""TimerFile: what timerfd_create(2) makes: a timer whose expirations are read."""

from __future__ import annotations

from collections.abc import Callable

from emulator.clock import Clock
from emulator.linux.errors import EAGAIN, EINVAL, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_RDWR, POLLIN, Caller, File
from emulator.linux.sched.hrtimers import HrTimer, HrTimerMode
from emulator.linux.sched.timers import Timer, Timers


class TimerFile(File):
    """A timerfd. As in Linux it rests from its expiration until somebody reads it or asks for its time."""

    reads_each_piece = True

    def __init__(self, clock: Clock, clock_id: int, timers: Callable[[], Timers], flags: int, hrtimer: HrTimer) -> None:
        super().__init__(O_RDWR | flags, "anon_inode:[timerfd]")
        self.clock_id = clock_id
        self._clock = clock
        self._timers = timers  # of the CPU for which the machine works
        self._hrtimer = hrtimer
        self._timer: Timer | None = None
        self._due_ns: int | None = None  # elapsed; of the next expiration, or of the last one
        self._expired = False  # and not armed again since then
        self._ticks = 0  # expirations that have not been read
        self.interval_ns = 0

    def set(self, due_ns: int | None, interval_ns: int, mode: HrTimerMode) -> None:
        """Expire at `due_ns` of the machine's elapsed time (None: not), then every `interval_ns` (0: never again).

        `mode` is what is told of it.
        """
        self._stop()
        self._hrtimer.set_mode(mode)
        self._due_ns, self.interval_ns = due_ns, interval_ns
        self._expired = False
        self._ticks = 0
        self._arm()

    def _arm(self, mode: HrTimerMode | None = None) -> None:
        if self._due_ns is not None:
            self._hrtimer.start(self._due_ns, mode)
            self._timer = self._timers().at_time(self._due_ns, self._expire)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._hrtimer.cancel()

    def _expire(self) -> None:
        self._timer = None
        self._hrtimer.expire(self._tick)

    def _tick(self) -> None:
        self._expired = True
        self._ticks += 1
        self.changed.wake()

    def go_on(self) -> None:
        """Who reads it or asks for its time lets a periodic one that has expired go on (fs/timerfd.c)."""
        if self._expired and self.interval_ns and self._due_ns is not None:
            missed = max(self._clock.elapsed_ns() - self._due_ns, 0) // self.interval_ns
            self._ticks += missed
            self._due_ns += (missed + 1) * self.interval_ns
            self._expired = False
            self._arm(HrTimerMode.ABS)

    def remaining_ns(self) -> int:
        """Until the next expiration; 0 where there is none."""
        if self._due_ns is None:
            return 0
        left = self._due_ns - self._clock.elapsed_ns()
        if self._expired:
            return left % self.interval_ns or self.interval_ns if self.interval_ns else 0
        return max(left, 1)

    def read(self, task: Caller, destination: Destination) -> int:
        """What does not arrive is told no more."""
        if destination.left < 8:
            raise LinuxError(EINVAL, f"a timerfd is read into 8 bytes, not {destination.left}")
        if not self._ticks:
            raise LinuxError(EAGAIN, "the timer has not expired")
        self.go_on()
        ticks, self._ticks = self._ticks, 0
        return destination.give_whole(ticks.to_bytes(8, "little"))

    def poll(self) -> int:
        return POLLIN if self._ticks else 0

    def close(self) -> None:
        self._stop()
