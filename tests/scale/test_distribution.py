"""The chi-square that judges samples: its quantiles, and that it finds what is biased."""

from __future__ import annotations

import numpy as np
import pytest

from scale.distribution import LEAST_CHANCE, Fit, fit

# Upper quantiles of chi-square, from tables: freedom, value, chance
TABLE = [(5, 11.070, 0.05), (10, 18.307, 0.05), (10, 23.209, 0.01), (30, 50.892, 0.01), (100, 149.449, 0.001)]
LOOP = 1000  # addresses


@pytest.mark.parametrize(("freedom", "statistic", "chance"), TABLE)
def test_chances(freedom: int, statistic: float, chance: float) -> None:
    assert Fit(statistic, freedom).chance == pytest.approx(chance, rel=0.03)


def executed() -> np.ndarray:
    return np.tile(np.arange(LOOP, dtype=np.uint64), 1000)


def test_any_of_them_as_likely_is_a_fit() -> None:
    found = fit(executed(), np.random.default_rng(1).integers(0, LOOP, 100_000).astype(np.uint64))
    assert found.freedom == LOOP - 1
    assert 0.001 < found.chance < 0.999


def test_one_of_ten_that_is_moved_to_the_next_one_is_found() -> None:
    """From even addresses to odd ones."""
    found = np.random.default_rng(1).integers(0, LOOP, 100_000).astype(np.uint64)
    found[::10] |= np.uint64(1)
    assert fit(executed(), found).chance < LEAST_CHANCE


def test_a_period_that_a_loop_divides_is_found() -> None:
    assert fit(executed(), executed()[::10]).chance < LEAST_CHANCE


@pytest.mark.parametrize(("rare", "freedom"), [(300, LOOP), (200, LOOP - 1)])
def test_rare_ones_are_one_cell(rare: int, freedom: int) -> None:
    """One of fifty is sampled: six of 300 addresses that are executed once, four of 200, which join another cell."""
    found = np.append(executed(), np.arange(LOOP, LOOP + rare, dtype=np.uint64))
    assert fit(found, found[::50]).freedom == freedom
