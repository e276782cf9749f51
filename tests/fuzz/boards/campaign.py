"""BoardCampaign: random images one after the other, watched and not, each fourth of them twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fuzz.boards.run import BASE, FUZZED, run_seed

BOARDS = tuple(FUZZED)
TWICE = 4  # one in so many runs again, and has to do the same
SLOW_SECONDS = 10  # of CPU time


class BoardCampaign:
    """Images for these boards, from a seed on."""

    def __init__(self, boards: Sequence[str], seed: int, base: Path = BASE) -> None:
        self._boards = boards
        self._base = base
        self.seed = seed
        self.images = self.instructions = self.exceptions = self.most_host_bytes = 0
        self.failures: list[str] = []
        self.endings: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()  # of messages

    def next(self) -> Iterator[str]:
        """One seed on each board; what is wrong."""
        for board in self._boards:
            yield from self._run(board)
        self.seed += 1

    def _run(self, board: str) -> Iterator[str]:
        seed = self.seed
        outcome = run_seed(board, seed, self._base)
        self.images += 1
        self.instructions += outcome.instructions
        self.exceptions += outcome.exceptions
        self.most_host_bytes = max(self.most_host_bytes, outcome.host_bytes)
        self.endings[outcome.ending] += 1
        self.kinds.update(outcome.kinds)
        problem = outcome.problem
        if not problem and seed % TWICE == 0 and (again := run_seed(board, seed, self._base)).digest != outcome.digest:
            problem = again.problem or f"two runs differ: {outcome.digest} and {again.digest}"
        if problem:
            self.failures.append(f"python tests/fuzz --board {board} --one --seed {seed} --in {self._base}\n{problem}")
            yield self.failures[-1]
        elif outcome.seconds > SLOW_SECONDS:
            yield f"slow: {board} {seed} took {outcome.seconds:.1f} s of CPU time"

    def summary(self) -> str:
        return (
            f"{self.images} images, up to seed {self.seed - 1}: {self.instructions:,} instructions, "
            f"{self.exceptions:,} exceptions, {len(self.failures)} problems, at most {self.most_host_bytes >> 20} MiB "
            "more of the host's memory"
        )
