"""Skid: how far samples are from the instructions whose events they are of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from perfemu.profile.places import Place
from perfemu.profile.profile import Moment


@dataclass(frozen=True, slots=True)
class Skid:
    """How many samples are where."""

    at_instruction: int = 0  # that made the counter wrap
    in_function: int = 0  # of that, at another instruction
    elsewhere: int = 0

    @property
    def samples(self) -> int:
        return self.at_instruction + self.in_function + self.elsewhere


def skid_of(samples: Iterable[Moment], exact: Iterable[Moment]) -> Skid | None:
    """`exact`: the samples of the same overflows that have the instruction itself. None: there are not as many."""
    ours, theirs = _by_task(samples), _by_task(exact)
    if {task: len(places) for task, places in ours.items()} != {task: len(places) for task, places in theirs.items()}:
        return None
    at = near = far = 0
    for task, places in ours.items():
        for found, true in zip(places, theirs[task], strict=True):
            if (found.path, found.offset) == (true.path, true.offset):
                at += 1
            elif found.frame_key[1] == true.frame_key[1] and found.path == true.path and found.symbol is not None:
                near += 1
            else:
                far += 1
    return Skid(at, near, far)


def _by_task(moments: Iterable[Moment]) -> dict[tuple[int, int], list[Place]]:
    """In the order of their times, for each task on each CPU."""
    found: defaultdict[tuple[int, int], list[Place]] = defaultdict(list)
    for moment in sorted(moments, key=lambda each: each.time_ns):
        found[moment.sample.thread.tid, moment.sample.cpu].append(moment.sample.place)
    return found
