"""Clock: guest time. The only time there is; nothing comes from the host."""

from __future__ import annotations

from collections.abc import Callable

from emulator._native import ShownCycles
from emulator.frequency import FrequencyProfile, TimeBase

REALTIME_AT_BOOT_NS = 1_700_000_000 * 1_000_000_000  # 2023-11-14 22:13:20 UTC, pinned
MONOTONIC_AT_BOOT_NS = 100 * 1_000_000_000  # a machine that has been up for 100 s


class Clock:
    """Cycles to nanoseconds. All CPUs count from one beginning, at one frequency, idle or not.

    `cycles` gives those of the CPU for which the machine works at the moment; the scheduler sets it. `frequency_hz` is
    the core's. `realtime_at_boot_ns`: since 1970, UTC.

    Time is counted in reference cycles, of which there are always `frequency_hz` in a second: here they are the cycles
    themselves. How long something takes is a difference of those, never of cycles.
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
        """Nanoseconds until a CPU has counted so many, rounded down."""
        return cycles * 1_000_000_000 // self.frequency_hz

    def ns(self, reference: int) -> int:
        """Nanoseconds of so many reference cycles, rounded down."""
        return reference * 1_000_000_000 // self.frequency_hz

    def reference_in(self, ns: int) -> int:
        """The fewest reference cycles that take so long."""
        return -(-ns * self.frequency_hz // 1_000_000_000)

    def reference(self, cycles: int) -> int:
        """Reference cycles until a CPU has counted so many cycles."""
        return cycles

    def passed(self, start: int, end: int) -> int:
        """Reference cycles from one cycle to another."""
        return end - start

    def after(self, cycle: int, reference: int) -> int:
        """The first cycle that is so many reference cycles later."""
        return cycle + reference

    def frequency_at(self, cycle: int) -> int:
        """Hz at which that cycle passes."""
        return self.frequency_hz

    @property
    def frequencies_hz(self) -> tuple[int, int] | None:
        """The lowest and the highest that there ever are, if they change."""
        return None

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

    def shown_at(self, elapsed_ns: int, *, realtime: bool) -> int:
        """What CLOCK_REALTIME, or else CLOCK_MONOTONIC, shows when the machine has been running for so long."""
        return elapsed_ns + (self._realtime_at_boot_ns if realtime else MONOTONIC_AT_BOOT_NS)

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
        """A counter of reference cycles, as long as CLOCK_MONOTONIC, which is its nanoseconds, rounded down."""
        return self.reference(self.shown_cycles()) + MONOTONIC_AT_BOOT_NS // 1_000_000_000 * self.frequency_hz

    @property
    def realtime_offset_ns(self) -> int:
        """What CLOCK_REALTIME shows more than CLOCK_MONOTONIC."""
        return self._realtime_at_boot_ns - MONOTONIC_AT_BOOT_NS

    def cycle_at(self, elapsed_ns: int) -> int:
        """The first cycle at which `elapsed_ns` has passed."""
        return -(-elapsed_ns * self.frequency_hz // 1_000_000_000)


class VariableClock(Clock):
    """... of CPUs whose frequency changes, as a profile says."""

    def __init__(
        self,
        cycles: Callable[[], int],
        frequency_hz: int,
        realtime_at_boot_ns: int = REALTIME_AT_BOOT_NS,
        *,
        profile: FrequencyProfile,
    ) -> None:
        """FrequencyError: a step of the profile is no whole number of reference cycles."""
        super().__init__(cycles, frequency_hz, realtime_at_boot_ns)
        self._base = base = TimeBase(profile, frequency_hz)
        self.shown.set_steps(frequency_hz, base.steps, base.lap_cycles, base.lap_reference)

    def at(self, cycles: int) -> int:
        return self.ns(self._base.reference(cycles))

    def elapsed_ns(self) -> int:
        return self.ns(self._base.reference(self.cycles()))

    def monotonic_ns(self) -> int:
        return MONOTONIC_AT_BOOT_NS + self.elapsed_ns()

    def reference(self, cycles: int) -> int:
        return self._base.reference(cycles)

    def passed(self, start: int, end: int) -> int:
        return self._base.reference(end) - self._base.reference(start)

    def after(self, cycle: int, reference: int) -> int:
        return self._base.cycle_of(self._base.reference(cycle) + reference)

    def cycle_at(self, elapsed_ns: int) -> int:
        return self._base.cycle_of(self.reference_in(elapsed_ns))

    def frequency_at(self, cycle: int) -> int:
        return self._base.frequency_at(cycle)

    @property
    def frequencies_hz(self) -> tuple[int, int] | None:
        return self._base.lowest_hz, self._base.highest_hz
