"""stdio: an annotated function as perf annotate --stdio lays it out; exact events have counts beside percentages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from perfemu.annotating import AnnotatedFunction, AnnotatedInstruction, Line
from perfemu.annotation.sources import SourceTexts
from perfemu.profile.percentages import in_colour
from perfemu.profile.places import short_name
from perfemu.visible import visible

_NORMAL = "\033[m"  # the end of a colour
PERCENT_TYPES = ("local-period", "global-period", "local-hits", "global-hits")


@dataclass(frozen=True, slots=True)
class Layout:
    """What is shown. `width`: of the terminal; 0 is unlimited."""

    sources: SourceTexts = field(default_factory=SourceTexts)
    show_source: bool = True
    raw: bool = False
    samples: bool = False
    periods: bool = False
    full_paths: bool = False
    line_summary: bool = False
    percent_type: str = "local-period"
    colour: bool = False
    width: int = 0


class _Column:
    """The cells of one event."""

    def __init__(self, function: AnnotatedFunction, number: int, layout: Layout) -> None:
        self._number = number
        self._hits = layout.percent_type.endswith("hits")
        self._colour = layout.colour
        name = function.events[number]
        totals = function.total_samples if self._hits else function.totals
        own = function.samples if self._hits else function.counts
        self.whole = totals[number] if layout.percent_type.startswith("global") else own[name]
        self.shows: tuple[str, ...] = ("percent",)
        if layout.samples:
            self.shows = ("samples",)
        elif layout.periods:
            self.shows = ("count",)
        elif function.exact[number]:
            self.shows = ("count", "percent")
        self._count_width = max(len(f"{function.counts[name]:,}"), 10) + 2
        self.title = self._title(name, len(function.events) > 1)

    def _title(self, name: str, several: bool) -> str:
        if self.shows == ("percent",):
            return " Percent"
        if self.shows == ("samples",):
            return " Samples"
        if self.shows == ("count",):
            return " Event count".rjust(self._count_width)
        self._count_width = max(self._count_width, len(name) + 2 - 8 if several else 0)
        return (name if several else "Count  Percent").rjust(self._count_width + 8)

    def cells(self, counts: Sequence[int], samples: Sequence[int]) -> str:
        value = samples[self._number] if self._hits else counts[self._number]
        percent = 100.0 * value / self.whole if self.whole else 0.0
        texts = {
            "percent": lambda: in_colour(f"{percent:8.2f}", percent if self._colour else 0.0),
            "samples": lambda: f"{samples[self._number]:8}",
            "count": lambda: f"{counts[self._number]:{self._count_width},}",
        }
        return "".join(texts[kind]() for kind in self.shows)


def function_lines(function: AnnotatedFunction, layout: Layout) -> Iterator[str]:
    """The text, without ends of lines."""
    columns = [_Column(function, number, layout) for number in range(len(function.events))]
    fit = _fitting(layout.width)
    if layout.line_summary:
        yield from map(fit, _line_summary(function, columns, layout))
    title = "".join(column.title for column in columns)
    file = visible(function.path) if layout.full_paths else short_name(function.path)
    names = ", ".join(function.events)
    header = f"{title} |\tSource code & Disassembly of {file} for {names} ({_amount(function, layout)})"
    yield fit(header)
    yield fit("-" * (len(header) + 5))
    empty = " " * len(title)
    digits = len(f"{function.instructions[-1].address:x}") if function.instructions else 1
    start = f"{empty} : "
    yield fit(f"{start}{'':{digits}} {function.address:016x} <{function.name}>:")
    last: Line | None = None
    last_file = ""
    for each in function.instructions:
        behind = ""
        if each.line is not None and each.line != last:
            if layout.show_source:
                if each.line[0] != last_file:
                    last_file = each.line[0]
                    yield fit(f"{start}{'':{digits}} {_source_name(each.line, layout)}:")
                text = layout.sources.line(*each.line)
                shown = f"{_source_name(each.line, layout)}:{each.line[1]}" if text is None else text
                yield fit(f"{start}{each.line[1]:<{digits}} {shown}")
            if layout.line_summary:
                behind = f" // {_source_name(each.line, layout)}:{each.line[1]}"
        last = each.line
        cells = "".join(column.cells(each.counts, each.samples) for column in columns)
        yield fit(f"{cells} :   {each.address:x}: {_instruction(each, layout)}{behind}")


def _amount(function: AnnotatedFunction, layout: Layout) -> str:
    if all(function.exact):
        return f"exact counts, percent: {layout.percent_type.replace('-', ' ')}"
    count = max(function.samples.values(), default=0)
    return f"{count} samples, percent: {layout.percent_type.replace('-', ' ')}"


def _instruction(each: AnnotatedInstruction, layout: Layout) -> str:
    if not layout.raw:
        return each.text
    return f"{' '.join(f'{byte:02x}' for byte in each.raw):<23} {each.text}"


def _source_name(line: Line, layout: Layout) -> str:
    return visible(line[0] if layout.full_paths else line[0].rpartition("/")[2])


def _line_summary(function: AnnotatedFunction, columns: Sequence[_Column], layout: Layout) -> Iterator[str]:
    """perf's -l: the source lines, the heaviest first."""
    by_line: dict[Line | None, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    for each in function.instructions:
        by_line.setdefault(each.line, []).append((each.counts, each.samples))
    sums = {
        line: tuple(tuple(sum(column) for column in zip(*values, strict=True)) for values in zip(*rows, strict=True))
        for line, rows in by_line.items()
    }
    yield ""
    yield f"Sorted summary for file {visible(function.path)}"
    yield "-" * 46
    yield ""
    for line, (counts, samples) in sorted(sums.items(), key=lambda item: item[1], reverse=True):
        if any(counts):
            name = f"{_source_name(line, layout)}:{line[1]}" if line else "(no line)"
            yield f"{''.join(column.cells(counts, samples) for column in columns)} {name}"


def _fitting(width: int) -> Callable[[str], str]:
    """A function that cuts what is wider. Colours take no room."""
    if not width:
        return lambda text: text.rstrip(" ")

    def fit(text: str) -> str:
        text = text.expandtabs(8).rstrip(" ")
        if len(text) <= width:
            return text
        kept, left, at = [], width, 0
        while at < len(text) and left:
            if text[at] == "\033":
                end = text.index("m", at) + 1
                kept.append(text[at:end])
                at = end
                continue
            kept.append(text[at])
            at += 1
            left -= 1
        return "".join(kept) + (_NORMAL if "\033" in text else "")

    return fit
