"""Streams: a guest's standard streams where Python gives its input or wants its output: temporary files."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from typing import IO

from perfemu.guest import Guest


class Streams:
    """For as long as a run needs them."""

    def __init__(self, input: bytes | None, capture: bool) -> None:
        self._input = _temporary(input) if input is not None else None
        self._output = (_temporary(b""), _temporary(b"")) if capture else None

    def __enter__(self) -> Streams:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._input, *(self._output or ())):
            if file is not None:
                file.close()

    def connect(self, guest: Guest) -> Guest:
        if self._input is not None:
            guest = replace(guest, stdin=self._input.fileno())
        if self._output is not None:
            guest = replace(guest, stdout=self._output[0].fileno(), stderr=self._output[1].fileno())
        return guest

    def rewind(self) -> None:
        """Another run reads the same input."""
        if self._input is not None:
            os.lseek(self._input.fileno(), 0, os.SEEK_SET)

    def output(self) -> tuple[bytes | None, bytes | None]:
        if self._output is None:
            return None, None
        out, err = self._output
        return _contents(out), _contents(err)


def _temporary(contents: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by Streams
    file.write(contents)
    file.flush()
    file.seek(0)
    return file


def _contents(file: IO[bytes]) -> bytes:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
