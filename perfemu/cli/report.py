"""perfemu report: show a perf.data file, as perf report --stdio does."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.features import JitFile
from perfemu.cli.call_graph import DEFAULT_GRAPH, NUMBER, call_graph
from perfemu.cli.options import add_refused_options
from perfemu.cli.pager import is_terminal, paged, shows_colours
from perfemu.cli.report_filters import add_filters, check_selection, selection, taken_samples
from perfemu.cli.streams import tell
from perfemu.errors import FAILURE_STATUS, PerfemuError, UsageError
from perfemu.formats import format_names, output_format
from perfemu.formats.stdio import WEIGHT_COLUMNS
from perfemu.profile.dump import dump_lines
from perfemu.profile.header_lines import header_lines
from perfemu.profile.keys import DEFAULT_KEYS, SORT_KEYS, SortKey, UnknownKey, sort_key
from perfemu.profile.record_counts import record_count_lines
from perfemu.profile.report import DEFAULT_COLUMNS, Report, ReportOptions
from perfemu.reporting import default_input, open_profile, read_profile
from perfemu.symbols.jit import JIT_MAP, JITDUMP
from perfemu.symbols.kallsyms import KALLSYMS_FILE

EXAMPLES = """\
  perfemu report                                 perf.data, as perf report --stdio shows it
  perfemu report --no-children -g caller         own weight first; who called
  perfemu report -n --sort dso,sym -g none       files and functions, with numbers of samples
  perfemu report --comms sort --dsos libc.so.6   of one command and file; percentages are of everything
  perfemu report --time 10%/2 -C 0               of the second tenth of the time, on CPU 0
  perfemu report -g fractal,5 --percent-limit 1  shares of the caller, of rows from 1 % on
  perfemu report --format folded | flamegraph.pl > flames.svg
  perfemu report --format speedscope > out.json  for speedscope.app; firefox for profiler.firefox.com
  perfemu report --format callgrind > out; callgrind_annotate out
  perfemu report --format pprof > out.pb.gz; go tool pprof -top out.pb.gz
  perfemu report -D | less                       every record
"""

_NOT_YET = {  # options of perf's that would silently mean something else here
    "-p, --parent": "filters by caller",
    "-t, --field-separator": "columns with a separator; there is --format csv",
    "-w, --column-widths": "columns of given widths",
    "-T, --threads": "counts per thread",
    "-U, --hide-unresolved": "rows without their unknown symbols",
    "-v, --verbose": "more words",
    "-k, --vmlinux": "the kernel's symbols: none of it is executed",
    "-M, --disassembler-style": "annotation",
    "-b, --branch-stack": "branch stacks",
    "--max-stack": "shorter call chains",
    "--mem-mode": "memory accesses",
    "--gtk": "windows: there is --stdio",
    "--tui": "menus: there is --stdio",
    "--itrace": "instruction traces",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """perf report's options, as far as there are."""
    parser.add_argument(
        "-i", "--input", metavar="FILE", help="file to read, - is stdin [a pipe on stdin, or perf.data]"
    )
    parser.add_argument("--stdio", action="store_true", help="print text (there is nothing else: for perf's sake)")
    parser.add_argument(
        "--stdio-color",
        nargs="?",
        const="always",
        default="auto",
        choices=("always", "never", "auto"),
        help="percentages in colour: red from 5 %%, green above 0.5 %% [auto: on a terminal]",
    )
    keys = ", ".join(SORT_KEYS)
    parser.add_argument("-s", "--sort", metavar="KEYS", help=f"what makes a row, +KEYS besides the usual, of: {keys}")
    columns = ", ".join(WEIGHT_COLUMNS)
    parser.add_argument(
        "-F", "--fields", metavar="FIELDS", help=f"columns, numbers first, of: {columns}, and sort keys"
    )
    parser.add_argument("-n", "--show-nr-samples", action="store_true", help="a column with the number of samples")
    parser.add_argument("--show-total-period", action="store_true", help="a column with the period")
    parser.add_argument(
        "-g",
        "--call-graph",
        nargs="?",
        const=DEFAULT_GRAPH,
        metavar="OPTIONS",
        help=f"call trees: none, or of: graph, fractal or folded, PERCENT, caller or callee, percent, period or count "
        f"({DEFAULT_GRAPH})",
    )
    parser.add_argument("-G", "--inverted", action="store_true", help="the same as -g caller")
    parser.add_argument(
        "--children",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="add to each function what it called (as perf, if there are callchains)",
    )
    parser.add_argument(
        "-H", "--hierarchy", action="store_true", help="rows of each sort key below those of the one before"
    )
    add_filters(parser)
    parser.add_argument("--percent-limit", type=_percent, default=0.0, metavar="PERCENT", help="leave out smaller rows")
    parser.add_argument("--symfs", default="", metavar="DIR", help="look for the recorded files below DIR")
    parser.add_argument(
        "--inline",
        action=argparse.BooleanOptionalAction,
        help="ignored, as by Debian's perf: inlined functions are not shown",
    )
    parser.add_argument("--header", action="store_true", help="print what the file says about the machine")
    parser.add_argument("--header-only", action="store_true", help="print nothing else")
    parser.add_argument("-q", "--quiet", action="store_true", help="the rows alone, without lines of comment")
    parser.add_argument("-f", "--force", action="store_true", help="ignored: nobody asks whose file it is")
    parser.add_argument("--stats", action="store_true", help="print instead how many records of each kind there are")
    parser.add_argument("-D", "--dump-raw-trace", action="store_true", help="list the records instead")
    parser.add_argument(
        "--jit-files",
        metavar="DIR",
        help="write what programs told of code that they made to DIR: perf reads it in /tmp; and a board's kallsyms",
    )
    parser.add_argument("others", nargs="*", metavar="", help=argparse.SUPPRESS)
    add_refused_options(parser, _NOT_YET)
    parser.add_argument("--format", default="stdio", metavar="NAME", help=f"output: {', '.join(format_names())}")


def _percent(text: str) -> float:
    if not NUMBER.fullmatch(text) or float(text) > 100:
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage")
    return float(text)


def run(arguments: argparse.Namespace) -> int:
    """Print the report on stdout; the exit status."""
    try:
        style = output_format(arguments.format)
    except KeyError:
        known = ", ".join(format_names())
        raise UsageError(f"unknown format '{arguments.format}'; known are {known}") from None
    if style.is_binary and is_terminal():
        raise UsageError(f"--format {style.name} is binary, not for a terminal: write it to a file, > profile")
    if arguments.others:
        raise UsageError(
            f"report: '{arguments.others[0]}': a file is named with -i; symbol filters are not modelled yet"
        )
    if arguments.hierarchy and arguments.fields:
        raise UsageError("report: --hierarchy and --fields exclude each other")
    if arguments.hierarchy and style.name != "stdio":
        raise UsageError(f"report: --hierarchy is of --format stdio, not of {style.name}")
    options = _options(arguments)
    name = arguments.input or default_input(sys.stdin.buffer)
    try:
        with open_profile(name) as file:
            if arguments.jit_files is not None:
                return _write_jit_files(file.features.jit_files, arguments.jit_files)
            if arguments.dump_raw_trace:
                return _print(dump_lines(file))
            if arguments.stats:
                return _print(record_count_lines(file))
            takes = taken_samples(arguments, file)
            profile = read_profile(file, arguments.symfs, _complain, keeps_moments=style.needs_moments, takes=takes)
    except PerfDataError as error:
        raise PerfemuError(str(error)) from None
    if arguments.header_only:
        return _print(header_lines(profile))
    if arguments.call_graph and options.call_trees and not any(event.has_callchains for event in profile.events):
        raise PerfemuError(f"{file.name} has no callchains for --call-graph: record with -g")
    if style.needs_samples and not any(event.sample_count for event in profile.events):
        return FAILURE_STATUS  # it has been said
    check_selection(options.selection, profile, _complain)
    with paged():
        style.write(Report(profile, options), sys.stdout, sys.stdout.buffer)
    return 0


def _print(lines: Iterable[str]) -> int:
    with paged():
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _write_jit_files(files: tuple[JitFile, ...], directory: str) -> int:
    """The names are the guest's: only the last part counts, and nothing that is there is followed."""
    # only this needs what knows of the host's files, and with it the machine
    from perfemu.output_file import write_file

    known = [
        file
        for file in files
        if JIT_MAP.fullmatch(file.path) or JITDUMP.fullmatch(file.path) or file.path == KALLSYMS_FILE
    ]
    if not known:
        raise PerfemuError("the recording has no perf-PID.map, no jitdump and no kallsyms")
    for file in known:
        print(write_file(os.path.join(directory, os.path.basename(file.path)), file.contents))
    return 0


def _complain(text: str) -> None:
    tell(f"perfemu: {text}")


def _options(arguments: argparse.Namespace) -> ReportOptions:
    keys, columns = _columns(arguments)
    graph = call_graph(arguments.call_graph or "")
    order = graph.order
    if arguments.inverted:
        order = "caller"
    order = order or ("caller" if arguments.children else "callee")
    sort = arguments.sort or ""
    return ReportOptions(
        keys=keys,
        columns=columns,
        children=arguments.children,
        call_trees=graph.style != "none",
        caller_first=order == "caller",
        relative_calls=graph.style == "fractal",
        folded_calls=graph.style == "folded",
        call_value=graph.value,
        least_call_percent=arguments.percent_limit or graph.least_percent,
        least_percent=arguments.percent_limit,
        symbol_first=sort.startswith("sym") and not arguments.fields,
        hierarchy=arguments.hierarchy,
        header=arguments.header,
        comments=not arguments.quiet,
        coloured=shows_colours() if arguments.stdio_color == "auto" else arguments.stdio_color == "always",
        selection=selection(arguments),
        relative=arguments.percentage == "relative",
        time_slices=arguments.time,
    )


def _columns(arguments: argparse.Namespace) -> tuple[tuple[SortKey, ...], tuple[str, ...]]:
    """The keys and the weight columns that --sort, --fields, -n and --show-total-period ask for."""
    names = list(DEFAULT_KEYS)
    columns = list(DEFAULT_COLUMNS)
    if arguments.show_nr_samples:
        columns.append("sample")
    if arguments.show_total_period:
        columns.append("period")
    if arguments.sort:
        more = arguments.sort.startswith("+")
        names = [*(DEFAULT_KEYS if more else ()), *(word for word in arguments.sort.lstrip("+").split(",") if word)]
        columns += [word for word in names if word in WEIGHT_COLUMNS and word not in columns]
        names = [word for word in names if word not in WEIGHT_COLUMNS]
    if arguments.fields:
        fields = [word for word in arguments.fields.split(",") if word]
        columns = [word for word in fields if word in WEIGHT_COLUMNS]
        names = [word for word in fields if word not in WEIGHT_COLUMNS]
    if not names:
        raise UsageError("there must be at least one sort key")
    try:
        return tuple(sort_key(name) for name in names), tuple(columns)
    except UnknownKey as error:
        raise UsageError(str(error)) from None
