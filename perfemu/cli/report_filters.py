"""perf report's options that choose samples."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from perfcore.abi.constants import SampleType
from perfcore.abi.sample import Sample
from perfcore.perfdata.reader import PerfDataFile
from perfemu.cpu_list import cpu_numbers
from perfemu.errors import PerfemuError, UsageError
from perfemu.profile.profile import Profile
from perfemu.profile.selection import FILTERS, Selection
from perfemu.profile.time_ranges import BadTime, is_within, time_ranges

_OPTIONS: tuple[tuple[str, tuple[str, ...], Callable[[str], Any]], ...] = (  # filter, option, type of its values
    ("comm", ("-c", "--comms"), str),
    ("dso", ("-d", "--dsos"), str),
    ("symbol", ("-S", "--symbols"), str),
    ("pid", ("--pid",), int),
    ("tid", ("--tid",), int),
)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Those that leave rows out, and those that leave samples out before anything is counted."""
    for name, options, kind in _OPTIONS:
        help_text = f"only samples of these, by {FILTERS[name].noun}"
        metavar = f"{options[-1].lstrip('-').rstrip('s').upper()}[,...]"
        parser.add_argument(*options, dest=f"chosen_{name}", type=_list_of(kind), metavar=metavar, help=help_text)
    parser.add_argument("-C", "--cpu", metavar="LIST", help="only samples of these CPUs: 0,2-3")
    parser.add_argument(
        "--time", default="", metavar="RANGES", help="only samples from START,STOP (seconds), or of a part: 10%%/2"
    )
    parser.add_argument(
        "--percentage",
        choices=("absolute", "relative"),
        default="absolute",
        help="percentages of all that was sampled, or of what a filter leaves [absolute]",
    )


def _list_of(kind: Callable[[str], Any]) -> Callable[[str], frozenset[Any]]:
    def parsed(text: str) -> frozenset[Any]:
        try:
            return frozenset(kind(part) for part in text.split(",") if part)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers") from None

    return parsed


def selection(arguments: argparse.Namespace) -> Selection:
    chosen = {name: getattr(arguments, f"chosen_{name}") for name, *_ in _OPTIONS}
    return Selection({name: values for name, values in chosen.items() if values})


def taken_samples(arguments: argparse.Namespace, file: PerfDataFile) -> Callable[[Sample], bool] | None:
    """What --cpu and --time take; None for all, which is faster. Raises UsageError and PerfemuError."""
    try:
        cpus = frozenset(cpu_numbers(arguments.cpu)) if arguments.cpu else None
        ranges = time_ranges(arguments.time, file.features.sample_time_ns) if arguments.time else ()
    except BadTime as problem:
        raise UsageError(f"report --time {arguments.time}: {problem}") from None
    if cpus is not None and any(not event.attr.sample_type & SampleType.CPU for event in file.events):
        raise PerfemuError(f"{file.name} does not say on which CPU a sample was taken: record with --sample-cpu")
    if cpus is None and not ranges:
        return None

    def takes(sample: Sample) -> bool:
        return (cpus is None or sample.cpu in cpus) and is_within(sample.time, ranges)

    return takes


def check_selection(chosen: Selection, profile: Profile, complain: Callable[[str], None]) -> None:
    """Say which values no sample has. PerfemuError: nothing is left."""
    if not chosen.chosen:
        return
    missing = list(chosen.missing(profile))
    if not any(chosen.shows(sample) for event in profile.events for sample in event.samples):
        raise PerfemuError(missing[0] if missing else "no sample is of all that was chosen together")
    for line in missing:
        complain(line)
