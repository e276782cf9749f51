"""perfemu list: events and cores, in perf list's look."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from emulator.core_file.core_file import CoreFile
from emulator.core_file.keys import ISAS
from emulator.core_file.layers import is_file, names
from perfemu.cli.guest import add_core_options
from perfemu.core_lines import brief, detailed
from perfemu.cores import DEFAULT_CORES, core, core_for, cores, isa_of_pmu, pmu_of, with_pmu
from perfemu.errors import PerfemuError, UsageError
from perfemu.listing import KINDS, Listed, breakpoint_events, events_of, metrics, software_events, system_call_events
from pmu.model import ANY_ISA

EXAMPLES = """\
  perfemu list                    all events, for AArch64 and x86-64
  perfemu list hw sw              hardware and software events
  perfemu list pmu --isa x86_64   the vendor's names
  perfemu list metric metricgroup --core zen5   for stat -M
  perfemu list 'br*' --details    what is behind them, and how truly they count
  perfemu list cores              each in a few lines
  perfemu list cores NAME         all that its file says, and where that is from
  perfemu list cores ./my.toml --set l1d.size=64KiB
"""

_NAME_WIDTH = 50  # perf's
_KIND_ALIASES = {
    "hardware": "hw",
    "software": "sw",
    "hwcache": "cache",
    "metrics": "metric",
    "metricgroups": "metricgroup",
}  # as perf list takes them
_CORES = "cores"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "patterns", nargs="*", metavar="KIND | PATTERN", help=f"{', '.join(KINDS)}, {_CORES}; or a name"
    )
    parser.add_argument("-v", "--details", "--long-desc", action="store_true", help="show what is counted, and notes")
    add_core_options(parser, "whose events; the ISA's default")
    parser.add_argument("--isa", choices=ISAS, help="only this ISA's events")


def run(options: argparse.Namespace) -> int:
    patterns = [_KIND_ALIASES.get(pattern, pattern) for pattern in options.patterns]
    if _CORES in patterns:
        return _list_cores(options, [pattern for pattern in patterns if pattern != _CORES])
    heading = ("\nList of events (to be used in -e; hardware events count user mode):", "")
    shown = False
    for isa, chosen in _chosen(options):
        model = pmu_of(chosen, isa)
        title = (*(() if shown else heading), f"{isa}, core {chosen.title}, PMU {model.sysfs_name}:", "")
        shown |= _print_events([*events_of(model), *metrics(model)], patterns, options.details, title)
    isas = [isa for isa, _ in _chosen(options)]
    same_on_all_cores = (*software_events(isas), *breakpoint_events(), *system_call_events(isas))
    title = ("every core:", "") if shown else heading
    shown |= _print_events(same_on_all_cores, patterns, options.details, title)
    if not shown:
        raise PerfemuError(f"list: no event matches {' '.join(patterns)}")
    return 0


def _isas(options: argparse.Namespace, executed: Iterable[str]) -> list[str]:
    """Those that are asked for: --isa's, or those that --pmu is of."""
    if options.isa:
        return [options.isa]
    return [isa for isa in executed if options.pmu is None or isa_of_pmu(options.pmu) in (isa, ANY_ISA)]


def _chosen(options: argparse.Namespace) -> Iterator[tuple[str, CoreFile]]:
    """(ISA, core) whose events are asked for."""
    if options.core is None:
        for isa in _isas(options, DEFAULT_CORES):
            yield isa, core_for(None, isa, with_pmu(options.core_changes, options.pmu, isa))
    else:
        for isa in _isas(options, core(options.core, options.core_changes).isas):
            yield isa, core(options.core, with_pmu(options.core_changes, options.pmu, isa))


def _list_cores(options: argparse.Namespace, patterns: list[str]) -> int:
    """All, or those that are named: they with all their tables. A file of the user's can be named, too."""
    named = [options.core] if options.core is not None else []
    named += [name for name in patterns if is_file(name)]
    chosen = [core(name, options.core_changes) for name in named]
    wanted = [pattern for pattern in patterns if not is_file(pattern)]
    for pattern in wanted:
        matching = [name for name in names() if fnmatchcase(name, pattern) or pattern in name]
        chosen += [core(name, options.core_changes) for name in matching or [pattern]]  # else it says which there are
    if options.core_changes and not chosen:
        raise UsageError("list cores --set: wants the name of the core that it changes")
    lines = detailed if chosen or options.details else brief
    for each in chosen or cores():
        print("\n".join(lines(each)))
    return 0


def _wanted(event: Listed, patterns: Sequence[str]) -> bool:
    if not patterns:
        return True
    return any(event.kind == pattern if pattern in KINDS else event.matches(pattern) for pattern in patterns)


def _print_events(events: Iterable[Listed], patterns: Sequence[str], details: bool, title: Iterable[str]) -> bool:
    """Whether anything was printed."""
    wanted = [event for event in events if _wanted(event, patterns)]
    for line in title if wanted else ():
        print(line)
    for event in wanted:
        if event.support is not None:
            support = "" if event.kind == "metricgroup" else f", {event.support.value}"
            print(f"  {' OR '.join(event.names):<{_NAME_WIDTH}} [{KINDS[event.kind]}{support}]")
            if details:
                for line in filter(None, (event.counts, event.note)):
                    print(f"       {line}")
    unknown = [event.names[0] for event in wanted if event.support is None]
    if unknown:
        print(f"  not supported on this core: {', '.join(unknown)}")
    if wanted:
        print()
    return bool(wanted)
