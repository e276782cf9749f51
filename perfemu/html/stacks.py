"""Stacks: the call paths of two recordings as one tree of functions, and what each event weighs where."""

from __future__ import annotations

from typing import NamedTuple

from perfemu.html.naming import Function, Names, Task
from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile, ProfileSample

Path = tuple[int, ...]  # of functions by their numbers, outermost first
OLD, NEW = 0, 1


class Node(NamedTuple):
    """A frame of the tree, which is listed as one walks through it: callers before what they call."""

    function: int
    depth: int  # 0 is outermost


class _Numbers:
    """Each function has one number, in order of first appearance."""

    def __init__(self) -> None:
        self.of: dict[Function, int] = {}

    def __call__(self, function: Function) -> int:
        return self.of.setdefault(function, len(self.of))


class Stacks:
    """Collects samples. `weights` are, by event, task and path, the periods in the old recording and in the new one."""

    def __init__(self, events: int) -> None:
        self._number = _Numbers()
        self.weights: list[dict[tuple[Task, Path], list[int]]] = [{} for _ in range(events)]

    def add(self, event: EventProfile, number: int, names: Names, side: int) -> None:
        """The samples of `event` as those of the page's event `number`."""
        paths: dict[int, Path] = {}  # by identity of the chain, which many samples share
        weights = self.weights[number]
        for sample, weight in event.samples.items():
            path = paths.get(id(sample.chain)) if sample.chain else None
            if path is None:
                path = self._path(sample, names, event.has_callchains)
                if sample.chain:
                    paths[id(sample.chain)] = path
            key = (names.task(sample), path)
            both = weights.get(key)
            if both is None:
                both = weights[key] = [0, 0]
            both[side] += weight.period

    def _path(self, sample: ProfileSample, names: Names, chains: bool) -> Path:
        """Without callchains: the file, and the function in it."""
        if not chains:
            return self._number(names.module(sample.place)), self._number(names.function(sample.place))
        chain: tuple[Place, ...] = sample.chain or (sample.place,)
        return tuple([self._number(names.function(place)) for place in reversed(chain)])

    def functions(self) -> list[Function]:
        return sorted(self._number.of)

    def paths(self) -> tuple[dict[Path, int], list[Node]]:
        """Where each path ends among the nodes; the nodes."""
        sorted_number = {function: number for number, function in enumerate(self.functions())}
        renumbered = [sorted_number[function] for function in self._number.of]
        made = {tuple([renumbered[number] for number in path]): path for of in self.weights for _, path in of}
        nodes: list[Node] = []
        ends: dict[Path, int] = {}
        before: list[tuple[int, int]] = []  # function and node, of the path before
        for path in sorted(made):
            same = 0
            while same < len(path) and same < len(before) and path[same] == before[same][0]:
                same += 1
            del before[same:]
            for depth in range(same, len(path)):
                before.append((path[depth], len(nodes)))
                nodes.append(Node(path[depth], depth))
            ends[made[path]] = before[-1][1]
        return ends, nodes
