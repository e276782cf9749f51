"""CheckpointCampaign: mutated checkpoints, one seed after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fuzz.checkpoints.run import BASE, run_seed


class CheckpointCampaign:
    """From a seed on."""

    def __init__(self, seed: int, base: Path = BASE) -> None:
        self._base = base
        self.seed = seed
        self.files = 0
        self.failures: list[str] = []
        self.endings: Counter[str] = Counter()

    def next(self) -> Iterator[str]:
        """One seed; what is wrong."""
        seed, self.seed = self.seed, self.seed + 1
        outcome = run_seed(seed, self._base)
        self.files += 1
        self.endings["a problem" if outcome.problem else outcome.ending] += 1
        if outcome.problem:
            self.failures.append(
                f"python tests/fuzz --checkpoints --one --seed {seed} --in {self._base}\n{outcome.problem}"
            )
            yield self.failures[-1]

    def summary(self) -> str:
        return f"{self.files} checkpoints, up to seed {self.seed - 1}: {len(self.failures)} problems"
