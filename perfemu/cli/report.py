"""perfemu report: show a perf.data file, as perf report --stdio does."""

from __future__ import annotations

import argparse
import re
import sys

from perfcore.abi.constants import RecordType
from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.reader import PerfDataFile, open_perf_data
from perfcore.perfdata.records import UserRecord
from perfemu.cli.streams import tell
from perfemu.errors import PerfemuError, UsageError
from perfemu.formats import format_names, output_format
from perfemu.formats.stdio import WEIGHT_COLUMNS
from perfemu.profile.header_lines import header_lines
from perfemu.profile.keys import DEFAULT_KEYS, SORT_KEYS, SortKey, UnknownKey, sort_key
from perfemu.profile.profile import Profile, load_profile
from perfemu.profile.report import Report, ReportOptions
from perfemu.symbols.finder import SymbolFinder

SUMMARY = "show where the samples of a perf.data file lie"

_DEFAULT_GRAPH = "graph,0.5,caller,function,percent"
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_IGNORED_GRAPH_WORDS = ("graph", "function", "percent")  # what we always do


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """perf report's options, as far as there are."""
    parser.add_argument("-i", "--input", default="perf.data", metavar="FILE", help="file to read, - is stdin")
    parser.add_argument("--stdio", action="store_true", help="print text (there is nothing else: for perf's sake)")
    keys = ", ".join(SORT_KEYS)
    parser.add_argument("-s", "--sort", metavar="KEYS", help=f"what makes a row, of: {keys}")
    columns = ", ".join(WEIGHT_COLUMNS)
    parser.add_argument("-F", "--fields", metavar="FIELDS", help=f"columns in order, of: {columns}, and sort keys")
    parser.add_argument("-n", "--show-nr-samples", action="store_true", help="a column with the number of samples")
    parser.add_argument("--show-total-period", action="store_true", help="a column with the period")
    parser.add_argument(
        "-g",
        "--call-graph",
        nargs="?",
        const=_DEFAULT_GRAPH,
        metavar="OPTIONS",
        help=f"call trees: none, or of: graph, PERCENT, caller or callee, function, percent ({_DEFAULT_GRAPH})",
    )
    parser.add_argument("-G", "--inverted", action="store_true", help="the same as -g caller")
    parser.add_argument(
        "--children",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="add to each function what it called (as perf, if there are callchains)",
    )
    parser.add_argument("--percent-limit", type=float, default=0.0, metavar="PERCENT", help="leave out smaller rows")
    parser.add_argument("--symfs", default="", metavar="DIR", help="look for the recorded files below DIR")
    parser.add_argument(
        "--inline",
        action=argparse.BooleanOptionalAction,
        help="ignored, as by Debian's perf: inlined functions are not shown",
    )
    parser.add_argument("--header", action="store_true", help="print what the file says about the machine")
    parser.add_argument("--header-only", action="store_true", help="print nothing else")
    parser.add_argument("-D", "--dump-raw-trace", action="store_true", help="list the records instead")
    parser.add_argument("--format", default="stdio", metavar="NAME", help=f"output: {', '.join(format_names())}")


def run(arguments: argparse.Namespace) -> int:
    """Print the report on stdout; the exit status."""
    try:
        style = output_format(arguments.format)
    except KeyError:
        known = ", ".join(format_names())
        raise UsageError(f"unknown format '{arguments.format}'; known are {known}") from None
    options = _options(arguments)
    try:
        with _open(arguments.input) as file:
            if arguments.dump_raw_trace:
                _dump(file)
                return 0
            profile = _load(file, arguments.symfs)
    except PerfDataError as error:
        raise PerfemuError(str(error)) from None
    if arguments.header_only:
        sys.stdout.writelines(f"{line}\n" for line in header_lines(profile))
        return 0
    if arguments.call_graph and not any(event.has_callchains for event in profile.events):
        raise PerfemuError(f"{arguments.input} has no callchains for --call-graph: record with -g")
    if not any(event.sample_count for event in profile.events):
        _complain(f"{arguments.input} has no samples")
    if profile.lost_records:
        _complain(f"{arguments.input}: {profile.lost_records} records were lost while recording")
    style.write(Report(profile, options), sys.stdout)
    return 0


def _open(name: str) -> PerfDataFile:
    if name == "-":
        return PerfDataFile(sys.stdin.buffer, "standard input")
    try:
        return open_perf_data(name)
    except OSError as error:
        hint = " (run perfemu record first)" if isinstance(error, FileNotFoundError) and name == "perf.data" else ""
        raise PerfemuError(f"cannot read {name}: {error.strerror}{hint}") from None


def _load(file: PerfDataFile, symfs: str) -> Profile:
    build_ids = {entry.path: entry.build_id for entry in file.features.build_ids}
    profile = load_profile(file, SymbolFinder(symfs.rstrip("/"), _complain, build_ids))
    if file.interrupted:
        _complain(f"{file.name}: the recorder was killed; read what is there")
    return profile


def _complain(text: str) -> None:
    tell(f"perfemu: {text}")


def _dump(file: PerfDataFile) -> None:
    """One line per record: file offset, size, type, and its fields."""
    for record in file.records():
        if record.type == RecordType.SAMPLE:
            shown: object = file.decode_sample(record, file.event_number(record))
        elif record.type < UserRecord.HEADER_ATTR:
            shown = file.decode_record(record)
        else:
            shown = UserRecord(record.type).name if record.type in list(UserRecord) else f"type {record.type}"
        print(f"{record.offset:#x} [{len(record.data):#x}] {record.misc:#x}: {shown}")


def _options(arguments: argparse.Namespace) -> ReportOptions:
    keys, columns = _columns(arguments)
    least_call_percent = 0.5
    order = ""
    trees = True
    for word in (arguments.call_graph or "").split(","):
        if word in ("caller", "callee"):
            order = word
        elif word == "none":
            trees = False
        elif _NUMBER.fullmatch(word):
            least_call_percent = float(word)
        elif word and word not in _IGNORED_GRAPH_WORDS:
            raise UsageError(f"--call-graph {word}: not supported; known are none, {_DEFAULT_GRAPH} and callee")
    if arguments.inverted:
        order = "caller"
    order = order or ("caller" if arguments.children else "callee")
    if arguments.percent_limit:
        least_call_percent = arguments.percent_limit
    sort = arguments.sort or ""
    return ReportOptions(
        keys=keys,
        columns=columns,
        children=arguments.children and "overhead_children" in columns,
        call_trees=trees,
        caller_first=order == "caller",
        least_call_percent=least_call_percent,
        least_percent=arguments.percent_limit,
        symbol_first=sort.startswith("sym") and not arguments.fields,
        header=arguments.header,
    )


def _columns(arguments: argparse.Namespace) -> tuple[tuple[SortKey, ...], tuple[str, ...]]:
    """The keys and the weight columns that --sort, --fields, -n and --show-total-period ask for."""
    names = list(DEFAULT_KEYS)
    columns = ["overhead_children", "overhead"]
    if arguments.show_nr_samples:
        columns.append("sample")
    if arguments.show_total_period:
        columns.append("period")
    if arguments.sort:
        names = [word for word in arguments.sort.split(",") if word]
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
