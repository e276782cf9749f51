"""perfemu annotate: where in functions events were, by instruction and line, as perf annotate --stdio shows it."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence

from perfcore.abi.constants import SampleType
from perfcore.abi.sample import Sample
from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.reader import PerfDataFile
from perfemu.annotating import AnnotatedFunction, SampledFunction, SampledFunctions
from perfemu.annotation.disassembly import SYNTAXES
from perfemu.annotation.sources import SourceTexts
from perfemu.annotation.stdio import PERCENT_TYPES, Layout, function_lines
from perfemu.cli.options import add_refused_options
from perfemu.cli.pager import is_terminal, paged, shows_colours
from perfemu.cli.streams import tell
from perfemu.cpu_list import cpu_numbers
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.attributes import is_exact
from perfemu.profile.profile import EventProfile, Profile
from perfemu.reporting import default_input, open_profile, read_profile

EXAMPLES = """\
  perfemu annotate main                      main, with its source where that is found
  perfemu annotate -l -P                     all functions with samples, and their lines sorted
  perfemu annotate -n -d libc.so.6 memcpy    numbers of samples, in this file
  perfemu record --exact -e instructions,cycles ./prog; perfemu annotate main
                                             how often each instruction made each event
"""

_NOT_YET = {
    "-k, --vmlinux": "the kernel's code: none of it is executed",
    "--tui": "menus: there is --stdio",
    "--gtk": "windows: there is --stdio",
    "--stdio2": "another layout: there is --stdio",
    "--objdump": "another disassembler: it is capstone",
    "--itrace": "instruction traces",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """perf annotate's options, as far as there are."""
    parser.add_argument("name", nargs="*", metavar="SYMBOL", help="the function to show [all with samples]")
    parser.add_argument("-i", "--input", metavar="FILE", help="file to read, - is stdin [a pipe, or perf.data]")
    parser.add_argument("-s", "--symbol", default="", metavar="SYMBOL", help="the same as SYMBOL")
    parser.add_argument("-d", "--dsos", default="", metavar="FILE[,...]", help="functions of these files alone")
    parser.add_argument("-C", "--cpu", metavar="LIST", help="only samples of these CPUs: 0,2-3")
    parser.add_argument("--stdio", action="store_true", help="print text (there is nothing else: for perf's sake)")
    parser.add_argument("--json", action="store_true", help="print JSON instead")
    parser.add_argument("-l", "--print-line", action="store_true", help="lines sorted by weight, and their names")
    parser.add_argument("-n", "--show-nr-samples", action="store_true", help="numbers of samples, not percentages")
    parser.add_argument("--show-total-period", action="store_true", help="periods, not percentages")
    parser.add_argument("-P", "--full-paths", action="store_true", help="whole paths")
    parser.add_argument(
        "--percent-type", choices=PERCENT_TYPES, default="local-period", metavar="TYPE",
        help=f"percentages of the function or of all, of periods or of samples: {', '.join(PERCENT_TYPES)}",
    )  # fmt: skip
    parser.add_argument(
        "--percent-limit", type=float, default=0.0, metavar="PERCENT", help="leave out smaller functions"
    )
    parser.add_argument("--source", action=argparse.BooleanOptionalAction, default=True, help="show source lines")
    parser.add_argument("--asm-raw", action="store_true", help="show the instructions' bytes")
    parser.add_argument("-M", "--disassembler-style", choices=SYNTAXES, default="att", help="for x86-64")
    parser.add_argument("--group", action="store_true", help="all events side by side, as those of a group")
    parser.add_argument("--prefix", default="", metavar="DIR", help="put DIR before absolute paths of source files")
    parser.add_argument(
        "--prefix-strip", type=int, default=0, metavar="N", help="and leave out their first N directories"
    )
    parser.add_argument("--skip-missing", action="store_true", help="say nothing of functions whose code is not found")
    parser.add_argument("--symfs", default="", metavar="DIR", help="look for the recorded files below DIR")
    parser.add_argument(
        "--stdio-color", choices=("always", "never", "auto"), default="auto", help="[auto: on a terminal]"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no sums at the end, and no warnings")
    parser.add_argument("-f", "--force", action="store_true", help="ignored: nobody asks whose file it is")
    add_refused_options(parser, _NOT_YET)


def run(arguments: argparse.Namespace) -> int:
    """Print the functions on stdout; the exit status."""
    name = _symbol(arguments)
    if arguments.prefix_strip and not arguments.prefix:
        raise UsageError("annotate --prefix-strip needs --prefix")
    complain = _silent if arguments.quiet else _complain
    path = arguments.input or default_input(sys.stdin.buffer)
    try:
        with open_profile(path) as file:
            profile = read_profile(file, arguments.symfs, complain, takes=_taken(arguments, file))
    except PerfDataError as error:
        raise PerfemuError(str(error)) from None
    layout = _layout(arguments)
    with paged():
        _show(profile, name, arguments, layout)
    return 0


def _show(profile: Profile, name: str, arguments: argparse.Namespace, layout: Layout) -> None:
    files = [word for word in arguments.dsos.split(",") if word]
    for_json: list[AnnotatedFunction] = []
    any_found = False
    problem: PerfemuError | None = None
    for events in _event_sets(profile, arguments.group):
        sampled = SampledFunctions(profile, events)
        try:
            functions = sampled.named(name, files)
        except PerfemuError as error:
            problem = error
            continue
        any_found = True
        for function in _heavy(sampled, functions, arguments.percent_limit):
            annotated = _annotated(sampled, function, arguments, alone=bool(name))
            if annotated is None:
                continue
            if arguments.json:
                for_json.append(annotated)
                continue
            sys.stdout.writelines(f"{line}\n" for line in function_lines(annotated, layout))
        if not (arguments.json or name or files or arguments.quiet):
            sys.stdout.writelines(f"{line}\n" for line in _sums(sampled))
    if not any_found:
        raise problem or PerfemuError(f"{profile.path} has no events")
    if arguments.json:
        json.dump([_as_json(each) for each in for_json], sys.stdout, indent=1)
        sys.stdout.write("\n")


def _symbol(arguments: argparse.Namespace) -> str:
    names = [*arguments.name, *([arguments.symbol] if arguments.symbol else [])]
    if len(set(names)) > 1:
        raise UsageError(f"annotate: one function at a time, not {', '.join(names)}")
    return names[0] if names else ""


def _taken(arguments: argparse.Namespace, file: PerfDataFile) -> Callable[[Sample], bool] | None:
    if not arguments.cpu:
        return None
    cpus = frozenset(cpu_numbers(arguments.cpu))
    if any(not event.attr.sample_type & SampleType.CPU for event in file.events):
        raise PerfemuError(f"{file.name} does not say on which CPU a sample was taken: record with --sample-cpu")
    return lambda sample: sample.cpu in cpus


def _event_sets(profile: Profile, together: bool) -> Iterator[Sequence[EventProfile]]:
    """Events that are shown side by side: of a group, as in perf; and those with exact counts."""
    events = [event for event in profile.events if event.sample_count]
    if not events:
        raise PerfemuError(f"{profile.path} has no samples to annotate")
    if together or all(is_exact(event.description.attr) for event in events):
        yield events
        return
    for group in profile.groups:
        members = profile.events[group.leader_index : group.leader_index + group.members]
        if any(event.sample_count for event in members):
            yield members


def _heavy(sampled: SampledFunctions, functions: Sequence[SampledFunction], least: float) -> Iterator[SampledFunction]:
    """Those with at least so many percent of any event."""
    for function in functions:
        weights = zip(function.weight(), sampled.events, strict=True)
        if any(weight and 100.0 * weight / event.period >= least for weight, event in weights):
            yield function


def _annotated(
    sampled: SampledFunctions, function: SampledFunction, arguments: argparse.Namespace, alone: bool
) -> AnnotatedFunction | None:
    """None: its code is not to be had, which is an error where it is the only one that was asked for."""
    try:
        return sampled.annotated(function, arguments.disassembler_style)
    except PerfemuError as problem:
        if alone or isinstance(problem, UsageError):
            raise
        if not (arguments.skip_missing or arguments.quiet):
            _complain(problem.message)
        return None


def _layout(arguments: argparse.Namespace) -> Layout:
    return Layout(
        SourceTexts(arguments.symfs, arguments.prefix, arguments.prefix_strip),
        show_source=arguments.source,
        raw=arguments.asm_raw,
        samples=arguments.show_nr_samples,
        periods=arguments.show_total_period,
        full_paths=arguments.full_paths,
        line_summary=arguments.print_line,
        percent_type=arguments.percent_type,
        colour=shows_colours() if arguments.stdio_color == "auto" else arguments.stdio_color == "always",
        width=shutil.get_terminal_size().columns if is_terminal() else 0,
    )


def _sums(sampled: SampledFunctions) -> Iterator[str]:
    """What the functions have of each event's whole."""
    yield ""
    for number, event in enumerate(sampled.events):
        named = event.period - sampled.unnamed[number]
        functions = sum(1 for function in sampled.functions if function.weight()[number])
        yield f"# {event.name}: {event.period:,}, of which {named:,} in {functions} functions" + (
            f" and {sampled.unnamed[number]:,} in code without symbols" if sampled.unnamed[number] else ""
        )


def _as_json(function: AnnotatedFunction) -> dict[str, object]:
    return {
        "function": function.name,
        "file": function.path,
        "address": f"{function.address:#x}",
        "events": [
            {"name": name, "exact": exact, "count": function.counts[name], "samples": function.samples[name], "of": of}
            for name, exact, of in zip(function.events, function.exact, function.totals, strict=True)
        ],
        "lines": [
            {"source": line[0] if line else None, "line": line[1] if line else None, "counts": list(counts.values())}
            for line, counts in function.lines.items()
        ],
        "instructions": [
            {
                "address": f"{each.address:#x}",
                "bytes": each.raw.hex(),
                "text": each.text,
                "source": each.line[0] if each.line else None,
                "line": each.line[1] if each.line else None,
                "counts": list(each.counts),
                "samples": list(each.samples),
            }
            for each in function.instructions
        ],
    }


def _complain(text: str) -> None:
    tell(f"perfemu: {text}")


def _silent(text: str) -> None:
    pass
