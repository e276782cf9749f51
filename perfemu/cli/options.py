"""CommandParser: argparse that reports a wrong option in one line; and the types of values that options take.

Long options may be abbreviated, as perf's.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from perfemu.cli.perf_options import NEWER_OPTIONS, PERF_OPTIONS
from perfemu.errors import UsageError

if TYPE_CHECKING:
    from perfemu.control import Control
    from perfemu.events.changes import Changes
    from perfemu.moments import Span
    from perfemu.scope import Scope

T = TypeVar("T")


class AttachedValue(argparse.Action):
    """An option whose value, if it has one, is part of its word: ``--switch-output=1s``, ``-Iax``. It has a long name,
    the last one."""

    def __init__(self, option_strings: Sequence[str], dest: str, read: Callable[[str], object], **others: Any) -> None:
        super().__init__(option_strings, dest, nargs="?", type=checked(read), **others)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option_string: str | None = None
    ) -> None:
        setattr(namespace, self.dest, values)


class CommandParser(argparse.ArgumentParser):
    """argparse for one command: errors are UsageErrors; help shows its examples as they are written."""

    def __init__(self, command: str, arguments: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"perfemu {command}",
            usage=f"perfemu {command} {arguments}",
            description=description,
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str], namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """As perf has options whose value may be missing: it never is the next word."""
        return super().parse_args(self._with_empty_values(list(args)), namespace)

    def _with_empty_values(self, words: list[str]) -> list[str]:
        """The words up to the program's, where an AttachedValue without one has an empty one."""
        found: list[str] = []
        while words and words[0].startswith("-") and words[0] not in ("-", "--"):
            word = words.pop(0)
            action = self._option_string_actions.get(word)
            if isinstance(action, AttachedValue):
                word = f"{action.option_strings[-1]}="
            found.append(word)
            if action is not None and action.nargs is None and words:
                found.append(words.pop(0))
        return found + words

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: (--?[\w-]+)", message)
        if unknown is not None:
            if unknown[1].startswith("--no-") and unknown[1].replace("--no-", "--", 1) in self._option_string_actions:
                raise UsageError(f"{self.prog.removeprefix('perfemu ')} {unknown[1]} is not modelled yet")
            near = difflib.get_close_matches(unknown[1], self._option_string_actions, n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            message = f"unknown option '{unknown[1]}'{hint}"
        raise UsageError(f"{self.prog.removeprefix('perfemu ')}: {message} (see '{self.prog} --help')")


def positive_int(text: str, least: int = 1) -> int:
    """An argparse type: 1 and up; `k`, `M` and `G` are not understood by perf either."""
    try:
        value = int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
    if not least <= value < 1 << 63:
        raise argparse.ArgumentTypeError(f"{text} is not within {least}..{(1 << 63) - 1}")
    return value


def checked(read: Callable[[str], T]) -> Callable[[str], T]:
    """An argparse type of what raises ValueError."""

    def read_or_complain(text: str) -> T:
        try:
            return read(text)
        except ValueError as problem:
            raise argparse.ArgumentTypeError(str(problem)) from None

    return read_or_complain


def add_delay_option(parser: argparse.ArgumentParser) -> None:
    """When stat and record begin."""
    parser.add_argument(
        "-D",
        "--delay",
        metavar="MS | Ni | A-B,...",
        type=checked(_delay),
        help="begin after so many simulated ms (20us, 2s; with i: instructions), or count in ranges of them alone; "
        "-1: when the guest says (--control)",
    )
    parser.add_argument(
        "--control",
        metavar="fifo:/dev/NAME[,/dev/NAME]",
        type=checked(_control),
        help="the guest writes there enable, disable or stop, and reads ack",
    )


def _delay(text: str) -> tuple[Span, ...]:
    # only who delays needs it
    from perfemu.moments import read_delay

    return read_delay(text)


def _control(text: str) -> Control:
    # only who gives one needs it
    from perfemu.control import read_control

    return read_control(text)


class FilterAction(argparse.Action):
    """--filter: of the -e before it."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        if not namespace.event:
            raise UsageError(f"--filter '{values}': stands behind the -e of a tracepoint, or of intel_pt")
        namespace.filter = [*(namespace.filter or ()), (len(namespace.event) - 1, values)]


def add_filter_option(parser: argparse.ArgumentParser) -> None:
    """Of tracepoints, and of what traces."""
    parser.add_argument(
        "--filter", metavar="EXPR", action=FilterAction,
        help="only these occurrences of the tracepoints of the -e before it: 'prev_pid != 0 && next_comm ~ \"sh*\"'; "
        "where intel_pt traces: 'filter main @ ./program'",
    )  # fmt: skip


class CgroupAction(argparse.Action):
    """-G: of the -e before it."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        command = parser.prog.removeprefix("perfemu ")
        if not namespace.event:
            raise UsageError(f"{command} {option_string} {values}: must define events before cgroups: -e, then -G")
        namespace.cgroup = [*(namespace.cgroup or ()), (len(namespace.event), tuple(values.split(",")))]


def add_cgroup_option(parser: argparse.ArgumentParser) -> None:
    """Of events of whole CPUs."""
    parser.add_argument(
        "-G", "--cgroup", metavar="NAME,...", action=CgroupAction,
        help="with -a or -C: the events of the -e before it only in the guest's control groups of these names, one for "
        "each event, or one for all; whenever the guest makes them",
    )  # fmt: skip


def check_cgroup_options(options: argparse.Namespace, scope: Scope, option: str) -> None:
    """Raises UsageError where there is no CPU whose groups could be told apart."""
    if (options.cgroup or getattr(options, "for_each_cgroup", ())) and scope.cpus is None:
        raise UsageError(f"{option}: control groups are counted in system-wide mode alone: with -a or -C")


def add_level_options(parser: argparse.ArgumentParser) -> None:
    """Of all events, whatever their modifiers say."""
    levels = parser.add_mutually_exclusive_group()
    levels.add_argument("--all-user", action="store_true", help="all events count in user mode alone")
    levels.add_argument("--all-kernel", action="store_true", help="all events count in the kernel alone")


def changes_of(options: argparse.Namespace) -> Changes:
    """What these options and --filter say."""

    # every command has this file, and few count
    from perfemu.events.changes import CgroupNames, Changes, Filter

    level = "u" if options.all_user else "k" if options.all_kernel else ""
    return Changes(
        tuple(Filter(*given) for given in options.filter or ()),
        level,
        tuple(CgroupNames(*given) for given in options.cgroup or ()),
        getattr(options, "for_each_cgroup", ()),
    )


class _Refused(argparse.Action):
    """An option of perf's that there is not: named, so that it does not silently mean something else."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option_string: str | None = None
    ) -> None:
        raise UsageError(f"{parser.prog.removeprefix('perfemu ')} {option_string} ({self.metavar}) is not modelled yet")


def add_refused_options(parser: argparse.ArgumentParser, meanings: Mapping[str, str]) -> None:
    """Refuse each option of `meanings`, whether or not it has a value, and say what it would mean.

    Keys are the option's names as perf's help has them: ``-I, --interval-print``.
    """
    for names, meaning in meanings.items():
        parser.add_argument(*names.split(", "), action=_Refused, nargs="?", help=argparse.SUPPRESS, metavar=meaning)


def refuse_what_only_perf_has(parser: argparse.ArgumentParser, command: str) -> None:
    """The options of perf's that `parser` does not have by now: not even as abbreviations of others."""
    for names in (*PERF_OPTIONS.get(command, ()), *NEWER_OPTIONS.get(command, ())):
        left = [name for name in names.split(", ") if name not in parser._option_string_actions]
        if left:
            add_refused_options(parser, {", ".join(left): "an option of perf's"})
