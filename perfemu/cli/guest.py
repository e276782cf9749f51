"""Options of the commands that run a guest: the machine, what the guest sees of the host, and the program."""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from emulator.clock import REALTIME_AT_BOOT_NS
from emulator.linux.configuration import MOST_OUTPUT_BYTES, MOST_TASKS, LinuxConfig
from emulator.linux.fast_forward import Until
from emulator.linux.process.program import ProgramError, identify
from emulator.machine import MEMORY_BYTES, MOST_CPUS, QUANTUM_CYCLES
from perfemu.cli.options import positive_int
from perfemu.cli.streams import tell
from perfemu.cores import core, default_cores
from perfemu.ending import Ending
from perfemu.environment import guest_environment, search_path
from perfemu.errors import PerfemuError, UsageError
from perfemu.locate import locate
from perfemu.namespace import make_namespace
from perfemu.quantities import MILLISECOND_NS, SECOND_NS, memory_bytes, size_bytes, time_ns, user_ids
from perfemu.scope import Scope
from perfemu.session import GuestSettings


def add_guest_options(
    parser: argparse.ArgumentParser, bare_time_ns: int = SECOND_NS, *, takes_program: bool = True
) -> None:
    """What run, stat and record have in common: the machine, and what the guest sees of the host."""
    group = parser.add_argument_group("machine and guest")
    add_core_options(group)
    group.add_argument(
        "--untimed",
        action="store_true",
        help="each instruction takes one cycle: the core's CPUID, HWCAP and PMU, as fast as on ideal",
    )
    group.add_argument(
        "--fast-forward",
        metavar="N | region",
        type=_instructions,
        default=0,
        help="execute the first N instructions, or all before --from-symbol's region, without models and so faster: "
        "cycles and misses count from there",
    )
    group.add_argument(
        "--warmup",
        metavar="N | region",
        type=_instructions,
        default=0,
        help="... and the next N, or all before the region, to fill caches and predictors: they count from there",
    )
    group.add_argument("--sysroot", metavar="DIR", help="look paths up below DIR first, then as they are")
    group.add_argument(
        "--bind",
        metavar="HOST[:GUEST][:rw]",
        action="append",
        default=[],
        help="show a file or directory of the host at the guest's path, to read; with :rw to write, too",
    )
    group.add_argument(
        "--isolate", action="store_true", help="show nothing of the host but what is bound; so does a bind at /"
    )
    group.add_argument("--rw", metavar="PATH", action="append", default=[], help="let the guest write below PATH, too")
    group.add_argument(
        "--env", metavar="NAME[=VALUE]", action="append", default=[], help="add a variable; without VALUE, yours"
    )
    group.add_argument("--inherit-env", action="store_true", help="give the guest all of your environment")
    add_machine_options(parser, bare_time_ns)
    if takes_program:
        parser.add_argument("program", nargs=argparse.REMAINDER, metavar="[--] PROGRAM [ARGS]", help="what to run")


def add_machine_options(parser: argparse.ArgumentParser, bare_time_ns: int) -> None:
    group = parser.add_argument_group("CPUs and limits")
    group.add_argument(
        "--cpus",
        metavar="N",
        type=_cpus,
        default=1,
        help=f"simulated CPUs, each with its core and PMU: 1 to {MOST_CPUS} [1]",
    )
    group.add_argument(
        "--quantum",
        metavar="CYCLES",
        type=positive_int,
        default=QUANTUM_CYCLES,
        help=f"by which busy CPUs may be apart: less is finer, and slower [{QUANTUM_CYCLES}]",
    )
    group.add_argument(
        "--seed",
        metavar="N",
        type=_seed,
        help="schedule otherwise: another N, another interleaving, the same each time",
    )
    group.add_argument(
        "--date",
        metavar="WHEN",
        type=_date,
        default=REALTIME_AT_BOOT_NS,
        help="of the guest's clock at its start, UTC: 2026-11-20T09:30, @SECONDS, now [2023-11-14T22:13:20]",
    )
    group.add_argument(
        "--no-vdso", action="store_true", help="each question for the time is a system call, as where Linux has no vDSO"
    )
    unit = "ms" if bare_time_ns == MILLISECOND_NS else "s"
    group.add_argument(
        "--timeout",
        metavar="TIME",
        type=_quantity(lambda text: time_ns(text, bare_time_ns)),
        help=f"stop after so much simulated time: 2s, 100ms, or a number of {unit}",
    )
    group.add_argument("--max-instructions", metavar="N", type=positive_int, help="stop after N instructions")
    group.add_argument(
        "--max-tasks",
        metavar="N",
        type=positive_int,
        default=MOST_TASKS,
        help=f"processes and threads at once [{MOST_TASKS}]",
    )
    group.add_argument(
        "--max-output",
        metavar="SIZE",
        type=_quantity(size_bytes),
        default=MOST_OUTPUT_BYTES,
        help=f"that the guest may write to files and streams of the host [{MOST_OUTPUT_BYTES >> 30}G]",
    )
    group.add_argument(
        "--user",
        metavar="UID[:GID]",
        type=_quantity(user_ids),
        default=(0, 0),
        help="whose the program is, and your files where it may write [0:0, root]",
    )
    group.add_argument(
        "--memory",
        metavar="SIZE",
        type=_quantity(memory_bytes),
        default=MEMORY_BYTES,
        help="of the machine: 512M, 8G [4G]",
    )


def _instructions(text: str) -> int | Until:
    return Until.REGION if text == Until.REGION.value else positive_int(text, least=0)


def _cpus(text: str) -> int:
    number = positive_int(text)
    if number > MOST_CPUS:
        raise argparse.ArgumentTypeError(f"{number} is more than {MOST_CPUS}")
    return number


def _seed(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None


def _date(text: str) -> int:
    """Nanoseconds since 1970, UTC."""
    if text == "now":
        return time.time_ns()
    try:
        if text.startswith("@"):
            since_1970 = int(text[1:])
        else:
            when = datetime.fromisoformat(text)
            since_1970 = int((when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{text}' is no date: 2026-11-20, 2026-11-20T09:30, @SECONDS, now") from None
    if not 0 <= since_1970 < 1 << 33:
        raise argparse.ArgumentTypeError(f"{text} is not within 1970..2242")
    return since_1970 * 1_000_000_000


Quantity = TypeVar("Quantity")


def _quantity(parse: Callable[[str], Quantity]) -> Callable[[str], Quantity]:
    """An option's type: what `parse` says of a wrong text reaches the user."""

    def parsed(text: str) -> Quantity:
        try:
            return parse(text)
        except ValueError as problem:
            raise argparse.ArgumentTypeError(str(problem)) from None

    return parsed


def add_core_options(parser: argparse._ActionsContainer, meaning: str = "core to run on") -> None:
    parser.add_argument(
        "--core",
        metavar="NAME | FILE",
        help=f"{meaning}: one of 'perfemu list cores', or a core file, see docs/cores.md [{default_cores()}]",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change the core: l1d.size=64KiB, pipeline.dispatch_width=6, l2.prefetchers= (none), without=llc",
    )


def add_counters_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--counters",
        metavar="N",
        type=positive_int,
        help="measure with N event counters, as a real PMU has; what does not fit is <not counted>",
    )


def add_region_options(parser: argparse._ActionsContainer) -> None:
    """Which part of the program counts."""
    parser.add_argument(
        "--from-symbol",
        metavar="[MODULE:]NAME",
        help="count only from each entry of a function to its return, in each thread; MODULE: in that file",
    )
    parser.add_argument(
        "--to-symbol", metavar="[MODULE:]NAME", help="... or to the next entry of this function, instead of the return"
    )


def within_region(scope: Scope, options: argparse.Namespace) -> Scope:
    """What `add_region_options` leave of it."""
    if options.from_symbol is None and options.to_symbol is None:
        return scope

    # only regions need a reader of symbols before the end
    from perfemu.regions import within

    return within(scope, options.from_symbol, options.to_symbol)


def guest_settings(options: argparse.Namespace) -> GuestSettings:
    """The options of `add_guest_options` as the session wants them."""
    program: list[str] = options.program
    if program[:1] == ["--"]:
        program = program[1:]
    if not program:
        raise UsageError("no program to run: name it after the options")
    if options.core is not None:
        core(options.core, options.set)
    if options.sysroot is not None and not os.path.isdir(options.sysroot):
        raise UsageError(f"--sysroot {options.sysroot}: no such directory")
    for path in options.rw:
        if not os.path.exists(path):
            raise UsageError(f"--rw {path}: no such file or directory")
    sysroot = None if options.sysroot is None else os.path.abspath(options.sysroot)
    space = make_namespace(sysroot, options.bind, options.isolate, options.rw)
    stdin, stdout, stderr = options.descriptors
    settings = GuestSettings(
        argv=tuple(program),
        core=options.core,
        core_changes=tuple(options.set),
        linux=LinuxConfig(
            sysroot=space.sysroot,
            binds=space.binds,
            isolated=space.isolated,
            writable_paths=tuple(os.path.abspath(path) for path in options.rw),
            most_tasks=options.max_tasks,
            most_output_bytes=options.max_output,
            user=options.user,
            vdso=not options.no_vdso,
        ),
        environment=guest_environment(options.env, os.environ, options.inherit_env),
        counters=getattr(options, "counters", None),
        cwd=space.guest_directory(_current_directory()),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cpus=options.cpus,
        quantum=options.quantum,
        schedule_seed=options.seed,
        memory_bytes=options.memory,
        most_instructions=options.max_instructions,
        most_ns=options.timeout,
        realtime_at_boot_ns=options.date,
        fast_forward=options.fast_forward,
        warmup=options.warmup,
        untimed=options.untimed,
    )
    _name_the_hosts_program(settings)
    return settings


def _name_the_hosts_program(settings: GuestSettings) -> None:
    """Warn of a program that was meant to be the sysroot's, and is the host's; yours, below the current directory, is
    not meant, nor one that is named where it lies in the sysroot."""
    if settings.linux.sysroot is None:
        return
    try:
        found = locate(settings.argv[0], search_path(settings.environment), settings.space, settings.cwd)
        isa = identify(found.host_path, lambda path: settings.space.on_host(path) or path)
    except (PerfemuError, ProgramError):
        return  # the run says so
    meant = (directory for directory in (settings.cwd, settings.linux.sysroot) if directory != "/")
    if found.not_below_sysroot and isa == platform.machine() and not any(map(found.is_below, meant)):
        tell(f"perfemu: {found.guest_path} is the host's ({isa}): --sysroot {settings.linux.sysroot} does not have it")


def _current_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise PerfemuError("the current directory has been removed: cd to one that exists") from None


def add_event_option(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "-e",
        "--event",
        metavar="EVENT",
        action="append",
        default=[],
        help=f"events: perf's names, rNNN, vendor names, pmu/term=value/, {{groups}}, modifiers after ':' [{default}]",
    )


def announce_death(program: str, ending: Ending) -> None:
    """What a shell says of a program that a signal killed."""
    if ending.message is not None:
        tell(f"{program}: {ending.message}")
