"""tree_lines: the call tree of a row, as perf report --stdio prints it: as a graph, or folded into lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from perfemu.profile.call_tree import CallBranch
from perfemu.profile.histogram import Entry, Histogram
from perfemu.profile.percentages import percentage
from perfemu.profile.report import ReportOptions

_MARGIN = " " * 12
_LEVEL = "|          "
_NO_LEVEL = "           "
CALL_VALUES: dict[str, Callable[[int, int, int, bool], str]] = {  # of a period, its samples, the whole; in colour?
    "percent": lambda period, samples, whole, coloured: percentage(period, whole, coloured=coloured),
    "period": lambda period, samples, whole, coloured: str(period),
    "count": lambda period, samples, whole, coloured: str(samples),
}


def tree_lines(entry: Entry, table: Histogram, options: ReportOptions) -> list[str]:
    """The call tree of one row, and an empty line after it; nothing where there is nothing to show.

    As in perf, its percentages are of all samples, whatever the rows' are of.
    """
    if options.folded_calls:
        return list(_folded_lines(entry, table, options))
    least_share = options.least_call_percent / 100
    if options.relative_calls:
        branches = entry.tree.relative_branches(least_share)
    else:
        branches = entry.tree.branches(int(table.wholes[0] * least_share))
    own = entry.totals[0] if table.options.children else entry.periods[0]
    lines: list[str] = []
    margin = _MARGIN
    samples = entry.tree.samples
    if len(branches) == 1 and branches[0].period == own:
        # The only path of this row: its frames stand without a percentage.
        frames = [place.name for place in branches[0].frames]
        if options.symbol_first:
            frames = frames[1:]
        if frames:
            lines += [f"{margin}|", f"{margin}---{frames[0]}"]
            margin += "   "
            lines += [f"{margin}{frame}" for frame in frames[1:]]
        samples -= branches[0].own_samples
        branches = branches[0].children
    whole = own if options.relative_calls else table.events[0].period
    lines += _branch_lines(branches, _Shares(whole, samples, options), (True,), margin)
    return [*lines, ""] if lines else []


class _Shares(NamedTuple):
    """What the percentages of one level of a call tree are of, and how many samples that is."""

    whole: int
    samples: int
    options: ReportOptions

    def below(self, branch: CallBranch) -> _Shares:
        """Of its children: of what they weigh together, if percentages are relative."""
        if not self.options.relative_calls:
            return self
        return _Shares(branch.period - branch.own_period, branch.samples - branch.own_samples, self.options)

    def value(self, period: int, samples: int) -> str:
        return CALL_VALUES[self.options.call_value](period, samples, self.whole, self.options.coloured)

    def leaves_out(self, branches: tuple[CallBranch, ...]) -> bool:
        """Only among relative percentages, and not if it would be all."""
        if not self.options.relative_calls or not branches:
            return False
        return self.whole > sum(branch.period for branch in branches)

    def left_out(self, branches: tuple[CallBranch, ...]) -> str:
        """What the last line `[...]` stands for; nothing if that is no sample."""
        samples = self.samples - sum(branch.samples for branch in branches)
        if self.options.call_value == "count" and samples <= 0:
            return ""
        return self.value(self.whole - sum(branch.period for branch in branches), samples)


def _branch_lines(
    branches: tuple[CallBranch, ...], shares: _Shares, levels: tuple[bool, ...], margin: str
) -> Iterator[str]:
    """`levels` says for each column of the tree whether its line goes on below."""
    outer = levels[:-1]
    leaves_out = shares.leaves_out(branches)
    lead = margin + "".join(_LEVEL if level else _NO_LEVEL for level in outer)
    for index, branch in enumerate(branches):
        goes_on = index + 1 < len(branches) or leaves_out
        yield f"{lead}{_LEVEL}"
        mark = "|" if goes_on else " "
        first, *others = branch.frames
        yield f"{lead}{mark}--{shares.value(branch.period, branch.samples)}--{first.name}"
        for place in others:
            yield f"{lead}{mark}          {place.name}"
        yield from _branch_lines(branch.children, shares.below(branch), (*outer, goes_on, True), margin)
    if leaves_out and (left_out := shares.left_out(branches)):
        yield f"{lead} --{left_out}--[...]"


def _folded_lines(entry: Entry, table: Histogram, options: ReportOptions) -> Iterator[str]:
    """A line for each whole path, the heaviest first."""
    least = int(table.wholes[0] * options.least_call_percent / 100)
    shares = _Shares(table.events[0].period, entry.tree.samples, options)
    paths = [path for path in entry.tree.paths() if path.own_period >= least]
    for path in sorted(paths, key=lambda path: -path.own_period):
        value = shares.value(path.own_period, path.own_samples)
        yield f"{value} {';'.join(place.name for place in path.frames)}"
