"""perfemu html: a recording, or two of them compared, as one page for a browser."""

from __future__ import annotations

import argparse
import os
import sys

from perfcore.perfdata.errors import PerfDataError
from perfemu.cli.streams import tell
from perfemu.errors import PerfemuError, UsageError
from perfemu.html.document import document
from perfemu.html.naming import same_events
from perfemu.html.page import page
from perfemu.profile.profile import Profile
from perfemu.reporting import DEFAULT_FILE, open_profile, read_profile

DEFAULT_OUTPUT = "perf.html"
EXAMPLES = """\
  perfemu html perf.data -o page.html            flame graph, functions and source, in one file
  perfemu html new.data old.data -o page.html    what has grown is red, what has shrunk blue
  perfemu record --exact -e instructions,cycles -o p.data ./prog && perfemu html p.data
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, and where to look for what they name."""
    parser.add_argument(
        "file", nargs="?", default=DEFAULT_FILE, metavar="FILE", help=f"perf.data of perfemu or perf [{DEFAULT_FILE}]"
    )
    parser.add_argument("old", nargs="?", metavar="OLD", help="an earlier one, to compare FILE with")
    parser.add_argument(
        "-o", "--output", default=DEFAULT_OUTPUT, metavar="PAGE", help=f"page to write, - is stdout [{DEFAULT_OUTPUT}]"
    )
    parser.add_argument("--symfs", default="", metavar="DIR", help="look for recorded and source files below DIR")
    parser.add_argument("--old-symfs", metavar="DIR", help="the same for OLD's recorded files [that of --symfs]")
    parser.add_argument("--no-source", action="store_true", help="put no source into the page")
    parser.add_argument("--title", default="", metavar="TEXT", help="the page's title [FILE]")


def run(arguments: argparse.Namespace) -> int:
    """Write the page; the exit status."""
    for name in (arguments.file, arguments.old):
        if name is not None and _is_same_file(name, arguments.output):
            raise UsageError(f"html -o {arguments.output}: that is the recording itself")
    new = _read(arguments.file, arguments.symfs)
    old = None
    if arguments.old is not None:
        old = _read(arguments.old, arguments.symfs if arguments.old_symfs is None else arguments.old_symfs)
        _compare(new, old)
    contents = page(document(new, old, arguments.symfs.rstrip("/"), not arguments.no_source), arguments.title)
    if arguments.output == "-":
        sys.stdout.buffer.write(contents)
        return 0
    # only this needs what knows of the host's files, and with it the machine
    from perfemu.output_file import write_file

    print(write_file(os.fspath(arguments.output), contents))
    return 0


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.isfile(other) and os.path.samefile(one, other)
    except OSError:
        return False


def _read(name: str, symfs: str) -> Profile:
    complaints: list[str] = []
    try:
        with open_profile(name) as file:
            profile = read_profile(file, symfs, complaints.append)
    except PerfDataError as error:
        raise PerfemuError(str(error)) from None
    if not any(event.sample_count for event in profile.events):
        raise PerfemuError(f"{profile.path} has no samples, so there is nothing to show")
    for complaint in complaints:
        tell(f"perfemu: {complaint}")
    return profile


def _compare(new: Profile, old: Profile) -> None:
    """Say what cannot be compared. Raises PerfemuError if that is all."""
    pairs = same_events(new.events, old.events)
    missing = [event.name for event, other in pairs if other is None]
    if len(missing) == len(pairs):
        there = ", ".join(event.name for event in old.events if event.sample_count)
        raise PerfemuError(f"{old.path} has none of {new.path}'s events ({', '.join(missing)}), but {there}")
    if missing:
        tell(f"perfemu: {old.path} has no {', '.join(missing)}: shown without a comparison")
    isas = new.features.architecture, old.features.architecture
    processors = new.features.cpu_description, old.features.cpu_description
    if all(isas) and isas[0] != isas[1]:
        tell(f"perfemu: {new.path} is of {isas[0]} and {old.path} of {isas[1]}: functions are compared by their names")
    elif all(processors) and processors[0] != processors[1]:
        tell(f"perfemu: {new.path} is of {processors[0]} and {old.path} of {processors[1]}")
