"""main: finds the command, runs it, and turns whatever goes wrong into one line and an exit status."""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from perfemu.cli import streams
from perfemu.cli.options import CommandParser, refuse_what_only_perf_has
from perfemu.errors import FAILURE_STATUS, PerfemuError, UsageError
from perfemu.host_limits import address_space_kib
from perfemu.version import VERSION

BROKEN_PIPE_STATUS = 128 + signal.SIGPIPE
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what a write says of the user's disk, not of our code
_ENCODINGS = ("utf-8", "ascii")  # of names; with both, every byte string is a str and back again


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table. The module is imported only when the command runs."""

    name: str
    summary: str
    arguments: str = "[OPTIONS]"  # for the usage line

    @property
    def module(self) -> str:
        return f"perfemu.cli.{self.name}"


class CommandModule(Protocol):
    """What a command's file has; and EXAMPLES, if it likes, and `arranged`: its command line as argparse reads it."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int:
        """The exit status. `options.command_line` is what the user typed, after ``perfemu``.

        `options.descriptors` are the guest's standard streams, as `streams.prepare` gives them.
        """


_GUEST_ARGUMENTS = "[OPTIONS] [--] PROGRAM [ARGS]"
COMMANDS = (
    Command("run", "Run a program on the emulated machine, and nothing else", _GUEST_ARGUMENTS),
    Command("stat", "Run a program and count events", _GUEST_ARGUMENTS),
    Command("record", "Run a program and record its profile into perf.data", _GUEST_ARGUMENTS),
    Command("linux", "Run a command in a real Linux kernel, on a board", "[OPTIONS] [--] COMMAND [ARGS]"),
    Command("trace", "Run a program and show its system calls and signals", _GUEST_ARGUMENTS),
    Command("report", "Read perf.data and display the profile"),
    Command("diff", "Show what two profiles, stat results or programs differ in", "[OPTIONS] [OLD NEW]"),
    Command("html", "Make a web page of perf.data, or of the differences of two", "[OPTIONS] [FILE [OLD]]"),
    Command("check", "Hold the counts of benchmarks against a baseline", "[OPTIONS] [FILE]"),
    Command("truth", "Hold a profile against the exact counts of the same run", "[OPTIONS] [FILE]..."),
    Command("annotate", "Read perf.data and show code, with what events were where", "[OPTIONS] [SYMBOL]"),
    Command("script", "Read perf.data and print its samples as text"),
    Command("list", "List the events that a core's PMU can count, and the cores", "[OPTIONS] [KIND | PATTERN]..."),
    Command("pmu", "Show a PMU's registers, field by field", "list | show [OPTIONS] [[--] PROGRAM [ARGS]]"),
)


_ONLY_PERFS = {  # commands that people will type
    "evlist": "perf evlist reads our files; perfemu report --header-only says what was recorded",
    "top": "record, and then report",
    "mem": "",
    "c2c": "",
    "sched": "",
    "lock": "",
    "kmem": "",
    "probe": "",
    "ftrace": "",
    "inject": "perf inject reads our files",
    "archive": "perf archive reads our files",
    "buildid-list": "perf buildid-list reads our files",
}


def usage() -> str:
    rows = "\n".join(f"   {command.name:<15} {command.summary}" for command in COMMANDS)
    return f"""
 usage: perfemu [--version] [--help] COMMAND [ARGS]

 The commands are:
{rows}

 See 'perfemu COMMAND --help' for a command's options, and examples.
"""


def find_command(name: str) -> Command:
    """The command of this name; UsageError suggests what is near."""
    for command in COMMANDS:
        if command.name == name:
            return command
    if name in _ONLY_PERFS:
        instead = f"; {_ONLY_PERFS[name]}" if _ONLY_PERFS[name] else ""
        raise UsageError(f"there is no command '{name}' yet{instead}")
    near = difflib.get_close_matches(name, [command.name for command in COMMANDS], n=2, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else " See 'perfemu --help'."
    raise UsageError(f"'{name}' is not a perfemu-command.{hint}")


def _dispatch(arguments: Sequence[str], descriptors: tuple[int, int, int]) -> int:
    if not arguments:
        print(usage())
        return FAILURE_STATUS  # as perf
    first, *rest = arguments
    if first in ("--version", "-v", "version"):
        print(f"perfemu version {VERSION}")
        return 0
    if first in ("--help", "-h"):
        print(usage())
        return 0
    if first == "help":
        if not rest:
            print(usage())
            return 0
        first, rest = rest[0], ["--help"]
    command = find_command(first)
    module = cast(CommandModule, importlib.import_module(command.module))
    parser = CommandParser(command.name, command.arguments, command.summary, getattr(module, "EXAMPLES", ""))
    module.add_arguments(parser)
    refuse_what_only_perf_has(parser, command.name)
    arranged: Callable[[Sequence[str]], Sequence[str]] = getattr(module, "arranged", list)
    options = parser.parse_args(arranged(rest))
    options.command_line = (command.name, *rest)
    options.descriptors = descriptors
    return module.run(options)


def _say(message: str) -> None:
    streams.tell(f"perfemu: {message}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line. Never lets an exception out. None is the command of this process, all ours."""
    if arguments is None:
        return _guarded(sys.argv[1:], _take_over())
    return _guarded(arguments, streams.STANDARD_DESCRIPTORS)


def _take_over() -> tuple[int, int, int]:
    """Make this process independent of how it was started; the descriptors for the guest."""
    _forget_coerced_locale()
    if sys.getfilesystemencoding() not in _ENCODINGS:
        # The user's locale must not change the bytes of arguments and file names.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    return streams.prepare()


def _forget_coerced_locale() -> None:
    """In the C locale Python sets LC_CTYPE (PEP 538); --inherit-env is of the user's variables, not of Python's."""
    with open("/proc/self/environ", "rb") as file:  # as they were when the process started
        given = file.read().split(b"\0")
    if not any(variable.startswith(b"LC_CTYPE=") for variable in given):
        os.environ.pop("LC_CTYPE", None)


def _guarded(arguments: Sequence[str], descriptors: tuple[int, int, int]) -> int:
    try:
        status = _dispatch(arguments, descriptors)
        sys.stdout.flush()
        return status
    except PerfemuError as problem:
        _say(problem.message)
        return problem.exit_status
    except BrokenPipeError:
        streams.abandon_output()
        return BROKEN_PIPE_STATUS  # quietly: whoever read our output has gone
    except KeyboardInterrupt as problem:
        return _interrupted(problem)
    except (MemoryError, ImportError, SystemError) as problem:
        # Without memory, Python's own code may also fail to load a library, or forget to say what has failed.
        return _out_of_memory(problem, sure=isinstance(problem, MemoryError))
    except Exception as problem:
        number = problem.errno if isinstance(problem, OSError) else None
        if number == errno.ENOMEM:  # as Python's importer has it
            return _out_of_memory(problem, sure=True)
        if number in _FULL:
            streams.abandon_output()
            _say(f"cannot write: {os.strerror(number)}")
            return FAILURE_STATUS
        return _internal_error(problem)


def _out_of_memory(problem: Exception, *, sure: bool) -> int:
    limit = address_space_kib()
    if limit is None and not sure:
        return _internal_error(problem)
    _say(f"out of memory{'' if limit is None else f': ulimit -v {limit} is too little'}")
    return FAILURE_STATUS


def _interrupted(problem: KeyboardInterrupt) -> int:
    # whoever raises one of these has loaded them
    from perfemu.board_input import Left
    from perfemu.interruption import Interrupted, die_of

    if isinstance(problem, Interrupted) and not isinstance(problem, Left):
        die_of(problem.number)
    return 128 + signal.SIGINT


def _internal_error(problem: Exception) -> int:
    if os.environ.get("PERFEMU_DEBUG") == "1":
        traceback.print_exc()
    where = traceback.extract_tb(problem.__traceback__)[-1]
    place = f"{os.path.basename(where.filename)}:{where.lineno}"
    what = f"{type(problem).__name__}: {problem}"
    _say(f"internal error, a bug in perfemu: {what} ({place}; PERFEMU_DEBUG=1 shows more)")
    return FAILURE_STATUS
