"""Accuracy: how far the shares that samples give are from the true ones, and whether chance explains it.

Samples are taken for independent draws, as a reader of a profile must take them. `by chance` is what such draws would
be off on average. Samples that come every N events are not drawn: over a steady program they are nearer to the truth,
and where a loop's length divides N, farther from it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import erfc, exp, floor, isfinite, lgamma, log, log1p, sqrt
from typing import Generic, TypeVar

Z_95 = 1.959964  # quantile of the normal distribution at 0.975
LEAST_EXPECTED = 5.0  # samples of a class: fewer are put together, as for any chi-square test

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Share(Generic[Key]):
    """One function, say. Shares are 0 to 1."""

    key: Key
    true: float
    sampled: float
    samples: int
    low: float  # Wilson's interval of 95 % about `sampled`
    high: float

    @property
    def bias(self) -> float:
        return self.sampled - self.true

    @property
    def is_outside(self) -> bool:
        """Whether the truth is not within what the samples would make a reader believe: of 20 one is by chance."""
        return not self.low <= self.true <= self.high


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """Pearson's test, over the classes in which enough samples are expected and the rest."""

    statistic: float
    freedom: int  # classes less one

    @property
    def p(self) -> float:
        """How likely chance alone is off by so much. 1 without any freedom.

        By the cube root, which is normally distributed (Wilson and Hilferty, 1931): to some thousandths.
        """
        if not self.freedom:
            return 1.0
        variance = 2 / (9 * self.freedom)
        deviation = ((self.statistic / self.freedom) ** (1 / 3) - (1 - variance)) / sqrt(variance)
        return 0.5 * erfc(deviation / sqrt(2))


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Key]):
    """What samples say of some classes, and what is so."""

    shares: tuple[Share[Key], ...]  # the heaviest first, by truth
    error: float  # the part of all weight that is in the wrong class: 0 to 1
    by_chance: float  # ... on average, of as many independent samples
    chi_square: ChiSquare

    @property
    def unseen(self) -> tuple[Share[Key], ...]:
        """Classes without a sample that chance would have given some: shadowed, or passed over by the period."""
        return tuple(share for share in self.shares if not share.samples and share.is_outside)

    @property
    def impossible(self) -> float:
        """The part of the samples that is where no event was: 0 to 1."""
        return sum(share.sampled for share in self.shares if not share.true)


def compare(
    true: Mapping[Key, int], sampled: Mapping[Key, int], samples: Mapping[Key, int], effective: float
) -> Comparison[Key]:
    """`true`: events; `sampled`: the weight of samples; `samples`: their number. `effective`: so many samples of equal
    weight tell as much. ValueError without events or without samples."""
    events, weight = sum(true.values()), sum(sampled.values())
    if not events or not weight:
        raise ValueError("nothing to compare: there are no events, or no samples")
    keys = sorted(true.keys() | sampled.keys(), key=lambda key: (-true.get(key, 0), -sampled.get(key, 0), str(key)))
    shares = [
        _share(key, true.get(key, 0) / events, sampled.get(key, 0) / weight, samples.get(key, 0), effective)
        for key in keys
    ]
    return Comparison(
        tuple(shares),
        sum(abs(share.bias) for share in shares) / 2,
        sum(mean_deviation(share.true, effective) for share in shares) / 2,
        _chi_square(shares, effective),
    )


def effective_samples(weights: Mapping[int, int]) -> float:
    """Of how many samples have which weight (weight -> number): Kish's, (sum of w)^2 / sum of w^2."""
    total = sum(weight * number for weight, number in weights.items())
    squares = sum(weight * weight * number for weight, number in weights.items())
    return total * total / squares if squares else 0.0


def mean_deviation(share: float, draws: float) -> float:
    """How far the part of `draws` independent draws that fall into a class of this share is from it, on average.

    De Moivre's: 2 v C(n, v) p^v (1 - p)^(n - v + 1), with v = floor(n p) + 1, divided by n.
    """
    if not 0 < share < 1:
        return 0.0
    above = floor(draws * share) + 1
    if above > draws:
        return 2 * exp(draws * log(share)) * (1 - share)
    ways = lgamma(draws + 1) - lgamma(above + 1) - lgamma(draws - above + 1)
    logarithm = log(2 * above / draws) + ways + above * log(share) + (draws - above + 1) * log1p(-share)
    return exp(logarithm)


def _share(key: Key, true: float, sampled: float, samples: int, effective: float) -> Share[Key]:
    low, high = wilson(sampled, effective)
    return Share(key, true, sampled, samples, low, high)


def wilson(share: float, draws: float) -> tuple[float, float]:
    """The interval of 95 % about a share that was found among so many draws (E. B. Wilson, 1927)."""
    square = Z_95 * Z_95
    middle = (share + square / (2 * draws)) / (1 + square / draws)
    half = Z_95 * sqrt(share * (1 - share) / draws + square / (4 * draws * draws)) / (1 + square / draws)
    return max(0.0, middle - half), min(1.0, middle + half)


def _chi_square(shares: list[Share[Key]], effective: float) -> ChiSquare:
    statistic, classes = 0.0, 0
    rest_true = rest_sampled = 0.0
    for share in shares:
        if share.true * effective < LEAST_EXPECTED:
            rest_true += share.true
            rest_sampled += share.sampled
            continue
        classes += 1
        statistic += share.bias**2 / share.true
    if rest_true > 0:
        classes += 1
        statistic += (rest_sampled - rest_true) ** 2 / rest_true
    statistic *= effective
    assert isfinite(statistic)
    return ChiSquare(statistic, max(0, classes - 1))
