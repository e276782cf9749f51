"""Campaign: random programs one after the other, each fourth of them twice, and what became of them together."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from emulator.linux.syscalls.names import syscall_name
from fuzz.run import ANY_CALLS, BASE, Kind, Outcome, run_seed

ISAS = ("aarch64", "x86_64")
TWICE = 4  # one in so many runs again, and has to do the same
SLOW_SECONDS = 10  # of CPU time


class Campaign:
    """Programs of these ISAs, from a seed on."""

    def __init__(self, isas: Sequence[str], seed: int, base: Path = BASE, kind: Kind = ANY_CALLS) -> None:
        self._isas = isas
        self._base = base
        self._kind = kind
        self.seed = seed
        self.programs = self.calls = self.tasks = self.most_host_bytes = 0
        self.failures: list[str] = []
        self.endings: Counter[str] = Counter()
        self._succeeded: dict[str, set[int]] = {isa: set() for isa in isas}

    def next(self) -> Iterator[str]:
        """One seed on each ISA; what is wrong."""
        for isa in self._isas:
            outcome = run_seed(isa, self.seed, self._base, self._kind)
            self._note(isa, outcome)
            problem = outcome.problem
            if not problem and self.seed % TWICE == 0:
                problem = _difference(outcome, run_seed(isa, self.seed, self._base, self._kind))
            if problem:
                again = f"python tests/fuzz{self._kind.option} --one --isa {isa} --seed {self.seed} --in {self._base}"
                self.failures.append(f"{again}\n{problem}")
                yield self.failures[-1]
            elif outcome.seconds > SLOW_SECONDS:
                yield f"slow: {isa} {self.seed} took {outcome.seconds:.1f} s of CPU time"
        self.seed += 1

    def _note(self, isa: str, outcome: Outcome) -> None:
        self.programs += 1
        self.calls += outcome.calls
        self.tasks += outcome.tasks
        self.most_host_bytes = max(self.most_host_bytes, outcome.host_bytes)
        self._succeeded[isa].update(outcome.kinds)
        if outcome.stopped is not None:
            ending = outcome.stopped.rpartition("(")[2].rstrip(")")  # the option that stops it
        else:
            ending = "exit" if os.WIFEXITED(outcome.status) else f"signal {outcome.status & 127}"
        self.endings[ending] += 1

    def never_succeeded(self, isa: str) -> list[str]:
        """Names of the calls that have a row and of which none has succeeded."""
        return [row.name for row in self._kind.rows(isa) if row.number(isa) not in self._succeeded[isa]]

    def summary(self) -> str:
        lines = [
            f"{self.programs} programs, up to seed {self.seed - 1}: {self.tasks:,} tasks, {self.calls:,} calls, "
            f"{len(self.failures)} problems, at most {self.most_host_bytes >> 20} MiB more of the host's memory"
        ]
        for isa in self._isas:
            known = {row.number(isa) for row in self._kind.rows(isa)}
            unknown = sorted(syscall_name(isa, number) for number in self._succeeded[isa] - known)
            assert not unknown, f"{isa}: calls without a row have succeeded: {unknown}"
            lines.append(f"{isa}: never succeeded: {' '.join(self.never_succeeded(isa))}")
        return "\n".join(lines)


def _difference(one: Outcome, other: Outcome) -> str:
    """Of two runs of a program, which do the same."""
    if other.problem:
        return f"the second run: {other.problem}"
    for name in ("status", "stopped", "calls", "tasks", "digest"):
        if getattr(one, name) != getattr(other, name):
            return f"two runs differ: {name} {getattr(one, name)} and {getattr(other, name)}"
    return ""
