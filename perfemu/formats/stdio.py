"""stdio: text as `perf report --stdio` prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import NamedTuple, TextIO

from perfemu.profile.header_lines import header_lines
from perfemu.profile.histogram import Entry, Histogram
from perfemu.profile.report import Report, ReportOptions
from perfemu.profile.tree_lines import tree_lines

SUMMARY = "tables as perf report --stdio prints them"


class WeightColumn(NamedTuple):
    """A column of numbers; `text` gets a row, its table and the event's index in the group."""

    title: str
    width: int
    text: Callable[[Entry, Histogram, int], str]


def _percent(part: int, table: Histogram, event: int) -> str:
    whole = table.wholes[event]
    return f"{100.0 * part / whole if whole else 0.0:7.2f}%"


WEIGHT_COLUMNS = {
    "overhead_children": WeightColumn("Children", 8, lambda e, table, i: _percent(e.totals[i], table, i)),
    "overhead": WeightColumn("Overhead", 8, lambda e, table, i: _percent(e.periods[i], table, i)),
    "sample": WeightColumn("Samples", 12, lambda e, table, i: f"{e.samples[i]:12}"),
    "period": WeightColumn("Period", 12, lambda e, table, i: f"{e.periods[i]:12}"),
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


def _write_table(table: Histogram, elided: Set[str], options: ReportOptions, output: TextIO) -> None:
    """Without the columns `elided`, unless no other were left."""
    events = range(len(table.events))
    children = table.options.children
    names = [name for name in options.columns if children or name != "overhead_children"]
    weights = [WEIGHT_COLUMNS[name] for name in names]
    self_title = "Self" if "overhead_children" in names else "Overhead"
    titles = [self_title if name == "overhead" else WEIGHT_COLUMNS[name].title for name in names]
    weight_widths = [column.width * len(events) for column in weights]
    shown = list(zip(table.options.keys, table.widths(), strict=True))
    shown = [(key, width) for key, width in shown if key.name not in elided] or shown
    keys, widths = [key for key, _ in shown], [width for _, width in shown]
    if options.comments:
        output.writelines(f"{line}\n" for line in _titles(table, options.time_slices))
        cells = [f"{title:>{width}}" for title, width in zip(titles, weight_widths, strict=True)]
        cells += [f"{key.title:{width}}" for key, width in zip(keys, widths, strict=True)]
        output.write(f"# {'  '.join(cells)}\n# {'  '.join('.' * width for width in weight_widths + widths)}\n#\n")
    for entry in table.entries:
        if _row_percent(entry, table) < options.least_percent:
            continue
        cells = ["".join(column.text(entry, table, event) for event in events) for column in weights]
        for position, (key, width) in enumerate(zip(keys, widths, strict=True)):
            text = key.text(entry.row)
            if key.align_right:
                text = text.rjust(width)
            elif key.padded or position + 1 < len(keys):
                text = text.ljust(width)
            cells.append(text)
        output.write("  " + "  ".join(cells) + "\n")
        if table.options.call_trees:
            output.writelines(f"{line}\n" for line in tree_lines(entry, table, options))


def _row_percent(entry: Entry, table: Histogram) -> float:
    """What --percent-limit looks at."""
    whole = table.wholes[0]
    part = entry.totals[0] if table.options.children else entry.periods[0]
    return 100.0 * part / whole if whole else 0.0
