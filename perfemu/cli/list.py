"""perfemu list: events and cores, in perf list's look."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

from perfemu.cores import CORES, DEFAULT_CORE, CoreChoice, core
from perfemu.errors import PerfemuError
from perfemu.listing import KINDS, Listed, events_of, software_events

SUMMARY = "List the events that a core's PMU can count, and the cores"
EXAMPLES = """\
  perfemu list                    all events, for AArch64 and x86-64
  perfemu list hw sw              hardware and software events
  perfemu list pmu --isa x86_64   the vendor's names
  perfemu list 'br*' --details    what is behind them, and how truly they count
  perfemu list cores
"""

_NAME_WIDTH = 50  # perf's
_KIND_ALIASES = {"hardware": "hw", "software": "sw", "hwcache": "cache"}  # as perf list takes them
_CORES = "cores"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "patterns", nargs="*", metavar="KIND | PATTERN", help=f"{', '.join(KINDS)}, {_CORES}; or a name"
    )
    parser.add_argument("-v", "--details", "--long-desc", action="store_true", help="show what is counted, and notes")
    parser.add_argument("--core", metavar="NAME", default=DEFAULT_CORE, help=f"whose events [{DEFAULT_CORE}]")
    parser.add_argument("--isa", choices=("aarch64", "x86_64"), help="only this ISA's events")


def run(options: argparse.Namespace) -> int:
    chosen = core(options.core)
    patterns = [_KIND_ALIASES.get(pattern, pattern) for pattern in options.patterns]
    if _CORES in patterns:
        print("\n".join(_core_lines()))
        return 0
    heading = ("\nList of events (to be used in -e; hardware events count user mode):", "")
    shown = _print_events(software_events(), patterns, options.details, heading)
    for isa in [options.isa] if options.isa else list(chosen.pmu_models):
        model = chosen.pmu(isa)
        title = (*(() if shown else heading), f"{isa}, core {chosen.name}, PMU {model.sysfs_name}:", "")
        shown |= _print_events(events_of(model), patterns, options.details, title)
    if not shown:
        raise PerfemuError(f"list: no event matches {' '.join(patterns)}")
    return 0


def _core_lines() -> Iterator[str]:
    for choice in CORES:
        yield f"  {choice.name:<{_NAME_WIDTH}} [{_pmus(choice)}]"
        yield f"       {choice.summary}"


def _pmus(choice: CoreChoice) -> str:
    return ", ".join(f"{isa}: {choice.pmu(isa).sysfs_name}" for isa in choice.pmu_models)


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
            print(f"  {' OR '.join(event.names):<{_NAME_WIDTH}} [{KINDS[event.kind]}, {event.support.value}]")
            if details:
                for line in filter(None, (event.counts, event.note)):
                    print(f"       {line}")
    unknown = [event.names[0] for event in wanted if event.support is None]
    if unknown:
        print(f"  not supported on this core: {', '.join(unknown)}")
    if wanted:
        print()
    return bool(wanted)
