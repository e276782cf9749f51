"""Each instruction is sampled as often as it is executed: chi-square against the exact attribution."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import pytest

from attribution import start_attribution, tally
from counts.test_spe_records import Sampled
from emulator._native import Core


@pytest.mark.parametrize("core", ["ideal", "neoverse-n1"])
def test_the_sampled_distribution_is_the_executed_one(core: str) -> None:
    """The statistic's mean is the number of classes less one, its variance twice that: it is within 4 deviations.

    An interval of 256 and a random number of [0, 256) more: 383.5 instructions on average. Classes are instructions
    that are expected 5 times at least, and all others together.
    """
    attributed: list[Core] = []

    def attribute(core: Core) -> None:
        start_attribution(core)
        attributed.append(core)

    sampled = Sampled("sort", core, arguments=("5000",), before=attribute, RND=1)
    executed = tally(attributed[0])
    found = Counter(record.addresses["pc"] for record in sampled.records)
    samples, instructions = found.total(), executed.total()
    assert samples == pytest.approx(instructions / 383.5, rel=0.02)
    expected = {pc: times * samples / instructions for pc, times in executed.items()}
    classes = [pc for pc, times in expected.items() if times >= 5]
    rest = samples - sum(expected[pc] for pc in classes)
    statistic = sum((found[pc] - expected[pc]) ** 2 / expected[pc] for pc in classes)
    if rest:
        statistic += (samples - sum(found[pc] for pc in classes) - rest) ** 2 / rest
    freedom = len(classes) - (0 if rest else 1)
    assert freedom > 20
    assert abs(statistic - freedom) < 4 * sqrt(2 * freedom)
