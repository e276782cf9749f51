"""How stat prints what was counted, and where: its options, and the forms of wholes and of intervals."""

from __future__ import annotations

import argparse
import errno
import fcntl
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from perfemu.cli.options import checked, positive_int
from perfemu.cli.streams import say_if_elsewhere
from perfemu.errors import UsageError
from perfemu.moments import read_span
from perfemu.output_file import OutputText
from perfemu.statistics.counts import Counts
from perfemu.statistics.json_lines import json_report
from perfemu.statistics.separated import SUMMARY, separated_report
from perfemu.statistics.text import text_report

if TYPE_CHECKING:
    from perfemu.comparing.measured import Measured  # brings in a reader of ELF files
    from perfemu.intervals import ShowInterval


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """In which form, and where."""
    group = parser.add_argument_group("output")
    group.add_argument("-x", "--field-separator", metavar="SEP", help="one line per event, fields separated by SEP")
    group.add_argument("-j", "--json-output", action="store_true", help="one JSON object per event")
    group.add_argument("--metric-only", action="store_true", help="metrics alone, a column each")
    group.add_argument(
        "-I", "--interval-print", metavar="MS | Ni", type=checked(read_span),
        help="print what was counted in each interval of so many simulated ms (20us, 2s; with i: instructions)",
    )  # fmt: skip
    group.add_argument("--interval-count", metavar="N", type=positive_int, help="with -I: the first N intervals alone")
    group.add_argument("--interval-clear", action="store_true", help="with -I: clear the screen before each")
    group.add_argument("--summary", action="store_true", help="with -I: at the end all of it, too")
    group.add_argument("--no-csv-summary", action="store_true", help="with -x: do not say which lines are of --summary")
    group.add_argument("-o", "--output", metavar="FILE", help="print to FILE instead of stderr")
    group.add_argument("--quiet", action="store_true", help="print nothing of what was counted")
    group.add_argument("--append", action="store_true", help="append to FILE")
    group.add_argument("--log-fd", metavar="N", type=int, help="print to file descriptor N")
    group.add_argument(
        "-B",
        "--big-num",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="group thousands by commas, whatever the locale",
    )


def check_output_options(options: argparse.Namespace) -> None:
    """Raises UsageError for what does not go together."""
    if options.append and options.output is None:
        raise UsageError("stat --append: wants -o FILE to append to")
    if options.field_separator is not None and options.json_output:
        raise UsageError("stat: -x and -j exclude each other")
    if options.interval_print is None:
        wanted = {"--interval-count": options.interval_count, "--interval-clear": options.interval_clear}
        for option in [name for name, given in wanted.items() if given]:
            raise UsageError(f"stat {option}: wants -I")
    elif options.repeat > 1:
        raise UsageError("stat: -I and -r exclude each other: the intervals are of one run")
    if options.interval_clear and not (options.output is None and options.log_fd is None and sys.stderr.isatty()):
        raise UsageError("stat --interval-clear: there is no terminal to clear")


def interval_printer(options: argparse.Namespace, stream: TextIO) -> ShowInterval | None:
    """What prints each interval; None: there are none."""
    if options.interval_print is None or options.quiet:
        return None

    # only this prints them
    from perfemu.statistics.interval import IntervalPrinter

    return IntervalPrinter(
        stream.write,
        grouping=options.big_num,
        separator=_separator(options),
        as_json=options.json_output,
        metric_only=options.metric_only,
        clears=options.interval_clear,
    ).show


def report(counts: Counts, options: argparse.Namespace) -> str:
    """All that was counted; "" where intervals stand for it, or nobody wants to know."""
    if options.quiet or (options.interval_print is not None and not options.summary):
        return ""
    separator = _separator(options)
    if options.metric_only:
        from perfemu.statistics.metric_only import metrics_alone

        return metrics_alone(counts, separator, as_json=options.json_output)
    if options.json_output:
        return json_report(counts)
    if separator is not None:
        marked = options.interval_print is not None and not options.no_csv_summary
        return separated_report(counts, separator, SUMMARY if marked else "")
    return text_report(counts, options.big_num)


def _separator(options: argparse.Namespace) -> str | None:
    separator: str | None = options.field_separator
    return None if separator is None else separator.replace("\\t", "\t")


def function_report(measured: Measured, options: argparse.Namespace) -> str:
    """The same by function."""
    if options.quiet:
        return ""
    from perfemu.statistics.functions import function_lines, function_objects

    return function_objects(measured) if options.json_output else function_lines(measured, options.big_num)


@contextmanager
def output(options: argparse.Namespace) -> Iterator[TextIO]:
    """Where the counts go; opened before the program runs, so that a wrong name is no wasted run."""
    if options.log_fd is not None and options.output is not None:
        raise UsageError("stat: -o and --log-fd exclude each other")
    if options.log_fd is not None:
        if options.log_fd < 0:
            raise UsageError(f"stat --log-fd {options.log_fd}: a descriptor is 0 or more")
        try:
            if fcntl.fcntl(options.log_fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            stream: TextIO = io.TextIOWrapper(
                os.fdopen(options.log_fd, "wb", closefd=False),
                encoding="utf-8",
                errors="surrogateescape",
                write_through=True,
            )
        except OSError as error:
            raise UsageError(f"stat --log-fd {options.log_fd}: {error.strerror}") from None
        yield stream
        stream.flush()
    elif options.output is not None:
        with OutputText(options.output, appends=options.append) as output:
            yield output.stream
        say_if_elsewhere(options.output, output.path)
    else:
        yield sys.stderr
