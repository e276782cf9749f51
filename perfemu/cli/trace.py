"""perfemu trace: run a program and show its system calls and signals, as strace does, at simulated times."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from perfemu.cli.guest import (
    add_board_options,
    add_guest_linux_options,
    add_guest_options,
    announce_death,
    guest_of,
    refuse_board_options,
)
from perfemu.cli.options import add_refused_options, positive_int
from perfemu.cli.streams import say_if_elsewhere
from perfemu.errors import UsageError
from perfemu.interruption import die_of
from perfemu.output_file import OutputText
from perfemu.tracing.run import Wanted, trace
from perfemu.tracing.stamps import ELAPSED, EPOCH, MICROSECONDS, NO_STAMP, RELATIVE, SECONDS, Stamp
from perfemu.tracing.summary import SORT_KEYS
from perfemu.tracing.tracer import Style
from perfemu.tracing.values import MOST_ITEMS

EXAMPLES = """\
  perfemu trace ./prog                         each line begins with the seconds since the start
  perfemu trace -e openat,read -y ./prog       two calls; descriptors with their paths
  perfemu trace -e trace=%network -e signal=none -o calls.txt ./prog
  perfemu trace -c ./prog                      how often each is called and fails, and what time passes in it
  perfemu trace -n -Z ./prog                   calls that fail, with their numbers
  perfemu trace --board virt --guest-linux Image   those of all processes of a kernel on a board
"""

_NOT_YET = {
    "-p, --attach": "a running process",
    "-P, --trace-path": "calls by path",
    "-k, --stack-traces": "stack traces",
    "-E": "variables: --env",
    "-u": "another user",
    "-v, --no-abbrev": "structures in full",
    "-x, --strings-in-hex": "strings in hex",
    "-i, --instruction-pointer": "addresses of calls",
    "--inject": "injected errors",
    "-D, --daemonize": "another process",
    "-a, --columns": "another column",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-e",
        "--expr",
        metavar="EXPR",
        action="append",
        default=[],
        help="what to show: calls, %%classes or /REGEX with commas between, also as trace=SET; "
        "signal=SET; status=failed; ! before a set inverts it, all and none are sets",
    )
    parser.add_argument("-z", "--successful-only", action="store_true", help="calls that succeed")
    parser.add_argument("-Z", "--failed-only", action="store_true", help="calls that fail")
    parser.add_argument("-f", "--follow-forks", action="store_true", help="children and threads, too: always so")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stderr, pid first")
    parser.add_argument("-c", "--summary-only", action="store_true", help="a table of calls instead of lines")
    parser.add_argument("-C", "--summary", action="store_true", help="lines and the table")
    parser.add_argument(
        "-S", "--summary-sort-by", metavar="KEY", choices=tuple(SORT_KEYS), default="time",
        help=f"sort the table by {', '.join(SORT_KEYS)} [time]",
    )  # fmt: skip
    times = parser.add_argument_group("times, all of them simulated")
    times.add_argument(
        "-t", dest="clock", action="count", default=0, help="time of day (UTC); -tt with us, -ttt since 1970"
    )
    times.add_argument("-r", "--relative-timestamps", action="store_true", help="since the line before")
    times.add_argument("--no-timestamps", action="store_true", help="none: as strace without options")
    times.add_argument("-T", "--syscall-times", action="store_true", help="what passed in each call, at its end")
    looks = parser.add_argument_group("lines")
    looks.add_argument(
        "-s", "--string-limit", metavar="N", type=positive_int, default=MOST_ITEMS,
        help=f"bytes of a string, items of an array [{MOST_ITEMS}]",
    )  # fmt: skip
    looks.add_argument("-y", "--decode-fds", action="store_true", help="descriptors with the paths of their files")
    looks.add_argument("-n", "--syscall-number", action="store_true", help="numbers of calls")
    looks.add_argument("-q", "--quiet", action="store_true", help="nothing of tasks that come and end")
    add_board_options(parser)
    add_guest_linux_options(parser)
    add_guest_options(parser)
    add_refused_options(parser, _NOT_YET)


def run(options: argparse.Namespace) -> int:
    if options.successful_only and options.failed_only:
        raise UsageError("trace: -z and -Z exclude each other")
    style = Style(
        stamp=_stamp(options),
        durations=options.syscall_times,
        longest=options.string_limit,
        names_files=options.decode_fds,
        numbers=options.syscall_number,
        always_pid=options.output is not None,
        names_tasks=options.board is not None,
        quiet=options.quiet,
    )
    wanted = Wanted(
        expressions=options.expr,
        only_failed=options.failed_only,
        only_successful=options.successful_only,
        style=style,
        lines=not options.summary_only,
        summary_by=options.summary_sort_by if options.summary_only or options.summary else None,
    )
    if options.board is not None:
        return _of_board(options, wanted)
    refuse_board_options(options)
    guest = replace(guest_of(options), interactive=True)
    with _output(options.output) as write:
        traced = trace(guest, wanted, write)
    announce_death(guest.command[0], traced.ending)
    if traced.last_key is not None and traced.last_key == traced.ending.signal:
        die_of(traced.last_key)
    return traced.ending.exit_status


def _of_board(options: argparse.Namespace, wanted: Wanted) -> int:
    """The calls of all processes of its Linux."""
    if not options.guest_linux and options.guest_root is None:
        raise UsageError(
            "trace --board: --guest-linux shows the system calls of its Linux's processes; for what a guest asks of its"
            " board there is perfemu run --trace exceptions,interrupts,mmio,sysregs"
        )
    if options.decode_fds:
        raise UsageError("trace -y: is of programs; of a board's processes descriptors are numbers")
    if any(expression.partition("=")[0] in ("signal", "signals", "s") for expression in options.expr):
        raise UsageError("trace -e signal=: is of programs; a board's processes show their calls, and how they end")

    # only boards need them
    from perfemu.cli.board import session_of
    from perfemu.tracing.board import trace_board

    session = session_of(options)
    with _output(options.output) as write:
        ending = trace_board(session, wanted, write)
    announce_death(session.guest.command[0], ending)
    return ending.exit_status


def _stamp(options: argparse.Namespace) -> Stamp:
    chosen = [options.clock > 0, options.relative_timestamps, options.no_timestamps]
    if sum(chosen) > 1:
        raise UsageError("trace: -t, -r and --no-timestamps exclude each other")
    if options.clock:
        return (SECONDS, MICROSECONDS, EPOCH)[min(options.clock, 3) - 1]
    if options.relative_timestamps:
        return RELATIVE
    return NO_STAMP if options.no_timestamps else ELAPSED


@contextmanager
def _output(name: str | None) -> Iterator[Callable[[str], object]]:
    """Where the lines go; opened before the program runs, so that a wrong name is no wasted run."""
    if name is None:
        yield sys.stderr.write
        return
    with OutputText(name) as output:
        yield output.stream.write
    say_if_elsewhere(name, output.path)
