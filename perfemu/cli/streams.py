"""Standard streams of this process: what the command does to make them fit for its own output and for the guest."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress

from perfemu.visible import visible

STANDARD_DESCRIPTORS = (0, 1, 2)
MOST_SWITCHES_TOLD = 100
CLOSED = -1  # in place of a descriptor that the user has closed


def prepare() -> tuple[int, int, int]:
    """Make the streams independent of the user's locale; the descriptors for the guest.

    A descriptor that the user has closed (``<&-``) is closed for the guest, too. Here /dev/null takes its place, or the
    next file that is opened would: the profile as standard input, say.
    """
    given = tuple(descriptor if _is_open(descriptor) else CLOSED for descriptor in STANDARD_DESCRIPTORS)
    while (descriptor := os.open(os.devnull, os.O_RDWR)) in STANDARD_DESCRIPTORS:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # for the life of the process
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # names are bytes, whatever they mean
    stdin, stdout, stderr = given
    return stdin, stdout, stderr


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def tell(line: str) -> None:
    """A line for the user on stderr; that it cannot be written is no reason to fail."""
    with suppress(OSError):
        sys.stdout.flush()
    try:
        print(visible(line), file=sys.stderr)
    except OSError:
        abandon_output()


def counting_teller() -> Callable[[bool], None]:
    """Says, as perf, that counting begins or ends, where -D or the guest decides; a guest cannot make it endless."""
    left = MOST_SWITCHES_TOLD

    def tell_whether(counting: bool) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            tell(f"Events {'enabled' if counting else 'disabled'}{'' if left else ', and so on'}")

    return tell_whether


def say_if_elsewhere(asked: str, path: str) -> None:
    """Where an output file is, if what the guest did to the directory kept it from its place."""
    if path != asked:
        tell(f"perfemu: {asked} could not be replaced; what was written is {path}")


def abandon_output() -> None:
    """Whoever read our output has gone, or the disk is full: let the interpreter's last flush fail nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
            continue
        with suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
