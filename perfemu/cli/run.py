"""perfemu run: run a program on the emulated machine, and nothing else."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from perfemu.cli.guest import add_guest_options, announce_death, guest_named, guest_of
from perfemu.cli.streams import tell
from perfemu.errors import UsageError
from perfemu.interruption import Interruption, SignalKeys, die_of
from perfemu.session import Session

EXAMPLES = """\
  perfemu run ./prog arg
  perfemu run --sysroot /usr/aarch64-linux-gnu -- ./prog --prog-option
  perfemu run --env DEBUG=1 --rw /var/tmp ./prog
  perfemu run --board virt --memory 1G --append console=ttyAMA0 --initrd initrd.cpio Image    a whole kernel
  perfemu run --bind ~/debian:/ --bind .:/work:rw -- bash    a system of its own, and your files in it
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("board")
    group.add_argument("--board", metavar="NAME", help="boot an image on a board instead: virt, see docs/board.md")
    group.add_argument("--initrd", metavar="FILE", help="initial RAM disk of the kernel")
    group.add_argument("--append", metavar="TEXT", default="", help="the kernel's command line")
    group.add_argument(
        "--disk", metavar="FILE[,rw]", action="append", default=[],
        help="a virtio disk; what the guest writes is forgotten at the end, or kept in the file with ,rw",
    )  # fmt: skip
    group.add_argument(
        "--console", metavar="NAME", choices=("pl011", "virtio"),
        help="what receives standard input: pl011 (ttyAMA0), or virtio (hvc0) [pl011]",
    )  # fmt: skip
    group.add_argument(
        "--test-device", action="store_true", help="let a test end the run: exit status 2n+1 for its verdict n"
    )
    group.add_argument(
        "--semihosting", action="store_true", help="answer HLT 0xf000: console, exit, and files below what is bound"
    )
    add_guest_options(parser)


def run(options: argparse.Namespace) -> int:
    if options.board is not None:
        return _boot(options)
    given = options.initrd, options.append, options.disk, options.console, options.test_device, options.semihosting
    if any(given):
        raise UsageError(
            "--initrd, --append, --disk, --console, --test-device, --semihosting: are a kernel's; "
            "--board virt boots one"
        )
    guest = replace(guest_of(options), interactive=True)
    session = Session(guest)
    keys = SignalKeys(session.console)
    with session.showing_progress(sys.stderr):
        ending = session.run(keys)
    announce_death(guest.command[0], ending)
    if keys.last is not None and keys.last == ending.signal:
        die_of(keys.last)  # so that the user's shell sees it, too
    return ending.exit_status


def _boot(options: argparse.Namespace) -> int:
    # only boards need it
    from perfemu.boards import BoardRequest, boot, standard_output

    request = BoardRequest(
        options.board,
        options.initrd,
        options.append,
        options.disk,
        options.console or "pl011",
        options.test_device,
        options.semihosting,
    )
    with Interruption():
        return boot(guest_named(options), request, standard_output(), lambda text: tell(f"perfemu: {text}"))
