"""perfemu script: a perf.data file's samples as text, as perf script does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from perfcore.perfdata.errors import PerfDataError
from perfemu.cli.options import add_refused_options, positive_int
from perfemu.cli.pager import paged
from perfemu.cli.streams import tell
from perfemu.cpu_list import cpu_numbers
from perfemu.errors import PerfemuError, UsageError
from perfemu.reporting import default_input, open_profile
from perfemu.script.fields import FIELDS
from perfemu.script.filters import SampleFilter
from perfemu.script.lines import LineOptions
from perfemu.script.sideband import SHOWN_BY
from perfemu.scripting import Script, ScriptOptions, script_header

EXAMPLES = """\
  perfemu script                                   perf.data, a line or a block for each sample
  perfemu script | stackcollapse-perf.pl | flamegraph.pl > flames.svg
  perfemu script -F comm,tid,time,ip,sym           these fields alone
  perfemu script -F +srcline,-period --ns          perf's own, changed
  perfemu script -S main --time 100.1,100.2        samples in main, in this time
  perfemu script --show-task-events                COMM, FORK and EXIT, too
"""

_NOT_YET = {
    "-g, --gen-script": "makes a script for perf",
    "-s, --script": "runs a script: read our text, or perfemu.record's samples in Python",
    "-l, --list": "lists perf's scripts",
    "-D, --dump-raw-trace": "perfemu report -D lists the records",
    "--dlfilter": "filters by a library of yours",
    "--itrace": "instruction traces",
    "--inline": "inlined functions: they are not shown",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """perf script's options, as far as there are."""
    parser.add_argument(
        "-i", "--input", metavar="FILE", help="file to read, - is stdin [a pipe on stdin, or perf.data]"
    )
    names = ", ".join(field.name for field in FIELDS)
    parser.add_argument(
        "-F",
        "--fields",
        action="append",
        default=[],
        metavar="[TYPE:]FIELDS",
        help=f"what to show, or to add by + and remove by -, of: {names}; TYPE is hw, sw, trace or raw",
    )
    parser.add_argument("-G", "--hide-call-graph", action="store_true", help="no callchains")
    parser.add_argument(
        "--max-stack", type=positive_int, default=127, metavar="N", help="callchains of N frames at most"
    )
    parser.add_argument("-c", "--comms", metavar="COMM[,...]", help="samples of these commands alone")
    parser.add_argument("--pid", type=_numbers, metavar="PID[,...]", help="of these processes")
    parser.add_argument("--tid", type=_numbers, metavar="TID[,...]", help="of these threads")
    parser.add_argument("-C", "--cpu", metavar="LIST", help="on these CPUs: 0,2-3")
    parser.add_argument("-S", "--symbols", metavar="SYMBOL[,...]", help="in these functions")
    parser.add_argument("--dsos", metavar="FILE[,...]", help="in these files")
    parser.add_argument("--time", default="", metavar="START,STOP", help="in this time: seconds, or 10%%/2, 0%%-10%%")
    parser.add_argument("--ns", action="store_true", help="times with nanoseconds")
    parser.add_argument("--reltime", action="store_true", help="times since the first line")
    parser.add_argument("--deltatime", action="store_true", help="times since the line before")
    parser.add_argument("--header", action="store_true", help="first what the file says about the machine")
    parser.add_argument("--header-only", action="store_true", help="print nothing else")
    for name in SHOWN_BY:
        parser.add_argument(f"--show-{name}-events", action="store_true", help=f"{_TOLD[name]}, too")
    parser.add_argument("--symfs", default="", metavar="DIR", help="look for the recorded files below DIR")
    parser.add_argument("-f", "--force", action="store_true", help="ignored: nobody asks whose file it is")
    parser.add_argument("others", nargs="*", metavar="", help=argparse.SUPPRESS)
    add_refused_options(parser, _NOT_YET)


_TOLD = {
    "task": "records of tasks (COMM, FORK, EXIT)",
    "mmap": "records of mapped files",
    "switch": "records of context switches",
    "lost": "records of what was lost",
    "namespace": "records of tasks' namespaces (record --namespaces)",
    "cgroup": "records of control groups (record --all-cgroups)",
}


def arranged(words: Sequence[str]) -> list[str]:
    """The command line with ``-F -ip`` as one word: argparse takes what starts with a dash for an option."""
    made: list[str] = []
    for word in words:
        if word.startswith("-") and made and made[-1] in _BEFORE_FIELDS:
            made[-1] += _BEFORE_FIELDS[made[-1]] + word
        else:
            made.append(word)
    return made


_BEFORE_FIELDS = {"-F": "", "--fields": "="}


def _numbers(text: str) -> frozenset[int]:
    try:
        return frozenset(int(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers") from None


def _names(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(text.split(","))


def run(arguments: argparse.Namespace) -> int:
    """Print the samples on stdout; the exit status."""
    if arguments.others:
        raise UsageError(f"script: '{arguments.others[0]}': -i names a file; perf's scripts are not modelled yet")
    if arguments.reltime and arguments.deltatime:
        raise UsageError("script: --reltime and --deltatime are two ways to show one time")
    options = _options(arguments)
    name = arguments.input or default_input(sys.stdin.buffer)
    try:
        with open_profile(name) as file:
            script = Script(file, options, _complain)
            with paged():
                if arguments.header or arguments.header_only:
                    sys.stdout.writelines(f"{line}\n" for line in script_header(file))
                if not arguments.header_only:
                    sys.stdout.writelines(script.lines())
    except PerfDataError as error:
        raise PerfemuError(str(error)) from None
    return 0


def _options(arguments: argparse.Namespace) -> ScriptOptions:
    return ScriptOptions(
        fields=tuple(arguments.fields),
        lines=LineOptions(
            nanoseconds=arguments.ns,
            relative=arguments.reltime,
            deltas=arguments.deltatime,
            chains=not arguments.hide_call_graph,
            most_frames=arguments.max_stack,
        ),
        filter=SampleFilter(
            comms=_names(arguments.comms),
            pids=arguments.pid,
            tids=arguments.tid,
            cpus=frozenset(cpu_numbers(arguments.cpu)) if arguments.cpu else None,
            symbols=_names(arguments.symbols),
            files=_names(arguments.dsos),
        ),
        time=arguments.time,
        sideband=tuple(name for name in SHOWN_BY if getattr(arguments, f"show_{name}_events")),
        symfs=arguments.symfs,
    )


def _complain(text: str) -> None:
    tell(f"perfemu: {text}")
