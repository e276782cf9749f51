"""Options of the commands that run a guest: the machine, what the guest sees of the host, and the program."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from dataclasses import fields
from typing import Literal

from emulator.linux.process.program import ProgramError, identify
from perfemu.cli.options import AttachedValue, positive_int
from perfemu.cli.streams import tell
from perfemu.cores import core
from perfemu.ending import Ending
from perfemu.environment import guest_environment, search_path
from perfemu.errors import PerfemuError, UsageError
from perfemu.guest import REPEATED, Guest
from perfemu.guest_options import LIMITS, MACHINE, MEASURING, OPTIONS, GuestOption, Number
from perfemu.locate import locate
from perfemu.quantities import TIME_UNITS, time_ns
from perfemu.scope import Scope, of_ids

_OF_BOARDS = {
    "initrd": "--initrd",
    "cmdline": "--cmdline",
    "disk": "--disk",
    "console": "--console",
    "test_device": "--test-device",
    "semihosting": "--semihosting",
    "gic": "--gic",
    "trace": "--trace",
    "guest_linux": "--guest-linux",
    "guest_root": "--guest-root",
    "gdb": "--gdb",
}
_FIELDS = {field.name: field for field in fields(Guest)}


def add_guest_options(parser: argparse.ArgumentParser, bare_time: str = "s", *, takes_program: bool = True) -> None:
    """What run, stat and record have in common. `bare_time` is the unit of a --timeout without one."""
    group = parser.add_argument_group(MACHINE)
    _add(group, *_of_group(MACHINE))
    group.add_argument(
        "--env", metavar="NAME[=VALUE]", action="append", default=[], help="add a variable; without VALUE, yours"
    )
    group.add_argument("--inherit-env", action="store_true", help="give the guest all of your environment")
    _add(parser.add_argument_group(LIMITS), *_of_group(LIMITS), bare_time=bare_time)
    if takes_program:
        parser.add_argument("program", nargs=argparse.REMAINDER, metavar="[--] PROGRAM [ARGS]", help="what to run")


def add_board_options(parser: argparse.ArgumentParser, *also: str) -> None:
    """To boot an image instead of running a program. `also`: another name of --cmdline, where it is free."""
    group = parser.add_argument_group("board")
    group.add_argument(
        "--board",
        metavar="NAME",
        help="boot an image on a board instead: virt (AArch64) or pc (x86-64), see docs/board.md",
    )
    group.add_argument("--initrd", metavar="FILE", help="initial RAM disk of the kernel")
    group.add_argument("--cmdline", *also, metavar="TEXT", default="", help="the kernel's command line")
    group.add_argument(
        "--disk", metavar="FILE[,rw]", action="append", default=[],
        help="a virtio disk; what the guest writes is forgotten at the end, or kept in the file with ,rw",
    )  # fmt: skip
    group.add_argument(
        "--console", metavar="NAME",
        help="what receives standard input: the serial port, pl011 (ttyAMA0) or com1 (ttyS0); or virtio (hvc0)",
    )  # fmt: skip
    group.add_argument(
        "--test-device", action="store_true", help="let a test end the run: exit status 2n+1 for its verdict n"
    )
    group.add_argument(
        "--semihosting", action="store_true", help="answer HLT 0xf000: console, exit, and files below what is bound"
    )
    group.add_argument("--gic", type=int, choices=(2, 3), help="version of the interrupt controller [3]")
    add_watching_options(group)


def add_guest_linux_options(parser: argparse.ArgumentParser) -> None:
    """Of commands that can tell a board's processes apart."""
    group = parser.add_argument_group("board's processes")
    group.add_argument(
        "--guest-linux", action="store_true",
        help="read in the memory of the board's Linux which task runs and what it has mapped, by the kernel's own BTF",
    )  # fmt: skip
    group.add_argument(
        "--guest-root", metavar="DIR", help="the same; the programs of those tasks are in DIR, by their paths there"
    )


def add_watching_options(group: argparse._ActionsContainer) -> None:
    """For each command that boots something."""
    group.add_argument(
        "--trace",
        metavar="LIST",
        help="say on stderr what the guest does, each time: exceptions,interrupts,mmio,sysregs on virt,"
        " exceptions,interrupts,mmio,ports,msrs on pc, or some of them",
    )
    group.add_argument(
        "--gdb",
        metavar="PORT",
        help="wait for GDB there before the first instruction: a port of this machine, 0 for any, or ./SOCKET",
    )


def refuse_board_options(options: argparse.Namespace) -> None:
    """For a program: without --board they mean nothing."""
    for name, flag in _OF_BOARDS.items():
        if getattr(options, name, None):
            raise UsageError(f"{flag}: is a board's, and there is none: --board NAME boots an image")


def add_core_options(parser: argparse._ActionsContainer, instead_of_run: str) -> None:
    """The core alone, for a command that runs nothing: what it is for."""
    _add(parser, "core", "core_changes", "pmu", meaning=instead_of_run)


def add_counters_option(parser: argparse.ArgumentParser) -> None:
    _add(parser, *_of_group(MEASURING))


def _of_group(group: str) -> list[str]:
    return [name for name, option in OPTIONS.items() if option.group == group]


def _add(parser: argparse._ActionsContainer, *names: str, bare_time: str = "s", meaning: str = "") -> None:
    """Options of the guest, by the names that Python has for them."""
    for name in names:
        option, default = OPTIONS[name], _FIELDS[name].default
        text = option.help.replace("{unit}", bare_time)
        if meaning:
            text = text.replace("core to run on", meaning)
        if option.metavar is None:
            action = "store_false" if default else "store_true"
            parser.add_argument(option.flag, dest=name, action=action, help=text)
        elif name in REPEATED:
            parser.add_argument(option.flag, dest=name, metavar=option.metavar, action="append", default=[], help=text)
        else:
            checked = _checked(option, bare_time) if option.read is not None else str
            parser.add_argument(
                option.flag, dest=name, metavar=option.metavar, type=checked, default=default, help=text
            )


def _checked(option: GuestOption, bare_time: str) -> Callable[[str], object]:
    """An argparse type: a number, or else the text as it is, once it has been found right."""

    def checked(text: str) -> object:
        assert option.read is not None, "it is checked by reading it"
        try:
            if option.read is time_ns:
                time_ns(text, TIME_UNITS[bare_time])
                return text if text.rstrip().endswith("s") else text + bare_time
            value = option.read(text)
        except ValueError as problem:
            raise argparse.ArgumentTypeError(str(problem)) from None
        return value if isinstance(option.read, Number) else text

    return checked


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
    parser.add_argument(
        "--marker",
        action=AttachedValue,
        read=_marker,
        metavar="=N",
        help="count only what the program itself marks, by perfemu_markers.h, in each thread; N: by markers 0 to 7",
    )


def _marker(text: str) -> int | Literal["any"]:
    # only who gives one needs it
    from perfemu.markers import read_number

    return read_number(text)


def add_id_options(parser: argparse._ActionsContainer) -> None:
    """Which of the program's processes and threads count."""
    parser.add_argument(
        "-p",
        "--pid",
        metavar="PID,...",
        type=_ids,
        default=(),
        help="these processes of the program alone, from when they appear, and what they start; the program is 1000",
    )
    parser.add_argument("-t", "--tid", metavar="TID,...", type=_ids, default=(), help="... these threads")


def _ids(text: str) -> tuple[int, ...]:
    return tuple(positive_int(number) for number in text.split(","))


def within_region(scope: Scope, options: argparse.Namespace) -> Scope:
    """What `add_region_options` leave of it."""
    scope = of_ids(scope, getattr(options, "pid", ()), getattr(options, "tid", ()))
    if options.from_symbol is None and options.to_symbol is None and options.marker is None:
        return scope

    # only regions need a reader of symbols before the end
    from perfemu.regions import within

    return within(scope, options.from_symbol, options.to_symbol, options.marker)


def guest_of(options: argparse.Namespace) -> Guest:
    """What the options of `add_guest_options` say."""
    guest = guest_named(options)
    _name_the_hosts_program(guest)
    return guest


def guest_named(options: argparse.Namespace) -> Guest:
    """The same, whatever the program is."""
    program: list[str] = options.program
    if program[:1] == ["--"]:
        program = program[1:]
    if not program:
        raise UsageError("no program to run: name it after the options")
    if options.core is not None:
        core(options.core, options.core_changes)
    stdin, stdout, stderr = options.descriptors
    return Guest(
        program,
        **{name: getattr(options, name) for name in OPTIONS if name in options},
        environment=dict(guest_environment(options.env, os.environ, options.inherit_env)),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    )


def _name_the_hosts_program(guest: Guest) -> None:
    """Warn of a program that was meant to be the sysroot's, and is the host's; yours, below the current directory, is
    not meant, nor one that is named where it lies in the sysroot."""
    space = guest.space()
    if space.sysroot is None:
        return
    directory = guest.directory(space)
    try:
        found = locate(guest.command[0], search_path(guest.variables), space, directory)
        isa = identify(found.host_path, lambda path: space.on_host(path) or path)
    except (PerfemuError, ProgramError):
        return  # the run says so
    meant = (place for place in (directory, space.sysroot) if place != "/")
    if found.not_below_sysroot and isa == platform.machine() and not any(map(found.is_below, meant)):
        tell(f"perfemu: {found.guest_path} is the host's ({isa}): --sysroot {space.sysroot} does not have it")


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
