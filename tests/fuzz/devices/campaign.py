"""DevicesCampaign: random accesses to devices, one seed after the other, each eighth of them twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fuzz.devices.run import BASE, run_seed

TWICE = 8  # one in so many runs again, and has to do the same


class DevicesCampaign:
    """From a seed on."""

    def __init__(self, seed: int, base: Path = BASE) -> None:
        self._base = base
        self.seed = seed
        self.runs = self.acts = self.answers = self.messages = self.most_host_bytes = 0
        self.slowest_seconds = 0.0
        self.failures: list[str] = []
        self.endings: Counter[str] = Counter()

    def next(self) -> Iterator[str]:
        """One seed; what is wrong."""
        seed, self.seed = self.seed, self.seed + 1
        outcome = run_seed(seed, self._base)
        problem = outcome.problem
        if not problem and seed % TWICE == 0 and (again := run_seed(seed, self._base)).digest != outcome.digest:
            problem = again.problem or f"two runs differ: {outcome.digest} and {again.digest}"
        self.runs += 1
        self.acts += outcome.acts
        self.answers += outcome.answers
        self.messages += outcome.messages
        self.most_host_bytes = max(self.most_host_bytes, outcome.host_bytes)
        self.slowest_seconds = max(self.slowest_seconds, outcome.slowest_seconds)
        self.endings["a problem" if problem else "all acts done"] += 1
        if problem:
            self.failures.append(f"python tests/fuzz --devices --one --seed {seed} --in {self._base}\n{problem}")
            yield self.failures[-1]

    def summary(self) -> str:
        return (
            f"{self.runs} runs, up to seed {self.seed - 1}: {self.acts:,} acts, {self.answers:,} of them answered, "
            f"{self.messages:,} messages, {len(self.failures)} problems, at most {self.most_host_bytes >> 20} MiB more "
            f"of the host's memory, and {self.slowest_seconds:.2f} s for one act"
        )
