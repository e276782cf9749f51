"""Clock: guest time. The only time there is; nothing comes from the host."""

from __future__ import annotations

from collections.abc import Callable

REALTIME_AT_BOOT_NS = 1_700_000_000 * 1_000_000_000  # 2023-11-14 22:13:20 UTC, pinned
MONOTONIC_AT_BOOT_NS = 100 * 1_000_000_000  # a machine that has been up for 100 s


class Clock:
    """Cycles to nanoseconds, plus the time in which the machine was idle.

    `cycles` gives the cycles executed so far (never decreasing); `frequency_hz` is the core's.
    """

    def __init__(self, cycles: Callable[[], int], frequency_hz: int) -> None:
        self._cycles = cycles
        self.frequency_hz = frequency_hz
        self.idle_ns = 0

    def busy_ns(self) -> int:
        """Nanoseconds of executed cycles."""
        return self.ns_of(self._cycles())

    def ns_of(self, cycles: int) -> int:
        return cycles * 1_000_000_000 // self.frequency_hz

    def elapsed_ns(self) -> int:
        """Nanoseconds since the machine started, idle time included."""
        return self.busy_ns() + self.idle_ns

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC, and perf's sample time (local_clock). Written out: every sample asks."""
        return MONOTONIC_AT_BOOT_NS + self.idle_ns + self._cycles() * 1_000_000_000 // self.frequency_hz

    def realtime_ns(self) -> int:
        return REALTIME_AT_BOOT_NS + self.elapsed_ns()

    def sleep(self, duration_ns: int) -> None:
        """Pass `duration_ns` without executing anything."""
        self.idle_ns += max(duration_ns, 0)

    def cycle_at(self, elapsed_ns: int) -> int:
        """The first cycle at which `elapsed_ns` has passed, if the machine does not idle."""
        busy_ns = elapsed_ns - self.idle_ns
        return -(-busy_ns * self.frequency_hz // 1_000_000_000)
