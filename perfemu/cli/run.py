"""perfemu run: run a program on the emulated machine, and nothing else."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from perfemu.cli.guest import (
    add_board_options,
    add_guest_options,
    announce_death,
    guest_of,
    refuse_board_options,
)
from perfemu.interruption import SignalKeys, die_of
from perfemu.session import Session

EXAMPLES = """\
  perfemu run ./prog arg
  perfemu run --sysroot /usr/aarch64-linux-gnu -- ./prog --prog-option
  perfemu run --env DEBUG=1 --rw /var/tmp ./prog
  perfemu run --board virt --memory 1G --append console=ttyAMA0 --initrd initrd.cpio Image    a whole kernel
  perfemu run --bind ~/debian:/ --bind .:/work:rw -- bash    a system of its own, and your files in it
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_board_options(parser, "--append")
    add_guest_options(parser)


def run(options: argparse.Namespace) -> int:
    if options.board is not None:
        # only boards need it
        from perfemu.cli.board import session_of

        return session_of(options).run().exit_status
    refuse_board_options(options)
    guest = replace(guest_of(options), interactive=True)
    session = Session(guest)
    keys = SignalKeys(session.console)
    with session.showing_progress(sys.stderr):
        ending = session.run(keys)
    announce_death(guest.command[0], ending)
    if keys.last is not None and keys.last == ending.signal:
        die_of(keys.last)  # so that the user's shell sees it, too
    return ending.exit_status
