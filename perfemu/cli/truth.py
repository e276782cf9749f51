"""perfemu truth: what a sampled profile says, held against the exact counts of the same run."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.reader import PerfDataFile
from perfemu.all_units import unit_views
from perfemu.cli import record
from perfemu.cli.options import CommandParser, changes_of, check_cgroup_options, positive_int
from perfemu.cli.streams import say_if_elsewhere, tell
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.attributes import Sampling, is_exact
from perfemu.events.spec import EventSpec
from perfemu.output_file import open_output
from perfemu.recording import DEFAULT_EVENTS, planned
from perfemu.reporting import DEFAULT_FILE, open_profile
from perfemu.scope import Scope
from perfemu.session import Session
from perfemu.truth.held import Repetition, Truth, truth_of
from perfemu.truth.printing import document, text

EXAMPLES = """\
  perfemu record -e cycles -c 10007 ./prog
  perfemu truth                             how far that profile is from what was so, by function
  perfemu truth --plot truth.svg            and as a picture
  perfemu record --core skylake --all-units ./prog; perfemu truth perf.data perf.data.pebs
                                            the same run as several units saw it
"""

_NO_TRUTH = {  # field of record's options -> its flag: what exact counts cannot be told for
    "board": "--board", "delay": "-D", "control": "--control", "overwrite": "--overwrite", "cgroup": "-G",
    "per_thread": "--per-thread", "exact": "--exact", "no_samples": "-n",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"of perfemu record [{DEFAULT_FILE}]")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the tables go [stdout, behind the program's own]")
    parser.add_argument("--json", action="store_true", help="one document with every row, instead of tables")
    parser.add_argument("--limit", metavar="N", type=positive_int, default=20, help="rows of a table, at most [20]")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the functions' true and sampled shares, too: .svg, .png or .pdf"
    )
    parser.add_argument("--symfs", metavar="DIR", default="", help="look for the recorded files below DIR")
    parser.add_argument(
        "-f", "--force", action="store_true", help="run again what may write outside of the current directory"
    )


def run(options: argparse.Namespace) -> int:
    """The exit status. The program runs once more, with our standard streams as its own."""
    if options.plot is not None:
        # only who wants a plot needs to have it
        from perfemu.truth.plot import check_format

        check_format(options.plot)
    truths = [_truth(path, options) for path in options.files or [DEFAULT_FILE]]
    printed = document(truths) if options.json else "\n".join(text(truth, options.limit) for truth in truths)
    if options.output is None:
        sys.stdout.write(printed)
    else:
        _write(options.output, printed.encode("utf-8", "surrogateescape"))
    if options.plot is not None:
        from perfemu.truth.plot import plot

        _write(options.plot, plot(truths, options.plot, options.limit))
    return 0 if any(truth.held for truth in truths) else 1


def _truth(path: str, options: argparse.Namespace) -> Truth:
    try:
        with open_profile(path) as file:
            return _repeated(file, options)
    except PerfDataError as problem:
        raise PerfemuError(str(problem)) from None


def _repeated(file: PerfDataFile, options: argparse.Namespace) -> Truth:
    if file.is_pipe:
        raise UsageError(f"truth: {file.name} is a pipe's stream, whose command is not known before its end")
    made = _options_of(file, options)
    session, scope = record.session_of_program(made)
    check_cgroup_options(made, scope, "record -G")
    core = f"perfemu core {session.title}"
    if file.features.cpu_description != core:
        raise PerfemuError(f"{file.name} was recorded on {file.features.cpu_description}, and its command has {core}")
    specs, sampling = _planned(file, made, session, scope)
    repetition = Repetition(session, specs, sampling, scope, _complain)
    return truth_of(file, options.symfs, repetition, session.title, _complain)


def _planned(
    file: PerfDataFile, made: argparse.Namespace, session: Session, scope: Scope
) -> tuple[Sequence[EventSpec], Sampling]:
    """Which of the recordings that the file's command makes it is. PerfemuError if it is none of them."""
    specs, sampling = planned(session, made.event or DEFAULT_EVENTS, record.sampling_of(made), scope, changes_of(made))
    made_of: list[tuple[Sequence[EventSpec], Sampling]] = [(specs, sampling)]
    if made.all_units:
        views = unit_views(session, session.pmu_model, specs, sampling)
        made_of += [(view.specs, view.sampling) for view in views if view.make_exact is None]
    if any(is_exact(event.attr) for event in file.events):
        raise PerfemuError(f"{file.name} has exact counts: there is nothing to hold against them but themselves")
    names = [event.name for event in file.events]
    has_branches = bool(file.events and file.events[0].attr.branch_sample_type)
    for those, how in made_of:
        if [spec.name for spec in those] == names[: len(those)] and bool(how.branches) == has_branches:
            return those, how
    raise PerfemuError(f"{file.name}: its events are not those that its command samples: {', '.join(names)}")


def _options_of(file: PerfDataFile, options: argparse.Namespace) -> argparse.Namespace:
    """Of record, as the file's command line has them."""
    command = file.features.command_line
    if command[:2] != ("perfemu", "record"):
        made_by = shlex.join(command) if command else "something that did not say its name"
        raise PerfemuError(f"{file.name} was made by {made_by}: truth runs again what perfemu record has run")
    parser = CommandParser("record", "", "", "")
    record.add_arguments(parser)
    made = parser.parse_args(command[2:])
    made.command_line, made.descriptors = command[1:], options.descriptors
    for name, flag in _NO_TRUTH.items():
        if getattr(made, name):
            raise UsageError(f"truth: {file.name} was recorded with {flag}, of which there are no exact counts")
    writes = [f"--rw {path}" for path in made.writable_paths or ()]
    writes += [f"--bind {bind}" for bind in made.binds or () if bind.endswith(":rw")]
    if writes and not options.force:
        raise UsageError(f"truth: the run of {file.name} may write elsewhere ({', '.join(writes)}): -f runs it again")
    return made


def _write(path: str, contents: bytes) -> None:
    output = open_output(path)
    try:
        output.file.write(contents)
        written = output.publish()
    except OSError as error:
        output.discard()
        raise PerfemuError(f"cannot write {path}: {error.strerror}") from None
    say_if_elsewhere(path, written)


def _complain(line: str) -> None:
    tell(f"perfemu: truth: {line}")
