"""Accuracy: shares, their intervals, what chance would do, and Pearson's test, against sums and tables of others."""

from __future__ import annotations

from math import comb

import pytest

from perfemu.truth.accuracy import ChiSquare, compare, effective_samples, mean_deviation, wilson


@pytest.mark.parametrize("draws", [1, 7, 40])
@pytest.mark.parametrize("share", [0.001, 0.25, 0.5, 0.9, 0.999])
def test_what_chance_is_off_by_is_the_mean_over_all_outcomes(share: float, draws: int) -> None:
    outcomes = ((comb(draws, k) * share**k * (1 - share) ** (draws - k), k / draws) for k in range(draws + 1))
    assert mean_deviation(share, draws) == pytest.approx(sum(p * abs(found - share) for p, found in outcomes))


def test_chance_does_nothing_where_nothing_is_left_to_it() -> None:
    assert mean_deviation(0.0, 10) == mean_deviation(1.0, 10) == 0


@pytest.mark.parametrize(
    ("statistic", "freedom", "p"),
    [(3.841, 1, 0.05), (18.307, 10, 0.05), (23.209, 10, 0.01), (124.342, 100, 0.05), (9.342, 10, 0.5)],
)
def test_p_is_that_of_the_tables(statistic: float, freedom: int, p: float) -> None:
    """Upper quantiles as statistics books print them."""
    assert ChiSquare(statistic, freedom).p == pytest.approx(p, abs=0.004)


def test_wilson_of_ten_without_one() -> None:
    """0 of 10: 0 to z^2 / (10 + z^2), 0.2775."""
    assert wilson(0.0, 10) == (0.0, pytest.approx(0.2775, abs=1e-4))


def test_wilson_of_one_half() -> None:
    """50 of 100: 0.404 to 0.596, as R's prop.test(50, 100, correct=FALSE) says."""
    assert wilson(0.5, 100) == (pytest.approx(0.4038, abs=1e-4), pytest.approx(0.5962, abs=1e-4))


def test_samples_of_unequal_weight_tell_less() -> None:
    assert effective_samples({7: 12}) == 12
    assert effective_samples({1: 2, 3: 2}) == pytest.approx(64 / 20)  # (1 + 1 + 3 + 3)^2 / (1 + 1 + 9 + 9)


def test_what_is_sampled_is_held_against_what_is_so() -> None:
    """a has 60 % and is given 75 %, b has 30 % and 25 %, c 10 % and nothing: 15 % are in the wrong place.

    Of 40 samples 24, 12 and 4 are due, where 30, 10 and 0 are: the last class is the rest, for less than 5 are due.
    36/24 + 4/12 + 16/4 = 5.83.
    """
    found = compare({"a": 60, "b": 30, "c": 10}, {"a": 750, "b": 250}, {"a": 30, "b": 10}, 40)
    assert [share.key for share in found.shares] == ["a", "b", "c"]
    assert found.error == pytest.approx(0.15)
    assert found.chi_square.statistic == pytest.approx(36 / 24 + 4 / 12 + 16 / 4)
    assert found.chi_square.freedom == 2
    assert [share.key for share in found.unseen] == ["c"]
    assert [share.is_outside for share in found.shares] == [False, False, True]
    assert found.by_chance == pytest.approx(sum(mean_deviation(share, 40) for share in (0.6, 0.3, 0.1)) / 2)


def test_what_only_samples_know_is_wrong() -> None:
    found = compare({"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1}, 2)
    assert found.error == found.impossible == 0.5
    assert found.chi_square.freedom == 0


def test_nothing_is_no_comparison() -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        compare({}, {"a": 1}, {"a": 1}, 1)
