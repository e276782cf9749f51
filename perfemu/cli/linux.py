"""perfemu linux: run a command in a real Linux kernel, on a board."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from emulator.clock import REALTIME_AT_BOOT_NS
from perfemu.cli.guest import add_guest_options, add_watching_options, guest_named
from perfemu.cli.streams import tell
from perfemu.cores import core
from perfemu.errors import FAILURE_STATUS, PerfemuError, UsageError

EXAMPLES = """\
  perfemu linux --fetch                                once: Debian's kernel and busybox, into the cache
  perfemu linux --core ideal -- uname -a
  perfemu linux --root ~/debian-arm64 -- perf stat ./prog
  perfemu linux --cpus 4 --memory 1G -- sh             a shell, in your current directory
  perfemu linux --disk debian.img                      a whole system, with its own init
  perfemu linux --board pc -- uname -m                 in Debian's amd64 kernel; once: --board pc --fetch
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("kernel")
    group.add_argument(
        "--board",
        metavar="NAME",
        help="virt: Debian's arm64 kernel, or pc: its amd64 kernel [the first whose programs --core executes]",
    )
    group.add_argument("--fetch", action="store_true", help="fetch Debian's kernel and busybox by apt-get and dpkg-deb")
    group.add_argument("--kernel", metavar="DIR", help="a tree with boot/vmlinuz-*, lib/modules/ and bin/busybox")
    group.add_argument(
        "--root", metavar="DIR", help="an arm64 or amd64 system's files; what is changed there is forgotten"
    )
    group.add_argument(
        "--disk",
        metavar="FILE[,rw]",
        help="a disk whose file system (ext4) is the root; without a COMMAND its own init runs. What is written is"
        " forgotten, or kept with ,rw",
    )
    group.add_argument("--log", action="store_true", help="show what the kernel says, too")
    group.add_argument(
        "--no-checkpoint", action="store_true", help="boot, though another run with these options has, and keep nothing"
    )
    add_watching_options(group)
    group.add_argument("--cmdline", metavar="TEXT", default="", help="more of the kernel's command line")
    add_guest_options(parser)


def run(options: argparse.Namespace) -> int:
    # only this command needs them
    from perfemu.board_request import BoardRequest, Orders
    from perfemu.boards import BoardSession, standard_output
    from perfemu.checkpoints import Checkpoints
    from perfemu.cli.board import traced
    from perfemu.real_linux import (
        ANSWER,
        NO_FILE_SYSTEM,
        ORDERS_FILE,
        PLATFORMS,
        ROOT,
        STATUS_FILE,
        WORK,
        OrdersScript,
        RealLinux,
        cached,
        fetched,
        kernel_command_line,
    )

    board = options.board or _board_of(options.core, {name: each.isa for name, each in PLATFORMS.items()})
    if board not in PLATFORMS:
        raise UsageError(f"linux --board {board}: there is {', '.join(PLATFORMS)}")
    platform = PLATFORMS[board]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "perfemu"
    if options.fetch:
        print(fetched(cache / "linux", platform).tree)
        if not options.program and options.disk is None:
            return 0
    if options.disk is not None and options.root is not None:
        raise UsageError("linux --disk, --root: each is the command's root, and there is one")
    linux = RealLinux(Path(options.kernel)) if options.kernel else cached(cache / "linux", platform)
    if linux is None:
        fetch = "perfemu linux --fetch" if board == next(iter(PLATFORMS)) else f"perfemu linux --board {board} --fetch"
        raise UsageError(f"linux: no kernel yet: '{fetch}' fetches Debian's, --kernel DIR names one")
    linux = replace(linux, has_disk=options.disk is not None)
    starts_init = linux.has_disk and options.program in ([], ["--"])
    guest = guest_named(argparse.Namespace(**{**vars(options), "program": ["init"]}) if starts_init else options)
    if guest.binds:
        raise UsageError(
            f"linux --bind: the current directory is there, and --root; for more, perfemu run --board {board}"
        )
    trace = traced(options.trace)
    work = os.getcwd()
    is_terminal = os.isatty(guest.stdin) and os.isatty(guest.stdout)
    has_root = options.root is not None
    with tempfile.TemporaryDirectory(prefix="perfemu-") as temporary:
        shared, nothing = Path(temporary) / ANSWER, Path(temporary) / ROOT
        shared.mkdir()
        nothing.mkdir()
        script = OrdersScript(platform, work, is_terminal, has_root, linux.has_disk).text(
            [] if starts_init else guest.command
        )
        (shared / ORDERS_FILE).write_text(script, errors="surrogateescape")
        for path in (shared / ORDERS_FILE, shared, nothing):
            os.utime(path, ns=(REALTIME_AT_BOOT_NS, REALTIME_AT_BOOT_NS))  # the guest sees when they were made
        binds = [f"{work}:{WORK}:rw", f"{shared}:{ANSWER}:rw", f"{options.root if has_root else nothing}:{ROOT}"]
        guest = replace(guest, argv=[str(linux.image)], binds=binds)
        command_line = f"{kernel_command_line(platform, tells=options.log or starts_init)} {options.cmdline}".rstrip()
        # What is traced or debugged begins with the boot; and no second is like another.
        begins_anew = options.no_checkpoint or bool(trace) or options.gdb is not None or guest.date == "now"
        places = None if begins_anew else Checkpoints(cache)
        request = BoardRequest(
            board,
            linux.initramfs,
            command_line,
            disks=[] if options.disk is None else [options.disk],
            trace=trace,
            orders=Orders(ANSWER, places, linux.facts, linux.files),
            gdb=options.gdb,
        )
        ending = BoardSession(guest, request, standard_output(), lambda text: tell(f"perfemu: {text}")).run()
        if ending.exit_status:
            return ending.exit_status
        status = _status(shared / STATUS_FILE)
        if status == NO_FILE_SYSTEM:
            raise PerfemuError(f"linux --disk {options.disk}: neither it nor its first partition is ext4")
        return 0 if starts_init else _number(status)


def _board_of(core_name: str | None, isas: Mapping[str, str]) -> str:
    """The first whose programs that core executes. `isas`: by board."""
    executed = None if core_name is None else core(core_name).isas
    return next(board for board, isa in isas.items() if executed is None or isa in executed)


def _status(path: Path) -> str:
    """What the guest has written there, which may be anything; nothing if it is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 16).decode(errors="replace").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _number(status: str) -> int:
    """Of the command."""
    try:
        return int(status) & 0xFF
    except ValueError:
        raise PerfemuError("linux: the kernel ended before the command did; --log shows why", FAILURE_STATUS) from None
