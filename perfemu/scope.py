"""Scope: what a command counts: the program, a region of it, or all that some CPUs do; and what it shows apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from perfcore.events.followed import Ids
from perfcore.events.kernel import Linux
from perfcore.events.within import Within
from perfemu.cpu_list import cpu_numbers
from perfemu.errors import UsageError
from perfemu.namespace import Namespace


class Split(Enum):
    """Of what there are counts apart: by stat's option."""

    NOTHING = ""
    CPUS = "-A"
    SOCKETS = "--per-socket"
    DIES = "--per-die"
    CORES = "--per-core"
    THREADS = "--per-thread"


class WatchedRegion(Protocol):
    """A region of one run."""

    @property
    def within(self) -> Within:
        """Who is inside."""

    def remarks(self) -> Iterable[str]:
        """After the run: what the user should know of a region that was reached."""

    def check(self) -> None:
        """PerfemuError for one that was not."""


class Region(Protocol):
    """A part of the program, as ``perfemu.regions`` or ``perfemu.markers`` makes it: only who has one needs those."""

    def watched(self, kernel: Linux, isa: str, space: Namespace) -> WatchedRegion:
        """Before the run."""


@dataclass(frozen=True, slots=True)
class Scope:
    """`cpus`: all that these execute; None: the program, wherever it runs. `name` is perf's for the former.

    `region`: of the program only this; `ids`: only these processes and threads, and what they start.
    """

    cpus: tuple[int, ...] | None = None
    name: str = ""
    split: Split = Split.NOTHING
    region: Region | None = None
    ids: Ids | None = None

    @property
    def title(self) -> str:
        """perf's, of ids, in place of the program's name."""
        if self.ids is None:
            return ""
        kind, numbers = ("process", self.ids.pids) if self.ids.pids else ("thread", self.ids.tids)
        return f"{kind} id '{','.join(map(str, sorted(numbers)))}'"

    def check_shared(self, events: Iterable[str]) -> None:
        """These are counted for all CPUs at once. UsageError where only a part of what happens is wanted."""
        parts = {"--per-thread": self.split is Split.THREADS, "a region": self.region, "-p or -t": self.ids}
        part = next((name for name, wanted in parts.items() if wanted), None)
        for event in events:
            if part is not None:
                raise UsageError(
                    f"stat: {part} and {event} exclude each other: it is counted for the machine as a whole"
                )


PROGRAM = Scope()


def scope_of_cpus(all_cpus: bool, cpu_list: str | None, cpus: int, split: Split = Split.NOTHING) -> Scope:
    """What -a and -C LIST mean on a machine of `cpus`. As perf's, -a goes before -C in the heading alone."""
    if cpu_list is not None:
        return Scope(_parse(cpu_list, cpus), "system wide" if all_cpus else f"CPU(s) {cpu_list}", split)
    if all_cpus:
        return Scope(tuple(range(cpus)), "system wide", split)
    return Scope(split=split)


def scope_of_stat(
    all_cpus: bool,
    cpu_list: str | None,
    per_cpu: bool,
    per_thread: bool,
    cpus: int,
    *,
    per_socket: bool = False,
    per_die: bool = False,
    per_core: bool = False,
) -> Scope:
    """What -a, -C LIST, -A, --per-socket, --per-die, --per-core and --per-thread mean together. Raises UsageError."""
    splits = {
        Split.CPUS: per_cpu,
        Split.SOCKETS: per_socket,
        Split.DIES: per_die,
        Split.CORES: per_core,
        Split.THREADS: per_thread,
    }
    split, *others = [split for split, given in splits.items() if given] or [Split.NOTHING]
    if others:
        raise UsageError(f"stat: {split.value} and {others[0].value} exclude each other")
    if per_thread and cpu_list is not None:
        raise UsageError("stat: --per-thread and -C exclude each other")
    if per_thread:  # with -a as without: all threads there are belong to the program
        return Scope(split=split)
    if split is not Split.NOTHING and not all_cpus and cpu_list is None:
        parts = "each CPU" if per_cpu else split.name.lower()
        raise UsageError(f"stat {split.value}: counts of {parts} want -a or -C")
    return scope_of_cpus(all_cpus, cpu_list, cpus, split)


def _parse(text: str, cpus: int) -> tuple[int, ...]:
    """``0,2-3``. UsageError for what is no list, or not there."""
    found = cpu_numbers(text)
    last = found[-1]
    if last >= cpus:
        there = "CPU 0 alone" if cpus == 1 else f"CPUs 0 to {cpus - 1}"
        raise UsageError(f"-C {text}: there is no CPU {last}: the machine has {there} (--cpus)")
    return found


def of_ids(scope: Scope, pids: Sequence[int], tids: Sequence[int]) -> Scope:
    """What -p and -t leave of it. Raises UsageError."""
    if not pids and not tids:
        return scope
    if pids and tids:
        raise UsageError("-p and -t exclude each other")
    if scope.cpus is not None:
        raise UsageError("-p, -t: are of the program's processes and threads: not with -a or -C")
    return replace(scope, ids=Ids(frozenset(pids), frozenset(tids)))
