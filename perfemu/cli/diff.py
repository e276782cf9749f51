"""perfemu diff: what two profiles, stat results or programs differ in: totals, modules, functions and lines."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace

from perfemu.checking.tolerance import Tolerance
from perfemu.cli.guest import (
    add_event_option,
    add_guest_options,
    add_region_options,
    announce_death,
    guest_of,
    within_region,
)
from perfemu.cli.options import add_refused_options, positive_int
from perfemu.cli.streams import tell
from perfemu.comparing.difference import Difference, EventDifference
from perfemu.comparing.measured import Measured
from perfemu.comparing.measuring import measured_file, measured_run
from perfemu.comparing.printing import Shown, document, markdown, text
from perfemu.errors import PerfemuError, UsageError
from perfemu.scope import PROGRAM

EXAMPLES = """\
  perfemu diff --old './a 10' --new './b 10'          run both: every instruction that one has more, by function
  perfemu diff -e cycles,branch-misses --old ./a --new ./b
  perfemu record --exact -o old.data ./a; perfemu record --exact -o new.data ./b
  perfemu diff old.data new.data                      the same from files; perf's can be read, too
  perfemu diff                                        perf.data.old and perf.data
  perfemu diff --markdown --fail-above 0.1% old.data new.data
"""

_DEFAULT_FILES = ("perf.data.old", "perf.data")
_EVENTS = ("instructions",)
_NOT_YET = {
    "-c, --compute": "ways to compute: there is the difference",
    "-s, --sort": "sort keys: what changed most comes first",
    "-F, --formula": "formulas",
    "-p, --period": "period columns: counts are shown",
    "--comms": "filters by command",
    "-b, --baseline-only": "rows of the old side alone",
    "--dsos": "filters by file",
    "-S, --symbols": "filters by symbol",
    "-t, --field-separator": "columns with a separator: there is --json",
    "-v, --verbose": "more words",
}
FAILED = 1  # exit status


def _tolerance(text: str) -> Tolerance:
    try:
        return Tolerance.parse(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="OLD NEW", help="perf.data files, or what stat -j wrote")
    parser.add_argument("--old", metavar="COMMAND", help="run this program instead of reading a file")
    parser.add_argument("--new", metavar="COMMAND", help="... and this one")
    add_event_option(parser, default="instructions")
    output = parser.add_argument_group("output")
    kind = output.add_mutually_exclusive_group()
    kind.add_argument("--stdio", action="store_true", help="text [the default]")
    kind.add_argument("--json", action="store_true", help="one document with every row")
    kind.add_argument("--markdown", action="store_true", help="tables for a pull request")
    output.add_argument("--limit", metavar="N", type=positive_int, default=20, help="rows of a table, at most [20]")
    output.add_argument("--all", action="store_true", help="rows that did not change, too")
    output.add_argument("--no-lines", action="store_true", help="no source lines")
    output.add_argument(
        "--fail-above",
        metavar="N | N%",
        type=_tolerance,
        help=f"exit status {FAILED} if the total of an event has grown by more",
    )
    parser.add_argument("--symfs", metavar="DIR", default="", help="look for files below DIR")
    add_region_options(parser.add_argument_group("region of --old and --new"))
    add_guest_options(parser, takes_program=False)
    add_refused_options(parser, _NOT_YET)


def run(options: argparse.Namespace) -> int:
    old, new = _sides(options)
    difference = Difference.of(old, new)
    if not difference.events:
        raise PerfemuError(f"{old.name} and {new.name} have no event in common: {', '.join(difference.remarks)}")
    shown = Shown(options.limit, not options.no_lines, options.all)
    if options.json:
        sys.stdout.write(document(difference))
    else:
        sys.stdout.write((markdown if options.markdown else text)(difference, shown))
    allowed: Tolerance | None = options.fail_above
    failed = [event for event in difference.events if allowed is not None and not _is_within(allowed, event)]
    for event in failed:
        tell(f"perfemu: diff: {event.name} grew by {event.total.difference:,}: more than {allowed}")
    return FAILED if failed else 0


def _is_within(allowed: Tolerance, event: EventDifference) -> bool:
    return allowed.allows(event.total.old or 0, event.total.new or 0)


def _sides(options: argparse.Namespace) -> tuple[Measured, Measured]:
    if options.old is None and options.new is None:
        if len(options.files) not in (0, 2):
            raise UsageError("diff: wants two files, OLD and NEW, or two commands, --old and --new")
        if options.event:
            raise UsageError("diff -e: files have the events that they have; -e is for --old and --new")
        if options.from_symbol is not None or options.to_symbol is not None:
            raise UsageError("diff --from-symbol, --to-symbol: regions are of --old and --new, and of record")
        old, new = options.files or _DEFAULT_FILES
        return tuple(measured_file(path, options.symfs, _complain) for path in (old, new))  # type: ignore[return-value]
    if options.old is None or options.new is None or options.files:
        raise UsageError("diff: --old and --new go together, and without files")
    return _run(options, options.old), _run(options, options.new)


def _run(options: argparse.Namespace, command: str) -> Measured:
    """Its output goes to stderr: stdout is for the comparison."""
    try:
        options.program = shlex.split(command)
    except ValueError as problem:
        raise UsageError(f"diff: '{command}': {problem}") from None
    if not options.program:
        raise UsageError("diff: --old and --new want a program each")
    stdin, _, stderr = options.descriptors
    guest = replace(guest_of(options), stdin=stdin, stdout=stderr)
    done = measured_run(guest, options.event or _EVENTS, _complain, sys.stderr, within_region(PROGRAM, options))
    announce_death(guest.command[0], done.ending)
    return done.measured


def _complain(message: str) -> None:
    tell(f"perfemu: diff: {message}")
