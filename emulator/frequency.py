"""FrequencyProfile: at which frequency the CPUs' clock runs when; TimeBase: what that makes of their cycles.

Frequencies follow from the machine's time and from nothing else, and are those of all CPUs: each executes at the same
one at the same time. A step is a whole number of cycles, so that all that is computed from them is exact.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

LEAST_HZ, MOST_HZ = 1_000_000, 100_000_000_000  # as core files have it
MOST_STEPS = 100_000
MOST_STEP_US = 1_000_000_000_000
_US_PER_S = 1_000_000
_KEYS, _STEP_KEYS = ("repeat", "step"), ("frequency_hz", "for_us")


class FrequencyError(ValueError):
    """One line for the user."""


@dataclass(frozen=True, slots=True)
class Step:
    """`hz` for so many microseconds; None: from there on."""

    hz: int
    for_us: int | None = None


@dataclass(frozen=True, slots=True)
class FrequencyProfile:
    """Steps, one after the other from the machine's start. Either they repeat, or the last one has no end."""

    steps: tuple[Step, ...]
    repeats: bool = False


def read_profile(path: str) -> FrequencyProfile:
    """The profile of a TOML file (docs/frequency.md). FrequencyError: where it is wrong, and what would be right."""
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise FrequencyError(f"{path}: {error.strerror}; want a frequency profile (TOML)") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FrequencyError(f"{path}: {error}; want a frequency profile (TOML)") from None
    for key in data:
        if key not in _KEYS:
            raise FrequencyError(f"{path}: {key}: unknown key; there is {', '.join(_KEYS)}")
    repeats, rows = data.get("repeat", False), data.get("step")
    if not isinstance(repeats, bool):
        raise FrequencyError(f"{path}: repeat = {repeats!r}: want true or false")
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_STEPS:
        raise FrequencyError(f"{path}: step: want 1 to {MOST_STEPS} tables, [[step]]")
    last = None if repeats else len(rows)
    steps = tuple(_step(f"{path}: step {number}", row, number == last) for number, row in enumerate(rows, 1))
    return FrequencyProfile(steps, repeats)


def _step(where: str, row: object, endless: bool) -> Step:
    if not isinstance(row, dict):
        raise FrequencyError(f"{where}: {row!r}: want a table, [[step]]")
    for key in row:
        if key not in _STEP_KEYS:
            raise FrequencyError(f"{where}: {key}: unknown key; there is {', '.join(_STEP_KEYS)}")
    hz, for_us = row.get("frequency_hz"), row.get("for_us")
    if hz is None:
        raise FrequencyError(f"{where}: frequency_hz: missing; want {LEAST_HZ}..{MOST_HZ}")
    if type(hz) is not int or not LEAST_HZ <= hz <= MOST_HZ:
        raise FrequencyError(f"{where}: frequency_hz = {hz!r}: want {LEAST_HZ}..{MOST_HZ}")
    if endless:
        if for_us is not None:
            raise FrequencyError(f"{where}: for_us = {for_us!r}: the last step has no end, unless repeat = true")
        return Step(hz)
    if for_us is None:
        raise FrequencyError(f"{where}: for_us: missing; want 1..{MOST_STEP_US} microseconds")
    if type(for_us) is not int or not 1 <= for_us <= MOST_STEP_US:
        raise FrequencyError(f"{where}: for_us = {for_us!r}: want 1..{MOST_STEP_US} microseconds")
    if hz * for_us % _US_PER_S:
        raise FrequencyError(f"{where}: {for_us} microseconds at {hz} Hz are no whole number of cycles")
    return Step(hz, for_us)


class TimeBase:
    """Cycles of a machine with a profile, and its reference cycles: those that `reference_hz` has in the same time.

    `steps`: (cycle, reference cycle, Hz) at which each step begins; the whole is a lap of `lap_cycles` cycles, which
    are `lap_reference` reference cycles, and then begins anew; zero if it does not.
    """

    def __init__(self, profile: FrequencyProfile, reference_hz: int) -> None:
        """FrequencyError: a step is no whole number of reference cycles."""
        self.reference_hz = reference_hz
        for number, step in enumerate(profile.steps, 1):
            if step.for_us is not None and reference_hz * step.for_us % _US_PER_S:
                what = f"{step.for_us} microseconds at {reference_hz} Hz, the core's own frequency"
                raise FrequencyError(f"step {number}: {what}, are no whole number of cycles")
        lengths = [step.for_us or 0 for step in profile.steps]
        times = [0, *accumulate(lengths)]
        cycles = [
            0,
            *accumulate(step.hz * length // _US_PER_S for step, length in zip(profile.steps, lengths, strict=True)),
        ]
        self._hz = [step.hz for step in profile.steps]
        self._cycles = cycles[:-1]
        self._reference = [reference_hz * time // _US_PER_S for time in times[:-1]]
        self.lap_cycles = cycles[-1] if profile.repeats else 0
        self.lap_reference = reference_hz * times[-1] // _US_PER_S if profile.repeats else 0
        self.steps = list(zip(self._cycles, self._reference, self._hz, strict=True))

    @property
    def lowest_hz(self) -> int:
        return min(self._hz)

    @property
    def highest_hz(self) -> int:
        return max(self._hz)

    def frequency_at(self, cycle: int) -> int:
        """Hz at which that cycle passes."""
        return self._hz[bisect_right(self._cycles, cycle % self.lap_cycles if self.lap_cycles else cycle) - 1]

    def reference(self, cycles: int) -> int:
        """Whole reference cycles that have passed when so many cycles have."""
        laps, cycles = divmod(cycles, self.lap_cycles) if self.lap_cycles else (0, cycles)
        step = bisect_right(self._cycles, cycles) - 1
        since = (cycles - self._cycles[step]) * self.reference_hz // self._hz[step]
        return laps * self.lap_reference + self._reference[step] + since

    def cycle_of(self, reference: int) -> int:
        """The first cycle at which so many reference cycles have passed."""
        if reference <= 0:
            return reference
        laps, rest = divmod(reference, self.lap_reference) if self.lap_cycles else (0, reference)
        step = bisect_right(self._reference, rest) - 1
        since = -(-(rest - self._reference[step]) * self._hz[step] // self.reference_hz)
        return laps * self.lap_cycles + self._cycles[step] + since
