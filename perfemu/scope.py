"""Scope: what a command counts: the program, a region of it, or all that some CPUs do; and what it shows apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from emulator.linux.mm.mapping import MappedFile
from perfcore.events.regions import Entries, RegionCounts
from perfemu.cpu_list import cpu_numbers
from perfemu.errors import UsageError
from perfemu.namespace import Namespace


class Split(Enum):
    """Of what there are counts apart."""

    NOTHING = auto()
    CPUS = auto()
    SOCKETS = auto()
    THREADS = auto()


class RegionInFiles(Protocol):
    """A region, as it is in the files of one run."""

    def entries(self, file: MappedFile) -> Entries:
        """Where it begins and ends in a file that has been mapped."""

    def remarks(self, counts: RegionCounts) -> Iterable[str]:
        """What the user should know of a region that was reached."""

    def check(self, counts: RegionCounts) -> None:
        """PerfemuError for one that was not."""


class Region(Protocol):
    """A part of the program, as ``perfemu.regions`` makes it: only who has one needs a reader of symbols."""

    @property
    def ends_at_entry(self) -> bool:
        """Of another function, rather than at the return of the first."""

    def in_files(self, space: Namespace) -> RegionInFiles: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """`cpus`: all that these execute; None: the program, wherever it runs. `name` is perf's for the former.

    `region`: of the program only this.
    """

    cpus: tuple[int, ...] | None = None
    name: str = ""
    split: Split = Split.NOTHING
    region: Region | None = None

    def check_shared(self, events: Iterable[str]) -> None:
        """These are counted for all CPUs at once. UsageError where only a part of what happens is wanted."""
        part = "--per-thread" if self.split is Split.THREADS else "a region" if self.region is not None else None
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
    all_cpus: bool, cpu_list: str | None, per_cpu: bool, per_thread: bool, cpus: int, *, per_socket: bool = False
) -> Scope:
    """What -a, -C LIST, -A, --per-socket and --per-thread mean together. Raises UsageError."""
    splits = {"-A": per_cpu, "--per-socket": per_socket, "--per-thread": per_thread}
    asked = [option for option, given in splits.items() if given]
    if len(asked) > 1:
        raise UsageError(f"stat: {asked[0]} and {asked[1]} exclude each other")
    if per_cpu and not all_cpus and cpu_list is None:
        raise UsageError("stat -A: counts of each CPU want -a or -C")
    if per_socket and not all_cpus and cpu_list is None:
        raise UsageError("stat --per-socket: counts of sockets want -a or -C")
    if per_thread and cpu_list is not None:
        raise UsageError("stat: --per-thread and -C exclude each other")
    if per_thread:  # with -a as without: all threads there are belong to the program
        return Scope(split=Split.THREADS)
    split = Split.CPUS if per_cpu else Split.SOCKETS if per_socket else Split.NOTHING
    return scope_of_cpus(all_cpus, cpu_list, cpus, split)


def _parse(text: str, cpus: int) -> tuple[int, ...]:
    """``0,2-3``. UsageError for what is no list, or not there."""
    found = cpu_numbers(text)
    last = found[-1]
    if last >= cpus:
        there = "CPU 0 alone" if cpus == 1 else f"CPUs 0 to {cpus - 1}"
        raise UsageError(f"-C {text}: there is no CPU {last}: the machine has {there} (--cpus)")
    return found
