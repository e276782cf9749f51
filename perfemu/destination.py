"""Destination: where a profile goes, a file or a pipe; and Destinations, one after the other: --switch-output."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import BinaryIO

from perfcore.perfdata.features import EventDescription, Features
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.errors import PerfemuError, UsageError
from perfemu.moments import Span
from perfemu.output_file import open_output

MOST_FILES = 1000  # of one recording, each of which is open until its end


@dataclass(frozen=True, slots=True)
class Switching:
    """When the next file begins: --switch-output. At most `files` are kept, the last ones."""

    bytes: int = 0  # when so many are in one
    every: Span | None = None
    by_signal: bool = False  # when the guest says it
    files: int = MOST_FILES
    names_time: bool = False  # also of a single file: --timestamp-filename

    @property
    def is_wanted(self) -> bool:
        return bool(self.bytes or self.every or self.by_signal or self.names_time)


NO_SWITCHING = Switching()


class Destination:
    """Where the profile goes: made before the program runs, so that an unwritable name is no wasted run.

    An error that leaves it discards the file; of a full disk's, what was written before is kept.
    """

    def __init__(self, output: str | BinaryIO, events: list[EventDescription], features: Features) -> None:
        self.features = features
        self._shown = output if isinstance(output, str) else "the pipe"
        self._output = open_output(output, keeps_old=True) if isinstance(output, str) else None
        if self._output is None:
            assert not isinstance(output, str)
            self.writer = PerfDataWriter(output, events, features, pipe=True)
            return
        if self._output.file.isatty():
            self._output.discard()
            raise UsageError(f"record -o {self._shown}: perf.data is not for a terminal")
        try:
            self.writer = PerfDataWriter(self._output.file, events, features, pipe=self._output.is_stream)
        except OSError as error:
            self._output.discard()
            raise self._failure(error, False) from None

    def publish(self) -> tuple[str, int]:
        """The path at which the profile is, and its size in bytes."""
        self.writer.close()  # what it raises is salvaged
        output, self._output = self._output, None
        if output is None:
            return self._shown, self.writer.data_bytes
        size = self.writer.data_bytes if output.is_stream else os.fstat(output.file.fileno()).st_size
        return output.publish(), size

    def discard(self) -> None:
        """Nobody wants it."""
        if self._output is not None:
            self._output.discard()
            self._output = None

    def _failure(self, error: OSError, kept: bool) -> Exception:
        if isinstance(error, BrokenPipeError):
            return error
        what_is_there = "; what was recorded before is in it" if kept else ""
        return PerfemuError(f"cannot write {self._shown}: {error.strerror}{what_is_there}")

    def __enter__(self) -> Destination:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._output is None:
            return
        kept = not isinstance(error, PerfemuError) and self.writer.salvage()
        if kept:
            self._output.publish()
        else:
            self._output.discard()
        if isinstance(error, OSError):
            raise self._failure(error, kept) from None


class Destinations:
    """One, or with `switching` several, whose names say when they begin.

    All are nameless until the run's end: the guest finds its directory as without us.
    """

    def __init__(
        self,
        output: str | BinaryIO,
        events: list[EventDescription],
        features: Features,
        switching: Switching,
        time: Callable[[], str],
    ) -> None:
        """`time`: now, as a name of a file has it. Raises UsageError for what cannot be written in parts."""
        if switching.is_wanted and not isinstance(output, str):
            raise UsageError("record --switch-output: a pipe is one file: name them by -o FILE")
        self._output, self._events, self._features = output, events, features
        self._switching, self._time = switching, time
        self._all: list[Destination] = []
        self.dropped = 0  # files that were not kept
        self.begin()

    @property
    def writer(self) -> PerfDataWriter:
        """Of the present one."""
        return self._all[-1].writer

    @property
    def is_full(self) -> bool:
        return bool(self._switching.bytes) and self.writer.data_bytes >= self._switching.bytes

    def begin(self) -> None:
        """The next one."""
        output, features = self._output, self._features
        if self._switching.is_wanted:
            assert isinstance(output, str), "a pipe is refused"
            output, features = f"{output}.{self._time()}", replace(features)
        self._all.append(Destination(output, self._events, features))
        if len(self._all) > self._switching.files:
            self._all.pop(0).discard()
            self.dropped += 1

    def publish(self, complete: Callable[[PerfDataWriter, Features], None]) -> tuple[tuple[str, ...], int]:
        """The paths at which they are, and their size in bytes. `complete` says what is known only now."""
        paths, size = [], 0
        for destination in self._all:
            complete(destination.writer, destination.features)
            path, bytes_ = destination.publish()
            paths.append(path)
            size += bytes_
        return tuple(paths), size

    def __enter__(self) -> Destinations:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for destination in self._all[:-1]:
            if error is not None:
                destination.discard()
        self._all[-1].__exit__(kind, error, trace)
