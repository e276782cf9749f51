"""stdio: text as `perf report --stdio` prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import NamedTuple, TextIO

from perfemu.profile.header_lines import header_lines
from perfemu.profile.hierarchy import hierarchy, walk
from perfemu.profile.histogram import Entry, Histogram
from perfemu.profile.keys import SortKey
from perfemu.profile.percentages import percentage
from perfemu.profile.report import Report, ReportOptions
from perfemu.profile.tree_lines import tree_lines

SUMMARY = "tables as perf report --stdio prints them"

_INDENT = 3  # of each key of a hierarchy


class WeightColumn(NamedTuple):
    """A column of numbers; `text` gets a row, its table, the event's index in the group, and whether it has colours."""

    title: str
    width: int
    text: Callable[[Entry, Histogram, int, bool], str]


def _share(part: int, table: Histogram, event: int, coloured: bool) -> str:
    return percentage(part, table.wholes[event], width=7, coloured=coloured)


WEIGHT_COLUMNS = {
    "overhead_children": WeightColumn("Children", 8, lambda e, table, i, colour: _share(e.totals[i], table, i, colour)),
    "overhead": WeightColumn("Overhead", 8, lambda e, table, i, colour: _share(e.periods[i], table, i, colour)),
    "sample": WeightColumn("Samples", 12, lambda e, table, i, _: f"{e.samples[i]:12}"),
    "period": WeightColumn("Period", 12, lambda e, table, i, _: f"{e.periods[i]:12}"),
}


def write(report: Report, output: TextIO) -> None:
    """The whole report."""
    options = report.options
    if options.header:
        output.writelines(f"{line}\n" for line in header_lines(report.profile))
    elif options.comments:
        output.write("# To display the perf.data header info, please use --header/--header-only options.\n#\n")
    elided = report.elided()
    output.writelines(f"# {name}: {value}\n" for name, value in elided.items())
    tables = report.tables()
    if tables and options.comments:
        output.write(f"#\n# Total Lost Samples: {report.profile.lost_samples}\n#\n")
    for table in tables:
        if options.hierarchy:
            _write_hierarchy(table, options, output)
        else:
            _write_table(table, set(elided), options, output)
        output.write("\n\n")


def _with_unit(count: int) -> str:
    """perf's rounding: 12K for 12,345; a space where there is no unit."""
    unit = " "
    for larger in "KMG":
        if count <= 1000:
            break
        count, unit = count // 1000, larger
    return f"{count}{unit}"


def _titles(table: Histogram, time_slices: str) -> Iterator[str]:
    names = [event.name for event in table.events]
    samples = _with_unit(table.sample_count)
    slices = f" (time slices: {time_slices})" if time_slices else ""
    if len(names) > 1:
        yield f"# Samples: {samples} of events '{table.group_name or 'anon group'} {{ {', '.join(names)} }}'{slices}"
    else:
        yield f"# Samples: {samples} of event '{names[0]}'{slices}"
    yield f"# Event count (approx.): {sum(table.wholes)}"
    yield "#"


class _Columns(NamedTuple):
    """The columns of numbers, their widths and titles."""

    columns: list[WeightColumn]
    widths: list[int]
    titles: list[str]
    coloured: bool

    @classmethod
    def of(cls, table: Histogram, options: ReportOptions) -> _Columns:
        names = [name for name in options.columns if table.options.children or name != "overhead_children"]
        columns = [WEIGHT_COLUMNS[name] for name in names]
        widths = [column.width * len(table.events) for column in columns]
        self_title = "Self" if "overhead_children" in names else "Overhead"
        titles = [self_title if name == "overhead" else WEIGHT_COLUMNS[name].title for name in names]
        padded = [f"{title:>{width}}" for title, width in zip(titles, widths, strict=True)]
        return cls(columns, widths, padded, options.coloured)

    def cells(self, entry: Entry, table: Histogram) -> list[str]:
        events = range(len(table.events))
        return ["".join(column.text(entry, table, event, self.coloured) for event in events) for column in self.columns]


def _write_table(table: Histogram, elided: Set[str], options: ReportOptions, output: TextIO) -> None:
    """Without the columns `elided`, unless no other were left."""
    numbers = _Columns.of(table, options)
    shown = list(zip(table.options.keys, table.widths(), strict=True))
    shown = [(key, width) for key, width in shown if key.name not in elided] or shown
    keys, widths = [key for key, _ in shown], [width for _, width in shown]
    if options.comments:
        output.writelines(f"{line}\n" for line in _titles(table, options.time_slices))
        cells = [*numbers.titles, *(f"{key.title:{width}}" for key, width in zip(keys, widths, strict=True))]
        output.write(f"# {'  '.join(cells)}\n# {'  '.join('.' * width for width in numbers.widths + widths)}\n#\n")
    for entry in table.entries:
        if _row_percent(entry, table) < options.least_percent:
            continue
        cells = numbers.cells(entry, table)
        for position, (key, width) in enumerate(zip(keys, widths, strict=True)):
            cells.append(_key_text(entry, key, width, position + 1 == len(keys)))
        output.write("  " + "  ".join(cells) + "\n")
        if table.options.call_trees:
            output.writelines(f"{line}\n" for line in tree_lines(entry, table, options))


def _key_text(entry: Entry, key: SortKey, width: int, is_last: bool) -> str:
    text = key.text(entry.row)
    if key.align_right:
        return text.rjust(width)
    return text.ljust(width) if key.padded or not is_last else text


def _write_hierarchy(table: Histogram, options: ReportOptions, output: TextIO) -> None:
    """One column for all keys, where each is set back behind the one before."""
    numbers = _Columns.of(table, options)
    keys, widths = table.options.keys, table.widths()
    indent = " " * (_INDENT * (len(keys) - 1))
    if options.comments:
        output.writelines(f"{line}\n" for line in _titles(table, options.time_slices))
        title = " / ".join(key.title.strip() for key in keys)
        width = max(len(title), *(_INDENT * depth + width for depth, width in enumerate(widths)))
        dots = "." * (len(indent) + sum(numbers.widths) + 2 * (len(numbers.widths) - 1))
        output.write(f"# {indent}{'  '.join([*numbers.titles, title])}\n# {dots}  {'.' * width}\n#\n")
    for node in walk(hierarchy(table)):
        if _row_percent(node.entry, table) < options.least_percent:
            continue
        set_back = " " * (_INDENT * node.depth)
        text = _key_text(node.entry, node.key, widths[node.depth], is_last=True).lstrip()
        output.write(f"{set_back}  {'  '.join(numbers.cells(node.entry, table))}{indent}  {text}\n")
        if not node.below:
            if table.options.call_trees:
                output.writelines(f"{line}\n" for line in tree_lines(node.entry, table, options))
        elif all(_row_percent(below.entry, table) < options.least_percent for below in node.below):
            room = sum(numbers.widths) + 2 * (len(numbers.widths) - 1) + 4 + _INDENT
            output.write(f"{indent}{set_back}{' ' * room}no entry >= {options.least_percent:.2f}%\n")


def _row_percent(entry: Entry, table: Histogram) -> float:
    """What --percent-limit looks at."""
    whole = table.wholes[0]
    part = entry.totals[0] if table.options.children else entry.periods[0]
    return 100.0 * part / whole if whole else 0.0
