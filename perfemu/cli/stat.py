"""perfemu stat: run a program and count events, printed on stderr as perf stat prints them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TextIO

from perfemu.cli.guest import (
    add_board_options,
    add_counters_option,
    add_event_option,
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
    add_refused_options,
    changes_of,
    check_cgroup_options,
    checked,
    positive_int,
)
from perfemu.cli.stat_output import (
    add_output_options,
    check_output_options,
    function_report,
    interval_printer,
    output,
    report,
)
from perfemu.cli.streams import counting_teller, tell
from perfemu.counters import MeasuredRun
from perfemu.counting import (
    DETAILED_EVENTS,
    Attach,
    ChooseEvents,
    Counted,
    Timing,
    count,
    count_runs,
    default_events,
    top_down_events,
)
from perfemu.errors import UsageError
from perfemu.interruption import die_of
from perfemu.moments import When
from perfemu.progress import PATIENCE_S
from perfemu.scope import Scope, scope_of_stat
from perfemu.untimed import needs_no_timing

if TYPE_CHECKING:
    from perfemu.vendor_metrics.plan import MetricPlan

EXAMPLES = """\
  perfemu stat ./prog                          the default events
  perfemu stat -e instructions,branches ./prog
  perfemu stat -e '{cycles,instructions}:u' -r 3 ./prog
  perfemu stat -e r21,inst_retired --sysroot /usr/aarch64-linux-gnu -- ./prog --prog-option
  perfemu stat -x, -o counts.csv ./prog
  perfemu stat --cpus 4 -a -A ./prog           what each CPU counted
  perfemu stat --per-thread ./prog             what each thread counted
  perfemu stat --from-symbol main ./prog       main and all that it calls, without the program's start
  perfemu stat --topdown --td-level 2 ./prog   what kept the pipeline from retiring more
  perfemu stat --core zen5 -M PipelineL1 ./prog   the vendor's metrics by name
"""

# Options of perf's that would silently mean something else here.
_NOT_YET = {
    "-T, --transaction": "transactions",
    "-b, --bpf-prog": "BPF programs",
    "-S, --sync": "a sync before the run",
    "-v, --verbose": "raw counts and their times",
    "--guest-linux": "counts of a board's processes: the guest's own perf stat has them, record --guest-linux samples",
    "--per-node": "counts per NUMA node: there is none",
    "--per-cache": "counts per cache; there is --per-core and --per-socket",
    "--per-cluster": "counts per cluster; there is --per-core and --per-socket",
    "--iostat": "traffic of PCIe ports",
    "--smi-cost": "system management interrupts: none is modelled",
    "--cputype": "PMUs of different cores: all are equal",
    "--percore-show-thread": "the threads of a core: each has one",
    "--record-tpebs": "Intel's timed PEBS",
    "--pre": "a command before each run",
    "--post": "a command after each run",
    "--table": "a table of the runs",
}


_TRUE_ANYWAY = {  # what perf does with these, is done in any case
    "--scale": "scale what was multiplexed: always",
    "--no-merge": "a line for each PMU that has the event: always",
    "--hybrid-merge": "one line for the PMUs of different cores: all are equal",
    "--metric-no-threshold": "no thresholds of metrics: never",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_event_option(parser, default="as perf stat's")
    parser.add_argument(
        "-r", "--repeat", metavar="N", type=positive_int, default=1, help="run N times: mean, deviation"
    )
    parser.add_argument(
        "-d", "--detailed", action="count", default=0, help="more default events: L1 and LLC; -dd TLBs; -ddd prefetches"
    )
    parser.add_argument(
        "--topdown", action="store_true", help="where the slots of the pipeline go, instead of the default events"
    )
    parser.add_argument("--td-level", metavar="N", type=int, choices=(1, 2), help="how finely: 1 or 2 [1]")
    parser.add_argument(
        "--functions",
        action="store_true",
        help="exact counts of functions, too: the heaviest, or with -j all of them, for diff",
    )
    parser.add_argument(
        "-M",
        "--metrics",
        metavar="NAME",
        action="append",
        default=[],
        help="the vendor's metrics, or groups of them, by comma (perfemu list metric), instead of the default events",
    )
    parser.add_argument("--metric-no-group", action="store_true", help="do not group the events of a metric")
    parser.add_argument("--metric-no-merge", action="store_true", help="a group of events for each metric")
    parser.add_argument("-n", "--null", action="store_true", help="no events: only the times")
    parser.add_argument("-i", "--no-inherit", action="store_true", help="do not count child tasks")
    parser.add_argument("-a", "--all-cpus", action="store_true", help="count all that the machine's CPUs do")
    parser.add_argument("-C", "--cpu", metavar="LIST", help="count all that some CPUs do: 0,2-3")
    parser.add_argument("-A", "--no-aggr", action="store_true", help="with -a or -C: a line for each CPU")
    parser.add_argument("--per-socket", action="store_true", help="with -a or -C: how many CPUs count, and their sum")
    parser.add_argument("--per-die", action="store_true", help="the same: there is one die")
    parser.add_argument("--per-core", action="store_true", help="with -a or -C: lines for each core, which is a CPU")
    add_region_options(parser)
    add_id_options(parser)
    add_delay_option(parser)
    add_level_options(parser)
    add_filter_option(parser)
    add_cgroup_option(parser)
    parser.add_argument(
        "--for-each-cgroup", metavar="NAME,...", type=checked(_each_cgroup), default=(),
        help="with -a or -C: all events once in each of these control groups of the guest's",
    )  # fmt: skip
    parser.add_argument("--per-thread", action="store_true", help="a line for each thread, of all processes")
    add_output_options(parser)
    add_counters_option(parser)
    add_board_options(parser)
    add_guest_options(parser, "ms")  # as perf's
    for names, promise in _TRUE_ANYWAY.items():
        parser.add_argument(names, action="store_true", help=promise)
    add_refused_options(parser, _NOT_YET)


_PATTERN = frozenset("{}[]()|*+?^$")  # by which tools/perf knows one


def _each_cgroup(text: str) -> tuple[str, ...]:
    """As perf, without a slash in front; the root is one."""
    if _PATTERN & {*text}:
        raise ValueError(f"'{text}': patterns of names are not modelled: the groups appear while the program runs")
    return tuple(name.lstrip("/") or "/" for name in text.split(","))


def run(options: argparse.Namespace) -> int:
    check_output_options(options)
    if options.cgroup and options.for_each_cgroup:
        raise UsageError("stat: -G and --for-each-cgroup exclude each other")
    counting = _of_program if options.board is None else _of_board
    with output(options) as stream:
        counted = counting(options, _timing(options, stream))
        stream.write(report(counted.counts, options))
        if counted.measured is not None:
            stream.write(function_report(counted.measured, options))
    if counted.interrupted_by is not None or counted.ending is None:
        die_of(counted.interrupted_by or 0)
    return counted.ending.exit_status


def _timing(options: argparse.Namespace, stream: TextIO) -> Timing:
    """When is counted, and who hears of it."""
    return {
        "when": When(options.delay, options.interval_print, options.interval_count, options.control),
        "on_interval": interval_printer(options, stream),
        "on_switch": counting_teller(),
    }


def _of_program(options: argparse.Namespace, timing: Timing) -> Counted:
    refuse_board_options(options)
    guest = guest_of(options)
    scope = within_region(
        scope_of_stat(
            options.all_cpus,
            options.cpu,
            options.no_aggr,
            options.per_thread,
            guest.cpus,
            **_aggregation(options),
        ),
        options,
    )
    check_cgroup_options(options, scope, "stat --for-each-cgroup" if options.for_each_cgroup else "stat -G")
    hint = _Hint(_events(options, scope))
    counted = count(
        guest,
        hint.events,
        runs=options.repeat,
        inherit=not options.no_inherit,
        scope=scope,
        progress=sys.stderr if options.interval_print is None else None,
        after_run=lambda ending: announce_death(guest.command[0], ending),
        attach=_functions(options),
        metrics=_metrics(options),
        changes=changes_of(options),
        **timing,
    )
    hint.say()
    return counted


def _of_board(options: argparse.Namespace, timing: Timing) -> Counted:
    """All that its CPUs do: of tasks nothing is known."""
    if options.functions or options.per_thread or options.cgroup or options.for_each_cgroup:
        asked = "--functions, --per-thread, -G, --for-each-cgroup"
        raise UsageError(f"stat {asked}: are of programs; a board's CPUs are counted as a whole")

    # only boards need it
    from perfemu.cli.board import session_of

    all_cpus = options.cpu is None
    scope = within_region(
        scope_of_stat(all_cpus, options.cpu, options.no_aggr, False, options.cpus, **_aggregation(options)),
        options,
    )
    name = " ".join(options.program)
    return count_runs(
        partial(session_of, options),
        name,
        _events(options, scope),
        runs=options.repeat,
        scope=scope,
        metrics=_metrics(options),
        changes=changes_of(options),
        **timing,
    )


def _aggregation(options: argparse.Namespace) -> dict[str, bool]:
    return {name: getattr(options, name) for name in ("per_socket", "per_die", "per_core")}


class _Hint:
    """Says once, on a terminal, where the user has waited for a model of time that the events did not need."""

    def __init__(self, events: Sequence[str] | ChooseEvents) -> None:
        self._chosen = events
        self._in_vain = False
        self._start = time.monotonic()

    def events(self, session: MeasuredRun) -> Sequence[str]:
        """Those that are counted."""
        chosen = list(self._chosen(session) if callable(self._chosen) else self._chosen)
        if sys.stderr.isatty():
            self._in_vain = bool(chosen) and needs_no_timing(session, session.parse(chosen))
        return chosen

    def say(self) -> None:
        if self._in_vain and time.monotonic() - self._start > PATIENCE_S:
            tell("perfemu: stat: none of these events depends on time: --untimed counts them in about a tenth of it")


def _events(options: argparse.Namespace, scope: Scope) -> Sequence[str] | ChooseEvents:
    if options.null:
        for given, option in ((options.event, "-e"), (options.topdown, "--topdown"), (options.metrics, "-M")):
            if given:
                raise UsageError(f"stat: -n and {option} exclude each other")
        return ()
    if options.td_level is not None and not options.topdown:
        raise UsageError("stat --td-level: wants --topdown")
    detailed = [event for level in DETAILED_EVENTS[: options.detailed] for event in level]

    def chosen(session: MeasuredRun) -> list[str]:
        asked = options.event or []
        if options.topdown:
            return [*asked, *top_down_events(session, options.td_level or 1), *detailed]
        return [*(asked or ([] if options.metrics else default_events(session, scope))), *detailed]

    return chosen


def _metrics(options: argparse.Namespace) -> Callable[[MeasuredRun], MetricPlan] | None:
    names = [name for names in options.metrics for name in names.split(",")]
    if not names:
        return None

    # only this needs the vendors' tables
    from perfemu.vendor_metrics.plan import counting_on, plan_metrics
    from perfemu.vendor_metrics.tables import literals_of, metrics_of

    def planned(session: MeasuredRun) -> MetricPlan:
        model = session.pmu_model
        plan = plan_metrics(
            names,
            metrics_of(model),
            literals_of(model),
            counting_on(session.parse),
            grouped=not options.metric_no_group,
            merged=not options.metric_no_merge,
        )
        if plan.left_out:
            tell(f"perfemu: stat -M: left out, for events that this core cannot count: {', '.join(plan.left_out)}")
        return plan

    return planned


def _functions(options: argparse.Namespace) -> Attach | None:
    if not options.functions:
        return None
    if options.field_separator is not None:
        raise UsageError("stat --functions: there is text and -j, not -x")
    if options.cgroup or options.for_each_cgroup:
        raise UsageError("stat --functions: is of all control groups, not of those of -G or --for-each-cgroup")

    # only this needs a reader of ELF files
    from perfemu.functions import FunctionCounter

    complain = partial(_complain, seen=set())
    return partial(FunctionCounter, inherit=not options.no_inherit, complain=complain)


def _complain(message: str, seen: set[str]) -> None:
    if message not in seen:
        seen.add(message)
        tell(f"perfemu: stat: {message}")
