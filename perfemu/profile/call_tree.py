"""CallTree: call paths with their weights, shared from the front; what perf prints below a line of its report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from perfemu.profile.places import Place


class _Node:
    __slots__ = ("children", "hits", "place", "samples")

    def __init__(self, place: Place | None) -> None:
        self.place = place
        self.children: dict[tuple[int, int], _Node] = {}
        self.hits = 0  # period of the paths that end here
        self.samples = 0


@dataclass(frozen=True, slots=True)
class CallBranch:
    """Frames that always come together. `period` and `samples` are those of all paths through them."""

    frames: tuple[Place, ...]
    period: int
    samples: int
    own_period: int  # of the paths that end with `frames`
    own_samples: int
    children: tuple[CallBranch, ...]  # heaviest first


class CallTree:
    """A tree of paths of at most MAX_STACK frames. `depth` is the longest path's length, `samples` are those of all."""

    __slots__ = ("_root", "depth", "samples")

    def __init__(self) -> None:
        self._root = _Node(None)
        self.depth = 0
        self.samples = 0

    def add(self, path: Sequence[Place], samples: int, period: int) -> None:
        if not path:
            return
        node = self._root
        for place in path:
            child = node.children.get(place.frame_key)
            if child is None:
                child = node.children[place.frame_key] = _Node(place)
            node = child
        node.hits += period
        node.samples += samples
        self.samples += samples
        self.depth = max(self.depth, len(path))

    def branches(self, least_period: float = 0) -> tuple[CallBranch, ...]:
        """The tree for printing, without branches whose period is below `least_period`."""
        return _pruned(_children(self._root), lambda whole: least_period)

    def paths(self) -> Iterator[CallBranch]:
        """Those that were added, whole; longer ones before what they begin with."""
        return _paths(_children(self._root), ())

    def relative_branches(self, least_share: float) -> tuple[CallBranch, ...]:
        """The same without branches below `least_share` of what their parent called."""
        return _pruned(_children(self._root), lambda whole: math.ceil(whole * least_share))


def _children(node: _Node) -> tuple[CallBranch, ...]:
    """Of branches of equal period the file mapped last and the highest address come first, as in perf."""
    made = [(key, _branch(child)) for key, child in node.children.items()]
    made.sort(key=lambda item: (-item[1].period, -item[0][0], -item[0][1]))
    return tuple(branch for _, branch in made)


def _branch(node: _Node) -> CallBranch:
    frames = [node.place]
    while len(node.children) == 1 and not node.samples:
        (node,) = node.children.values()
        frames.append(node.place)
    children = _children(node)
    period = node.hits + sum(child.period for child in children)
    samples = node.samples + sum(child.samples for child in children)
    places = tuple(place for place in frames if place is not None)
    return CallBranch(places, period, samples, node.hits, node.samples, children)


def _paths(branches: tuple[CallBranch, ...], outer: tuple[Place, ...]) -> Iterator[CallBranch]:
    for branch in sorted(branches, key=_order):
        frames = outer + branch.frames
        yield from _paths(branch.children, frames)
        if branch.own_period:
            yield replace(branch, frames=frames, children=())


def _order(branch: CallBranch) -> tuple[int, int]:
    """As perf's: the file mapped last and the highest address first."""
    file, address = branch.frames[0].frame_key
    return -file, -address


def _pruned(branches: tuple[CallBranch, ...], least: Callable[[int], float]) -> tuple[CallBranch, ...]:
    """Without the branches whose period is below `least` of the sum of their siblings."""
    least_period = least(sum(branch.period for branch in branches))
    return tuple(
        replace(branch, children=_pruned(branch.children, least))
        for branch in branches
        if branch.period >= least_period
    )
