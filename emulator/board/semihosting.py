"""Semihosting: calls by which bare-metal programs use the machine that they are tried on: "Semihosting for AArch32 and
AArch64", Arm, 2.0. Files are those below the directories that the user has bound, TAG/name; there are no others.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from emulator.board.ninep.share import Names, Share
from emulator.board.serial_input import Source
from emulator.clock import Clock

TRAP = 0xD45E_0000  # HLT #0xF000
FIELD_BYTES = 8  # of a call's parameters
FAILED = -1
APPLICATION_EXIT = 0x2_0026  # ADP_Stopped_ApplicationExit
TERMINAL, FEATURES = ":tt", ":semihosting-features"
OFFERED = b"SHFB\x03"  # SYS_EXIT_EXTENDED, and a standard error apart
# Of fopen(3)'s modes r, r+, w, w+, a, a+, with or without b, by their number / 2
MODES = (
    os.O_RDONLY,
    os.O_RDWR,
    os.O_WRONLY | os.O_TRUNC | os.O_CREAT,
    os.O_RDWR | os.O_TRUNC | os.O_CREAT,
    os.O_WRONLY | os.O_APPEND | os.O_CREAT,
    os.O_RDWR | os.O_APPEND | os.O_CREAT,
)
MOST_BYTES, MOST_TEXT_BYTES, MOST_FILES = 16 << 20, 1 << 20, 64  # of a call, of a string, open
MOST_SHOWN = 200  # characters of a name, in a message
TICKS_HZ = 1_000_000_000
CENTISECOND_NS = 10_000_000


class Caller(Protocol):
    """Memory as the guest sees it at the moment: bytes, or the address that is missing; how much could be written."""

    def read(self, address: int, size: int) -> bytes | int: ...

    def write(self, address: int, data: bytes) -> int: ...

    def read_string(self, address: int, limit: int) -> bytes | int: ...


class Refused(Exception):
    """A call fails: `code` is what SYS_ERRNO says then."""

    def __init__(self, code: int) -> None:
        super().__init__(os.strerror(code))
        self.code = code


def _shown(path: str) -> str:
    """As much of it as fits into a line."""
    return repr(path if len(path) <= MOST_SHOWN else path[:MOST_SHOWN] + "...")


@dataclass
class File:
    """What a handle is for."""

    share: Share | None = None  # None: the terminal, or what cannot be written
    descriptor: int = -1
    at: int = 0
    contents: bytes | None = None  # of the features' file
    appends: bool = False

    @property
    def is_terminal(self) -> bool:
        return self.contents is None and self.descriptor < 0


class Semihosting:
    """The calls of one board."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        source: Source | None,
        shares: Mapping[str, Share],
        command_line: str,
        clock: Clock,
        end: Callable[[int], None],
        message: Callable[[str], None],
    ) -> None:
        """`end` gets the exit status."""
        self._send = send
        self._source = source
        self._shares = shares
        self._command_line = command_line
        self._clock = clock
        self._end = end
        self._message = message
        self._typed = b""  # and not read yet
        self._error = 0
        self._files: dict[int, File] = {}
        self._answers: Mapping[int, Callable[[Caller, int], int]] = {
            0x01: self._open,
            0x02: self._close,
            0x03: self._write_character,
            0x04: self._write_text,
            0x05: self._write,
            0x06: self._read,
            0x07: lambda caller, block: self._character(),
            0x08: lambda caller, block: int(self._fields(caller, block, 1)[0] >> 63),
            0x09: lambda caller, block: int(self._file(self._fields(caller, block, 1)[0]).is_terminal),
            0x0A: self._seek,
            0x0C: lambda caller, block: self._size(self._file(self._fields(caller, block, 1)[0])),
            0x0E: self._remove,
            0x0F: self._rename,
            0x10: lambda caller, block: clock.elapsed_ns() // CENTISECOND_NS,
            0x11: lambda caller, block: clock.realtime_ns() // 1_000_000_000,
            0x13: lambda caller, block: self._error,
            0x15: self._tell_command_line,
            0x16: self._tell_heap,
            0x18: self._exit,
            0x20: self._exit,
            0x30: self._elapsed,
            0x31: lambda caller, block: TICKS_HZ,
        }

    def __del__(self) -> None:
        for file in self._files.values():
            if file.descriptor >= 0:
                os.close(file.descriptor)

    def __call__(self, caller: Caller, operation: int, block: int) -> int:
        """What X0 is then; `block` is X1."""
        answer = self._answers.get(operation)
        if answer is None:
            self._message(f"semihosting operation {operation:#x} is not modelled: it fails")
            return FAILED
        try:
            return answer(caller, block)
        except Refused as refusal:
            self._error = refusal.code
        except OSError as problem:
            self._error = problem.errno or errno.EIO
        except (OverflowError, ValueError):
            self._error = errno.EINVAL
        return FAILED

    # ---- what a call is given

    def _bytes(self, caller: Caller, address: int, size: int) -> bytes:
        found = caller.read(address, size)
        if isinstance(found, int):
            raise Refused(errno.EFAULT)
        return found

    def _fields(self, caller: Caller, block: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}Q", self._bytes(caller, block, FIELD_BYTES * count))

    def _text(self, caller: Caller, address: int, size: int) -> str:
        if size > MOST_TEXT_BYTES:
            raise Refused(errno.ENAMETOOLONG)
        return os.fsdecode(self._bytes(caller, address, size))

    def _put(self, caller: Caller, address: int, data: bytes) -> None:
        if caller.write(address, data) < len(data):
            raise Refused(errno.EFAULT)

    def _file(self, handle: int) -> File:
        file = self._files.get(handle)
        if file is None:
            raise Refused(errno.EBADF)
        return file

    def _found(self, path: str) -> tuple[Share, Names]:
        """Where a name leads: `TAG/name`."""
        tag, *names = path.split("/")
        share = self._shares.get(tag)
        if share is None or not names:
            what = f"{_shown(path)} is no file below what is bound; TAG/name is, with --bind HOST:TAG"
            self._message(f"semihosting: {what}")
            raise Refused(errno.ENOENT)
        return share, tuple(names)

    # ---- the terminal

    def _write_character(self, caller: Caller, block: int) -> int:
        self._send(self._bytes(caller, block, 1))
        return 0

    def _write_text(self, caller: Caller, block: int) -> int:
        found = caller.read_string(block, MOST_TEXT_BYTES)
        if isinstance(found, int):
            raise Refused(errno.EFAULT)
        self._send(found)
        return 0

    def _character(self) -> int:
        found = self._taken(1)
        return found[0] if found else FAILED

    def _taken(self, most: int) -> bytes:
        """Of what is typed, or comes from the user's file: at most a line; nothing at its end."""
        while not self._typed and self._source is not None:
            found = self._source.take(most, None)
            if found is None:
                self._source = None
            else:
                self._typed = found
        data, self._typed = self._typed[:most], self._typed[most:]
        return data

    # ---- files

    def _open(self, caller: Caller, block: int) -> int:
        address, mode, size = self._fields(caller, block, 3)
        path = self._text(caller, address, size)
        if mode >= 2 * len(MODES):
            raise Refused(errno.EINVAL)
        if len(self._files) >= MOST_FILES:
            raise Refused(errno.EMFILE)
        handle = next(number for number in range(1, MOST_FILES + 1) if number not in self._files)
        self._files[handle] = self._opened(path, MODES[mode // 2])
        return handle

    def _opened(self, path: str, flags: int) -> File:
        if path == TERMINAL:
            return File()
        if path == FEATURES and flags == os.O_RDONLY:
            return File(contents=OFFERED)
        share, names = self._found(path)
        makes = bool(flags & os.O_CREAT)
        try:
            descriptor = share.open(names, flags & ~(os.O_CREAT | os.O_APPEND))
        except FileNotFoundError:
            if not makes:
                raise
            descriptor = share.create(names, flags & os.O_ACCMODE, 0o644)
        return File(share, descriptor, appends=bool(flags & os.O_APPEND))

    def _close(self, caller: Caller, block: int) -> int:
        (handle,) = self._fields(caller, block, 1)
        file = self._file(handle)
        del self._files[handle]
        if file.descriptor >= 0:
            os.close(file.descriptor)
        return 0

    def _write(self, caller: Caller, block: int) -> int:
        """How many bytes were not written."""
        handle, address, size = self._fields(caller, block, 3)
        file, data = self._file(handle), self._bytes(caller, address, min(size, MOST_BYTES))
        if file.is_terminal:
            self._send(data)
            return size - len(data)
        if file.share is None:
            raise Refused(errno.EBADF)
        file.share.spend(len(data))
        at = self._size(file) if file.appends else file.at
        written = os.pwrite(file.descriptor, data, at)
        file.at = at + written
        file.share.note_change(os.fstat(file.descriptor))
        return size - written

    def _read(self, caller: Caller, block: int) -> int:
        """How many bytes were not read."""
        handle, address, size = self._fields(caller, block, 3)
        file, most = self._file(handle), min(size, MOST_BYTES)
        if file.is_terminal:
            data = self._taken(most) if most else b""
        elif file.contents is not None:
            data = file.contents[file.at : file.at + most]
        else:
            data = os.pread(file.descriptor, most, file.at)
        self._put(caller, address, data)
        file.at += len(data)
        return size - len(data)

    def _size(self, file: File) -> int:
        if file.is_terminal:
            raise Refused(errno.ESPIPE)
        return len(file.contents) if file.contents is not None else os.fstat(file.descriptor).st_size

    def _seek(self, caller: Caller, block: int) -> int:
        handle, at = self._fields(caller, block, 2)
        file = self._file(handle)
        if at > self._size(file):
            raise Refused(errno.EINVAL)
        file.at = at
        return 0

    def _remove(self, caller: Caller, block: int) -> int:
        share, names = self._found(self._text(caller, *self._fields(caller, block, 2)))
        share.remove(names, directory=False)
        return 0

    def _rename(self, caller: Caller, block: int) -> int:
        address, size, new_address, new_size = self._fields(caller, block, 4)
        share, names = self._found(self._text(caller, address, size))
        new_share, new_names = self._found(self._text(caller, new_address, new_size))
        if share is not new_share:
            raise Refused(errno.EXDEV)
        share.rename(names, new_names)
        return 0

    # ---- what is told

    def _tell_command_line(self, caller: Caller, block: int) -> int:
        address, room = self._fields(caller, block, 2)
        data = self._command_line.encode()
        if len(data) >= room:
            raise Refused(errno.E2BIG)
        self._put(caller, address, data + b"\0")
        self._put(caller, block + FIELD_BYTES, struct.pack("<Q", len(data)))
        return 0

    def _tell_heap(self, caller: Caller, block: int) -> int:
        """Nothing: a program's own layout says where its heap and stack are."""
        self._put(caller, self._fields(caller, block, 1)[0], bytes(4 * FIELD_BYTES))
        return 0

    def _elapsed(self, caller: Caller, block: int) -> int:
        self._put(caller, block, struct.pack("<Q", self._clock.elapsed_ns()))
        return 0

    def _exit(self, caller: Caller, block: int) -> int:
        reason, status = self._fields(caller, block, 2)
        self._end(status & 0xFF if reason == APPLICATION_EXIT else 1)
        return 0
