"""perfemu record: run a program and record its profile into perf.data, which perf itself can read."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from functools import partial
from typing import BinaryIO, NamedTuple

from emulator.linux.mm.vdso import vdso_image
from perfcore.events.settings import Settings
from perfemu.build_id_cache import keep_vdso
from perfemu.cli.guest import (
    add_board_options,
    add_counters_option,
    add_event_option,
    add_guest_linux_options,
    add_guest_options,
    add_id_options,
    add_region_options,
    announce_death,
    guest_of,
    refuse_board_options,
    within_region,
)
from perfemu.cli.options import (
    add_cgroup_option,
    add_delay_option,
    add_filter_option,
    add_level_options,
    changes_of,
    check_cgroup_options,
    checked,
    positive_int,
)
from perfemu.cli.record_options import (
    add_file_options,
    add_sample_options,
    add_trace_options,
    files_of,
    refuse_options,
    sample_options,
)
from perfemu.cli.streams import CLOSED, counting_teller, say_if_elsewhere, tell
from perfemu.errors import UsageError
from perfemu.events.attributes import DEFAULT_FREQUENCY_HZ, Sampling
from perfemu.events.branch_filters import ANY_BRANCH, CALL_STACK, branch_filter
from perfemu.interruption import die_of
from perfemu.moments import When
from perfemu.recorder import MakeExact, RecordedRun
from perfemu.recording import DEFAULT_EVENTS, Recorded, ViewsBeside, record
from perfemu.scope import Scope, scope_of_cpus
from perfemu.session import Session

EXAMPLES = """\
  perfemu record ./prog                              cycles, 4000 samples in each second of the guest's time
  perfemu record -e instructions -c 100000 -g ./prog every 100,000 instructions, with callchains
  perfemu record -e '{cycles,branches}' -o my.data ./prog
  perfemu record -o - ./prog | perf report -i -      through a pipe; the guest's output goes to stderr
  perfemu record --core skylake --all-units ./prog   and what PT, BTS and LBR see of it: perf.data.pt, ...
  perfemu record --board virt --memory 1G Image      a whole kernel, on each of its CPUs
  perfemu report                                     shows what was recorded; so does perf report
"""

_MAX_FREQUENCY_HZ = Settings().sample_rate_hz  # kernel.perf_event_max_sample_rate
_STACK_BYTES = 8192  # of each sample with --call-graph dwarf; perf's
_MOST_STACK_BYTES = 65528
_OF_TASKS = {  # field of the options -> its flag
    "exact": "--exact", "sample_stat": "-s", "no_inherit": "-i", "per_thread": "--per-thread", "delay": "-D",
    "control": "--control", "switch_output": "--switch-output", "overwrite": "--overwrite",
    "sample_switch_events": "--switch-events", "sample_all_cgroups": "--all-cgroups", "cgroup": "-G",
    "sample_namespaces": "--namespaces", "snapshot": "-S", "aux_sample": "--aux-sample",
}  # fmt: skip

_ONE_VIEW = {  # what --all-units cannot be with
    "board": "--board", "exact": "--exact", "no_samples": "-n", "delay": "-D", "control": "--control", "cgroup": "-G",
    "switch_output": "--switch-output", "timestamp_filename": "--timestamp-filename", "max_size": "--max-size",
    "overwrite": "--overwrite", "per_thread": "--per-thread", "branch_any": "-b", "branch_filter": "-j",
    "snapshot": "-S", "aux_sample": "--aux-sample",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_event_option(parser, default="cycles")
    parser.add_argument("-c", "--count", metavar="N", type=positive_int, help="sample every N events")
    parser.add_argument(
        "-F",
        "--freq",
        metavar="HZ",
        type=_frequency,
        help=f"samples per second of guest time, or max [{DEFAULT_FREQUENCY_HZ}]",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="no samples, but how often each instruction made each event: all of them, in the same file format",
    )
    parser.add_argument(
        "--all-units", action="store_true",
        help="record what each of the core's units sees of the run, too, and exact counts: FILE.pt, FILE.exact, ...",
    )  # fmt: skip
    parser.add_argument("-n", "--no-samples", action="store_true", help="no samples: with -s, counts alone")
    parser.add_argument(
        "-g", dest="callchains", action="store_true", help="record callchains: exact ones; of boards by frame pointers"
    )
    parser.add_argument(
        "--call-graph", metavar="exact | fp | dwarf[,BYTES] | lbr", type=_call_graph,
        help="callchains: of all calls that have not returned; by frame pointers; registers and so much of the "
        "stack, by which readers find callers: dwarf [8192]; or of the calls that branch records keep",
    )  # fmt: skip
    parser.add_argument(
        "-b",
        "--branch-any",
        action="store_true",
        help="record the taken branches before each sample: docs/units.md",
    )
    parser.add_argument(
        "-j", "--branch-filter", metavar="FILTER,...", type=checked(branch_filter), action="append",
        help="... some of them: any, any_call, any_ret, ind_call, ind_jmp, call, cond, stack, u, k; save_type, "
        "no_flags, no_cycles",
    )  # fmt: skip
    parser.add_argument("-i", "--no-inherit", action="store_true", help="do not sample child tasks")
    parser.add_argument("--per-thread", action="store_true", help="sample the program's first thread alone, on any CPU")
    parser.add_argument("-a", "--all-cpus", action="store_true", help="all that the machine's CPUs do, idle time too")
    parser.add_argument("-C", "--cpu", metavar="LIST", help="all that some CPUs do: 0,2-3")
    add_level_options(parser)
    add_filter_option(parser)
    add_cgroup_option(parser)
    add_delay_option(parser)
    add_region_options(parser)
    add_id_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing at the end")
    add_counters_option(parser)
    add_board_options(parser)
    add_guest_linux_options(parser)
    parser.add_argument(
        "--kallsyms",
        metavar="FILE",
        help="symbols of the board's kernel: System.map, kallsyms or ELF [the image's own, or those in its memory]",
    )
    add_sample_options(parser)
    add_trace_options(parser)
    add_file_options(parser)
    add_guest_options(parser)
    refuse_options(parser)


def _frequency(text: str) -> int:
    if text == "max":
        tell(f"info: Using a maximum frequency rate of {_MAX_FREQUENCY_HZ:,} Hz")  # as perf
        return _MAX_FREQUENCY_HZ
    return positive_int(text)


class _CallGraph(NamedTuple):
    exact: bool = False
    stack_bytes: int = 0  # of each sample; 0: callers are known, or found by frame pointers
    by_branches: bool = False  # in the stack of branch records


_CALL_GRAPHS = {"exact": _CallGraph(exact=True), "fp": _CallGraph(), "lbr": _CallGraph(by_branches=True)}


def _call_graph(text: str) -> _CallGraph:
    method, _, size = text.partition(",")
    if text in _CALL_GRAPHS:
        return _CALL_GRAPHS[text]
    there_is = "there is exact, fp (frame pointers), dwarf[,BYTES], lbr (branch records)"
    if method != "dwarf":
        raise argparse.ArgumentTypeError(f"'{text}': {there_is}")
    bytes_ = positive_int(size) if size else _STACK_BYTES
    if bytes_ > _MOST_STACK_BYTES:
        raise argparse.ArgumentTypeError(f"'{text}': a sample has at most {_MOST_STACK_BYTES} bytes of stack")
    return _CallGraph(stack_bytes=-(-bytes_ // 8) * 8)  # whole words


def _branches(options: argparse.Namespace, graph: _CallGraph) -> int:
    """attr.branch_sample_type; 0: no branches."""
    wanted = ANY_BRANCH if options.branch_any else 0
    for chosen in options.branch_filter or ():
        wanted |= chosen
    if graph.by_branches and wanted:
        raise UsageError("record: --call-graph lbr keeps calls where -b and -j keep other branches: one of them")
    if wanted and options.exact:
        raise UsageError("record --exact: has no samples, before which there could be branches (-b, -j)")
    return CALL_STACK if graph.by_branches else wanted


def sampling_of(options: argparse.Namespace) -> Sampling:
    """What the options say of samples. Raises UsageError."""
    if options.count is not None and options.freq is not None:
        raise UsageError("record: -c and -F exclude each other")
    if options.exact and (options.delay is not None or options.control is not None or options.overwrite):
        raise UsageError("record: --exact is of a whole run, or a region of it: not with -D, --control or --overwrite")
    if options.exact and options.cgroup:
        raise UsageError("record: --exact is of all control groups, not of those of -G")
    graph = options.call_graph or _CallGraph(exact=options.callchains and options.board is None)
    return Sampling(
        frequency_hz=None if options.count is not None else options.freq or DEFAULT_FREQUENCY_HZ,
        period=options.count,
        rate_asked=options.count is not None or options.freq is not None,
        callchains=options.callchains or options.call_graph is not None,
        exact_callchains=graph.exact,
        inherit=not options.no_inherit and not options.per_thread,
        clock=options.clockid,
        options=sample_options(options),
        nothing=options.no_samples,
        user_registers=options.user_regs,
        interrupt_registers=options.intr_regs,
        stack_bytes=graph.stack_bytes,
        backward=options.overwrite,
        branches=_branches(options, graph),
        per_thread=options.per_thread,
        aux_sample_bytes=options.aux_sample,
        snapshots=options.snapshot,
    )


def run(options: argparse.Namespace) -> int:
    sampling = sampling_of(options)
    output: str | BinaryIO = options.output
    if options.output == "-":
        if os.isatty(1):
            raise UsageError("record -o -: perf.data is not for a terminal; pipe it into a file or a reader")
        output = sys.stdout.buffer
    session, scope = (session_of_program if options.board is None else _of_board)(options)
    check_cgroup_options(options, scope, "record -G")

    if options.dry_run:
        session.parse(options.event or DEFAULT_EVENTS)
        return 0

    # only record needs a reader of ELF files, and only at its end
    from perfemu.symbols.finder import build_id_of

    make_exact = _exact() if options.exact else None
    recorded = record(
        session,
        options.event or DEFAULT_EVENTS,
        sampling,
        output,
        command_line=("perfemu", *options.command_line),
        build_id_of=None if options.no_buildid else build_id_of,
        scope=scope,
        progress=sys.stderr,
        make_exact=make_exact,
        changes=changes_of(options),
        when=When(options.delay, control=options.control),
        on_switch=None if options.quiet else counting_teller(),
        files=files_of(options),
        views_beside=_all_units(options, session) if options.all_units else None,
    )
    if not (options.no_buildid or options.no_buildid_cache) and isinstance(session, Session):
        image = vdso_image(session.isa)
        problem = keep_vdso(image, build_id_of(str(image)))
        if problem and not options.quiet:
            tell(f"perfemu: record: {problem}")
    if recorded.ending is not None:
        announce_death(session.guest.command[0], recorded.ending)
    for name, count in recorded.unattributed:
        tell(f"perfemu: record: {count} of {name} were of no instruction, and are not in the file")
    for name in recorded.never_counted:
        tell(f"perfemu: record: {name} found no counter, and has no samples (--counters)")
    if options.output != "-" and not recorded.files:
        say_if_elsewhere(options.output, recorded.path)
    if not options.quiet:
        _say_what_was_written(recorded, _shown(recorded, options.output))
        for each in recorded.beside:
            _say_size(each.path, each.size_bytes, each.samples)
    if recorded.interrupted_by is not None or recorded.ending is None:
        die_of(recorded.interrupted_by or 0)
    return recorded.ending.exit_status


def session_of_program(options: argparse.Namespace) -> tuple[Session, Scope]:
    """The run, which has yet to be built, and what of it is recorded. Raises UsageError."""
    refuse_board_options(options)
    if options.kallsyms is not None:
        raise UsageError("record --kallsyms: is of a board's kernel; a program's has no code")
    guest = guest_of(options)
    if options.output == "-":
        if guest.stdout == CLOSED:
            raise UsageError("record -o -: stdout is closed")
        guest = replace(guest, stdout=guest.stderr)  # as perf does: the pipe is for records alone
    return Session(guest), within_region(scope_of_cpus(options.all_cpus, options.cpu, guest.cpus), options)


def _of_board(options: argparse.Namespace) -> tuple[RecordedRun, Scope]:
    """All that its CPUs do: of tasks nothing is known."""
    if options.call_graph is not None and options.call_graph.exact:
        raise UsageError("record --call-graph exact: is of programs; a board's callchains are by frame pointers (fp)")
    for name, flag in _OF_TASKS.items():
        if getattr(options, name):
            raise UsageError(f"record {flag}: is of programs; a board's CPUs are recorded as a whole")

    # only boards need it
    from perfemu.cli.board import session_of

    session = session_of(options, output=sys.stderr.buffer if options.output == "-" else None)
    if options.kallsyms is not None:
        session.use_kallsyms(options.kallsyms)
    return session, within_region(scope_of_cpus(options.cpu is None, options.cpu, session.guest.cpus), options)


def _shown(recorded: Recorded, output: str) -> str:
    if recorded.files:
        return f"{output}.<timestamp>"
    return output if output == "-" else recorded.path


def _all_units(options: argparse.Namespace, session: RecordedRun) -> ViewsBeside:
    for name, flag in _ONE_VIEW.items():
        if getattr(options, name):
            raise UsageError(f"record --all-units: is of a program's whole run, by each unit: not with {flag}")
    if options.output == "-":
        raise UsageError("record --all-units: a pipe is one file: name them by -o FILE")
    assert isinstance(session, Session), "it is of a program"

    # only who wants all views needs it
    from perfemu.all_units import unit_views

    return partial(unit_views, session, session.pmu_model)


def _exact() -> MakeExact:
    from perfemu.attributing import ExactSamples

    return ExactSamples


def _say_what_was_written(recorded: Recorded, name: str) -> None:
    """As perf. Of several files, each."""
    if recorded.full:
        tell(f"[ perfemu record: size limit reached ({recorded.size_bytes >> 10} KB), the program was stopped ]")
    tell(f"[ perfemu record: Woken up {recorded.wakeups} times to write data ]")
    if recorded.dropped_files:
        tell(f"[ perfemu record: {recorded.dropped_files} earlier files were not kept ]")
    for path in recorded.files:
        tell(f"[ perfemu record: Dump {path} ]")
    _say_size(name, recorded.size_bytes, recorded.samples)


def _say_size(name: str, size_bytes: int, samples: int) -> None:
    counted = f" ({samples} samples)" if samples else ""
    tell(f"[ perfemu record: Captured and wrote {size_bytes / 1024 / 1024:.3f} MB {name}{counted} ]")
