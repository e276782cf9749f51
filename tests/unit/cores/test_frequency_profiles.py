"""Frequency profiles: what they make of cycles, against sums of fractions; and what is no profile."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest

from emulator.clock import MONOTONIC_AT_BOOT_NS, Clock, VariableClock
from emulator.frequency import FrequencyError, FrequencyProfile, Step, TimeBase, read_profile

NANO = 1_000_000_000
MHZ = 1_000_000
STEPS = (Step(2000 * MHZ, 3), Step(400 * MHZ, 5), Step(3700 * MHZ, 1), Step(1 * MHZ, 7), Step(1000 * MHZ, 4))
PROFILES = [
    FrequencyProfile(STEPS, repeats=True),
    FrequencyProfile((*STEPS, Step(1234 * MHZ))),
    FrequencyProfile((Step(800 * MHZ),)),
    FrequencyProfile((Step(3 * MHZ, 1),), repeats=True),
]


def seconds(profile: FrequencyProfile, cycles: int) -> Fraction:
    """When so many cycles have passed: whole laps, whole steps, and cycles of the step that is under way."""
    lap = sum(step.hz * step.for_us // 10**6 for step in profile.steps if step.for_us)
    time = Fraction(0)
    if profile.repeats:
        laps, cycles = divmod(cycles, lap)
        time = laps * Fraction(sum(step.for_us or 0 for step in profile.steps), 10**6)
    for step in profile.steps:
        here = cycles if step.for_us is None else min(cycles, step.hz * step.for_us // 10**6)
        time += Fraction(here, step.hz)
        cycles -= here
    return time


def some_cycles() -> list[int]:
    draw = random.Random(7)
    return [*range(25), *range(5990, 6010), *(draw.getrandbits(bits) for bits in range(4, 44) for _ in range(8))]


@pytest.mark.parametrize("reference_hz", [1000 * MHZ, 3700 * MHZ, 62 * MHZ])
@pytest.mark.parametrize("profile", PROFILES)
def test_reference_cycles_are_exact(profile: FrequencyProfile, reference_hz: int) -> None:
    """And the native core, which answers guests' reads, has the same."""
    base = TimeBase(profile, reference_hz)
    clock = VariableClock(lambda: 0, reference_hz, profile=profile)
    for cycles in some_cycles():
        expected = int(seconds(profile, cycles) * reference_hz)  # rounded down
        assert base.reference(cycles) == expected
        assert clock.shown.reference(cycles) == expected
        assert clock.at(cycles) == expected * NANO // reference_hz


@pytest.mark.parametrize("profile", PROFILES)
def test_a_time_is_the_first_cycle_that_has_come_so_far(profile: FrequencyProfile) -> None:
    clock = VariableClock(lambda: 0, 1900 * MHZ, profile=profile)
    draw = random.Random(8)
    for ns in (*range(1, 9000, 7), *(draw.getrandbits(bits) + 1 for bits in range(50))):
        cycle = clock.cycle_at(ns)
        assert clock.at(cycle) >= ns > clock.at(cycle - 1)
    assert clock.cycle_at(0) == 0


@pytest.mark.parametrize("profile", PROFILES)
def test_lengths_add_up(profile: FrequencyProfile) -> None:
    clock = VariableClock(lambda: 0, 1900 * MHZ, profile=profile)
    draw = random.Random(9)
    cycle = total = 0
    for _ in range(500):
        following = cycle + draw.randrange(5000)
        total += clock.passed(cycle, following)
        cycle = following
        length = draw.randrange(1, 100_000)
        later = clock.after(cycle, length)
        assert clock.passed(cycle, later) >= length > clock.passed(cycle, later - 1)
    assert total == clock.reference(cycle)


def test_each_step_has_its_frequency() -> None:
    """3 us at 2 GHz are 6,000 cycles, 5 us at 400 MHz 2,000, and so on: a lap has 6,000 + 2,000 + 3,700 + 7 + 4,000."""
    clock = VariableClock(lambda: 0, 1000 * MHZ, profile=PROFILES[0])
    lap = 15_707
    for start, megahertz in ((0, 2000), (6000, 400), (8000, 3700), (11_700, 1), (11_707, 1000), (lap, 2000)):
        assert clock.frequency_at(start) == clock.frequency_at(start + 5 * lap) == megahertz * MHZ
        assert start == 0 or clock.frequency_at(start - 1) != megahertz * MHZ
    assert clock.frequencies_hz == (1 * MHZ, 3700 * MHZ)
    assert clock.at(lap) == 20_000  # ns: 3 + 5 + 1 + 7 + 4 us
    assert Clock(lambda: 0, 1000 * MHZ).frequencies_hz is None


@pytest.mark.parametrize("frequency_hz", [1_000 * MHZ, 3_123 * MHZ])
def test_the_counter_says_what_the_clock_says(frequency_hz: int) -> None:
    """What programs compute from it, in the vDSO, is what the kernel says."""
    cycles = 0
    clock = VariableClock(lambda: cycles, frequency_hz, profile=PROFILES[0])
    for now in sorted(some_cycles()):
        cycles = now
        assert clock.counter() * NANO // frequency_hz == clock.shown_ns() == clock.monotonic_ns()
        assert clock.shown_ns() == MONOTONIC_AT_BOOT_NS + clock.elapsed_ns()


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(
        "repeat = true\n[[step]]\nfrequency_hz = 2_000_000_000\nfor_us = 3\n"
        "[[step]]\nfrequency_hz = 1_500_000\nfor_us = 2\n"
    )
    assert read_profile(str(path)) == FrequencyProfile((Step(2_000_000_000, 3), Step(1_500_000, 2)), repeats=True)


STEP = "[[step]]\nfrequency_hz = 1_000_000_000\n"
WRONG = {
    "": ": step: want 1 to 100000 tables, [[step]]",
    "step = 3": ": step: want 1 to 100000 tables, [[step]]",
    "step = [3]": ": step 1: 3: want a table, [[step]]",
    "x = 1": ": x: unknown key; there is repeat, step",
    f"repeat = 1\n{STEP}": ": repeat = 1: want true or false",
    f"repeat = true\n{STEP}": ": step 1: for_us: missing; want 1..1000000000000 microseconds",
    f"{STEP}{STEP}": ": step 1: for_us: missing; want 1..1000000000000 microseconds",
    f"{STEP}for_us = 1": ": step 1: for_us = 1: the last step has no end, unless repeat = true",
    f"{STEP}for_us = 0\n{STEP}": ": step 1: for_us = 0: want 1..1000000000000 microseconds",
    f"{STEP}for_us = 1.5\n{STEP}": ": step 1: for_us = 1.5: want 1..1000000000000 microseconds",
    f"{STEP}for_ms = 1\n{STEP}": ": step 1: for_ms: unknown key; there is frequency_hz, for_us",
    "[[step]]": ": step 1: frequency_hz: missing; want 1000000..100000000000",
    "[[step]]\nfrequency_hz = true": ": step 1: frequency_hz = True: want 1000000..100000000000",
    "[[step]]\nfrequency_hz = 999_999": ": step 1: frequency_hz = 999999: want 1000000..100000000000",
    f"[[step]]\nfrequency_hz = 1_000_001\nfor_us = 9\n{STEP}": ": step 1: 9 microseconds at 1000001 Hz are no "
    "whole number of cycles",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_profile_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(text)
    with pytest.raises(FrequencyError) as raised:
        read_profile(str(path))
    assert str(raised.value) == f"{path}{WRONG[text]}"


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FrequencyError, match=r"nothing: No such file or directory; want a frequency profile"):
        read_profile(str(tmp_path / "nothing"))
    for content in (b"[[step", b"\xff"):
        (tmp_path / "bytes").write_bytes(content)
        with pytest.raises(FrequencyError, match=r"; want a frequency profile \(TOML\)$"):
            read_profile(str(tmp_path / "bytes"))


def test_steps_are_whole_cycles_of_the_core_as_well() -> None:
    profile = FrequencyProfile((Step(1000 * MHZ, 3), Step(500 * MHZ)))
    with pytest.raises(FrequencyError, match=r"^step 1: 3 microseconds at 1234567890 Hz, the core's own frequency, "):
        TimeBase(profile, 1_234_567_890)
