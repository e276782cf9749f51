"""main: finds the command, runs it, and turns whatever goes wrong into one line and an exit status."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from perfemu.cli.options import CommandParser
from perfemu.errors import FAILURE_STATUS, PerfemuError, UsageError
from perfemu.version import VERSION

BROKEN_PIPE_STATUS = 128 + signal.SIGPIPE


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
    """What a command's file has; and EXAMPLES, if it likes."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int:
        """The exit status. `options.command_line` is what the user typed, after ``perfemu``."""


_GUEST_ARGUMENTS = "[OPTIONS] [--] PROGRAM [ARGS]"
COMMANDS = (
    Command("run", "Run a program on the emulated machine, and nothing else", _GUEST_ARGUMENTS),
    Command("stat", "Run a program and count events", _GUEST_ARGUMENTS),
    Command("record", "Run a program and record its profile into perf.data", _GUEST_ARGUMENTS),
    Command("report", "Read perf.data and display the profile"),
    Command("list", "List the events that a core's PMU can count, and the cores", "[OPTIONS] [KIND | PATTERN]..."),
)


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
    near = difflib.get_close_matches(name, [command.name for command in COMMANDS], n=2, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else " See 'perfemu --help'."
    raise UsageError(f"'{name}' is not a perfemu-command.{hint}")


def _dispatch(arguments: Sequence[str]) -> int:
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
    options = parser.parse_args(rest)
    options.command_line = (command.name, *rest)
    return module.run(options)


def _say(message: str) -> None:
    sys.stdout.flush()
    print(f"perfemu: {message}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of the command line `arguments`, sys.argv's by default. Never lets an exception out."""
    try:
        status = _dispatch(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return status
    except PerfemuError as problem:
        _say(problem.message)
        return problem.exit_status
    except BrokenPipeError:
        # Whoever read our output has gone: leave quietly, and let the interpreter's last flush fail nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE_STATUS
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as problem:
        if os.environ.get("PERFEMU_DEBUG") == "1":
            traceback.print_exc()
        where = traceback.extract_tb(problem.__traceback__)[-1]
        place = f"{os.path.basename(where.filename)}:{where.lineno}"
        what = f"{type(problem).__name__}: {problem}"
        _say(f"internal error, a bug in perfemu: {what} ({place}; PERFEMU_DEBUG=1 shows more)")
        return FAILURE_STATUS
