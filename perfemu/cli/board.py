"""Options of the commands that can boot an image on a board."""

from __future__ import annotations

import argparse
import os
from typing import BinaryIO

from emulator.board.trace import Traced
from perfemu.board_request import BoardRequest
from perfemu.boards import BoardSession, standard_output
from perfemu.cli.guest import guest_named
from perfemu.cli.streams import tell
from perfemu.errors import UsageError


def traced(text: str | None) -> tuple[Traced, ...]:
    """What --trace asks for. Raises UsageError."""
    try:
        return () if text is None else tuple(Traced(name) for name in text.split(","))
    except ValueError:
        raise UsageError(f"--trace {text}: a list of {', '.join(Traced)}") from None


def _directory(path: str | None) -> str | None:
    if path is None:
        return None
    if not os.path.isdir(path):
        raise UsageError(f"--guest-root {path}: is no directory")
    return os.path.realpath(path)


def session_of(options: argparse.Namespace, output: BinaryIO | None = None) -> BoardSession:
    """What the options say. `output`: of the serial port, if it is not standard output."""
    root = _directory(options.guest_root) if "guest_root" in options else None
    guest_linux = "guest_linux" in options and (options.guest_linux or root is not None)
    request = BoardRequest(
        options.board,
        options.initrd,
        options.cmdline,
        options.disk,
        options.console,
        options.test_device,
        options.semihosting,
        options.gic,
        traced(options.trace),
        guest_linux,
        root,
        gdb=options.gdb,
    )
    return BoardSession(
        guest_named(options), request, output or standard_output(), lambda text: tell(f"perfemu: {text}")
    )
