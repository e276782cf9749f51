"""Clock: guest time. The only time there is; nothing comes from the host."""

from __future__ import annotations

from collections.abc import Callable

from emulator._native import ShownCycles

REALTIME_AT_BOOT_NS = 1_700_000_000 * 1_000_000_000  # 2023-11-14 22:13:20 UTC, pinned
MONOTONIC_AT_BOOT_NS = 100 * 1_000_000_000  # a machine that has been up for 100 s


class Clock:
    """Cycles to nanoseconds. All CPUs count from one beginning, at one frequency, idle or not.

    `cycles` gives those of the CPU for which the machine works at the moment; the scheduler sets it. `frequency_hz` is
    the core's. `realtime_at_boot_ns`: since 1970, UTC.
    """

    kept = ("latest_shown",)

    def __init__(
        self, cycles: Callable[[], int], frequency_hz: int, realtime_at_boot_ns: int = REALTIME_AT_BOOT_NS
    ) -> None:
        self.cycles = cycles
        self.frequency_hz = frequency_hz
        self._realtime_at_boot_ns = realtime_at_boot_ns
        self.shown = ShownCycles()  # x86-64 cores read and write it, too

    def at(self, cycles: int) -> int:
        """Nanoseconds of so many cycles, rounded down."""
        return cycles * 1_000_000_000 // self.frequency_hz

    def elapsed_ns(self) -> int:
        """Nanoseconds since the machine started."""
        return self.cycles() * 1_000_000_000 // self.frequency_hz

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC of this CPU, and perf's sample time (local_clock). Written out: every sample asks."""
        return MONOTONIC_AT_BOOT_NS + self.cycles() * 1_000_000_000 // self.frequency_hz

    def monotonic_at(self, cycles: int) -> int:
        """CLOCK_MONOTONIC of a CPU that has counted so many."""
        return MONOTONIC_AT_BOOT_NS + self.at(cycles)

    def realtime_ns(self) -> int:
        return self._realtime_at_boot_ns + self.elapsed_ns()

    def elapsed_at(self, ns: int, *, realtime: bool) -> int:
        """When CLOCK_REALTIME, or else CLOCK_MONOTONIC, shows `ns`, in nanoseconds since the machine started."""
        return ns - (self._realtime_at_boot_ns if realtime else MONOTONIC_AT_BOOT_NS)

    def shown_cycles(self) -> int:
        """Cycles as guests see them: what one CPU has shown, no other takes back."""
        return self.shown.show(self.cycles())

    @property
    def latest_shown(self) -> int:
        """What `shown_cycles` has shown last."""
        return self.shown.latest

    @latest_shown.setter
    def latest_shown(self, cycles: int) -> None:
        self.shown.latest = cycles

    def shown_ns(self) -> int:
        """CLOCK_MONOTONIC as guests see it: it never goes back, whichever CPU they ask."""
        return MONOTONIC_AT_BOOT_NS + self.at(self.shown_cycles())

    def ahead_ns(self) -> int:
        """How far a guest's clocks are ahead of this CPU's."""
        return self.at(self.shown_cycles()) - self.elapsed_ns()

    def counter(self) -> int:
        """A counter of cycles that says as much as CLOCK_MONOTONIC, which is its nanoseconds, rounded down."""
        return self.shown_cycles() + MONOTONIC_AT_BOOT_NS // 1_000_000_000 * self.frequency_hz

    @property
    def realtime_offset_ns(self) -> int:
        """What CLOCK_REALTIME shows more than CLOCK_MONOTONIC."""
        return self._realtime_at_boot_ns - MONOTONIC_AT_BOOT_NS

    def cycle_at(self, elapsed_ns: int) -> int:
        """The first cycle at which `elapsed_ns` has passed."""
        return -(-elapsed_ns * self.frequency_hz // 1_000_000_000)
