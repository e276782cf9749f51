"""checkpoint: a machine that has paused is run on more than once, each time from there, to the same bytes.

A copy is a fork of this process: engines with what they have translated, memory, caches, predictors and all of Python's
objects are the copy's own, at once, and the host copies what either changes. The original stays as it was. What is
outside of the process is not copied: files of the host that a guest writes, and where its standard streams stand.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


class CopyFailed(Exception):
    """What went wrong in it, as it said itself."""


def in_a_copy(run_on: Callable[[], bytes]) -> bytes:
    """What `run_on` returns in a copy of this process, which then ends. Nothing that it does is seen here.

    Not while other threads of this process run. Raises CopyFailed.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _end_with(run_on, write_end)
    os.close(write_end)
    with open(read_end, "rb") as told:
        result = told.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise CopyFailed(result.decode(errors="replace") or f"wait status {status}")
    return result


def _end_with(run_on: Callable[[], bytes], write_end: int) -> None:
    """No handler of the original's runs, and none of its buffers is written a second time."""
    status = 1
    try:
        try:
            result, status = run_on(), 0
        except BaseException:  # the original's callers are not this process's
            result = traceback.format_exc().encode()
        with open(write_end, "wb") as tell:
            tell.write(result)
    finally:
        os._exit(status)
