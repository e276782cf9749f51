"""Console: the serial port's bytes on a stream of the host's."""

from __future__ import annotations

from typing import BinaryIO

from emulator.linux.configuration import MOST_OUTPUT_BYTES
from perfemu.ending import STOPPED
from perfemu.errors import PerfemuError


class Console:
    """The serial port's bytes on a stream: whole lines, and no more of them than a guest may write."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._left = MOST_OUTPUT_BYTES

    def __call__(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise PerfemuError(f"the guest has written {MOST_OUTPUT_BYTES >> 30} GiB, and may write no more", STOPPED)
        self._output.write(data)
        if data == b"\n":
            self._output.flush()
