"""Whether samples are of each instruction as often as it is executed: Pearson's chi-square."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np
import numpy.typing as npt

LEAST_EXPECTED = 5
CHANCE_OF_ALL = 0.001  # that the samples of some program differ so much by chance
PROGRAMS = 100  # at most, of all units together: Bonferroni
LEAST_CHANCE = CHANCE_OF_ALL / PROGRAMS


@dataclass(frozen=True, slots=True)
class Fit:
    statistic: float
    freedom: int

    def __str__(self) -> str:
        return f"chi-square {self.statistic:.1f} of {self.freedom} (chance {self.chance:.3f})"

    @property
    def chance(self) -> float:
        """Of a statistic as large as this one, if samples are drawn independently.

        Wilson and Hilferty: the cube root of a chi-square variable over its degrees of freedom k is nearly normal, with
        mean 1 - 2/(9k) and variance 2/(9k). (Of k normal squares the mean is k and the variance 2k. To the second
        order, E f(X) = f(k) + f''(k) k and Var f(X) = f'(k)**2 2k; with f(x) = (x/k)**(1/3), f'(k) = 1/(3k) and
        f''(k) = -2/(9k**2), which gives these; of all powers this one's third moment vanishes in 1/k.)
        """
        spread = 2 / (9 * self.freedom)
        deviations = ((self.statistic / self.freedom) ** (1 / 3) - (1 - spread)) / sqrt(spread)
        return erfc(deviations / sqrt(2)) / 2


def fit(executed: npt.NDArray[np.uint64], sampled: npt.NDArray[np.uint64]) -> Fit:
    """Both are addresses of instructions, each as often as it happened.

    Cells are addresses that are expected five times at least, and all others together.
    """
    addresses, times = np.unique(executed, return_counts=True)
    expected = times * (len(sampled) / len(executed))
    places = np.searchsorted(addresses, sampled)
    assert np.array_equal(addresses[places], sampled), "what was sampled has been executed"
    found = np.bincount(places, minlength=len(addresses))
    often = expected >= LEAST_EXPECTED
    expected = np.append(expected[often], expected[~often].sum())
    found = np.append(found[often], found[~often].sum())
    if expected[-1] < LEAST_EXPECTED:  # too few are left for a cell of their own
        expected[-2] += expected[-1]
        found[-2] += found[-1]
        expected, found = expected[:-1], found[:-1]
    return Fit(float(((found - expected) ** 2 / expected).sum()), len(expected) - 1)
