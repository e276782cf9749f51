"""Report: a profile and how it is to be shown; what every output format is given."""

from __future__ import annotations

from dataclasses import dataclass

from perfcore.perfdata.features import ANONYMOUS_GROUP
from perfemu.collection import uncollected
from perfemu.profile.histogram import Histogram, TableOptions
from perfemu.profile.keys import SortKey
from perfemu.profile.profile import Profile
from perfemu.profile.selection import ALL, Selection
from perfemu.visible import visible

DEFAULT_COLUMNS = ("overhead_children", "overhead")


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """perf report's options, as far as there are."""

    keys: tuple[SortKey, ...]
    columns: tuple[str, ...]  # names of weight columns, see formats.stdio
    children: bool
    call_trees: bool
    caller_first: bool
    least_call_percent: float = 0.5  # of the table's period, for a branch of a call tree
    relative_calls: bool = False  # in call trees shares of the parent ("fractal"), and of them `least_call_percent`
    folded_calls: bool = False  # call trees as lines, one for each whole path
    call_value: str = "percent"  # what stands in call trees, one of tree_lines.CALL_VALUES
    least_percent: float = 0  # for a row
    hierarchy: bool = False  # the rows of each sort key below those of the one before it
    symbol_first: bool = False  # the call trees need not repeat the row's own symbol
    header: bool = False
    comments: bool = True  # the lines that start with #
    coloured: bool = False  # percentages, for a terminal
    selection: Selection = ALL
    relative: bool = False  # percentages are of the selection, not of everything
    time_slices: str = ""  # as the user wrote them


@dataclass(frozen=True, slots=True)
class Report:
    """What is shown, and how."""

    profile: Profile
    options: ReportOptions

    def selected(self) -> Profile:
        """What the selection leaves: for formats that show samples."""
        return self.options.selection.of(self.profile)

    def elided(self) -> dict[str, str]:
        """Sort keys whose column would hold one chosen value alone, and that: unless no key were left, as in perf."""
        names = [key.name for key in self.options.keys]
        found = {name: value for name, value in self.options.selection.elided() if name in names}
        return dict(sorted(found.items(), key=lambda item: names.index(item[0])))

    @uncollected()
    def tables(self) -> list[Histogram]:
        """One for each event or group that has samples."""
        options = self.options
        made = []
        for group in self.profile.groups:
            events = self.profile.events[group.leader_index :][: group.members]
            if not any(event.sample_count for event in events):
                continue
            chains = any(event.has_callchains for event in events)
            table = TableOptions(
                options.keys,
                options.children and chains and not options.hierarchy,
                options.call_trees and chains,
                options.caller_first,
                "overhead_children" in options.columns,
                options.selection,
                options.relative,
            )
            name = "" if group.name == ANONYMOUS_GROUP else visible(group.name)
            made.append(Histogram(events, table, name))
        return made
