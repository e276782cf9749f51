"""Server: answers messages of 9P2000.L from a share."""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from emulator.board.kept import WrongState
from emulator.board.ninep.share import Names, Share, refused
from emulator.board.ninep.wire import HEAD, BadMessage, Fields, text

VERSION, UNKNOWN_VERSION = "9P2000.L", "unknown"
ERROR, REPLY = 7, 1  # kinds: Rlerror, and what an answer's is more than its question's
LEAST_MESSAGE_BYTES, MOST_MESSAGE_BYTES = 4096, 512 << 10
READ_HEAD_BYTES = HEAD.size + 4  # in front of what is read
MOST_FIDS, MOST_OPEN, MOST_LISTED = 1 << 16, 256, 1 << 20  # entries of all directories that are being listed
MOST_STEPS = 16  # of one walk
ALL_BASIC = 0x7FF  # attributes: mode to blocks
SET_MODE, SET_UID, SET_GID, SET_SIZE, SET_MTIME, SET_MTIME_TO = 1, 2, 4, 8, 32, 256
REMOVE_DIRECTORY = 0x200  # AT_REMOVEDIR
FILE_SYSTEM = struct.pack("<IIQQQQQQI", 0x0102_1997, 4096, *[1 << 24] * 3, *[1 << 20] * 2, 0, 255)  # pinned
NS = 1_000_000_000
BLOCK_BYTES = 512
ONE, TWO, FOUR = struct.Struct("<I"), struct.Struct("<II"), struct.Struct("<IIII")
READ, WRITE = struct.Struct("<IQI"), struct.Struct("<IQI")
ATTRIBUTES_ASKED = struct.Struct("<IQ")
ATTRIBUTES_SET = struct.Struct("<IIIIIQQQQQ")
ATTRIBUTES_TIMES = struct.Struct("<8q")  # a file may be older than 1970
LOCK = struct.Struct("<IBIQQI")


@dataclass
class Fid:
    """What the guest has a number for."""

    names: Names
    descriptor: int = -1
    entries: list[bytes] = field(default_factory=list)  # of a directory that is being listed

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


class Server:
    """One client's files. They are the host's: as long as it has opened some, there is no state to be kept."""

    kept = ("opened",)

    def __init__(self, share: Share) -> None:
        self._share = share
        self._fids: dict[int, Fid] = {}
        self._most = MOST_MESSAGE_BYTES
        self._answers: Mapping[int, Callable[[Fields], bytes]] = {
            8: lambda fields: FILE_SYSTEM,
            12: self._open,
            14: self._create,
            16: self._make_symlink,
            20: self._rename,
            22: self._read_link,
            24: self._attributes,
            26: self._set_attributes,
            40: self._read_directory,
            50: self._synchronize,
            52: lambda fields: b"\0",  # locks: nobody else has any
            54: self._lock_of,
            70: self._make_link,
            72: self._make_directory,
            74: self._rename_at,
            76: self._remove_at,
            100: self._version,
            104: self._attach,
            108: lambda fields: b"",  # nothing is under way
            110: self._walk,
            116: self._read,
            118: self._write,
            120: self._clunk,
            122: self._remove,
        }

    def __del__(self) -> None:
        self.reset()

    @property
    def opened(self) -> int:
        """How many numbers the client has for files."""
        return len(self._fids)

    @opened.setter
    def opened(self, count: int) -> None:
        if count:
            raise WrongState(f"{count} open files")

    def reset(self) -> None:
        for fid in self._fids.values():
            fid.close()
        self._fids.clear()

    def answer(self, message: bytes) -> bytes:
        """Raises BadMessage for what is none."""
        fields = Fields(message)
        _, kind, tag = fields.numbers(HEAD)
        answer = self._answers.get(kind)
        try:
            if answer is None:  # of what other servers have not either: extended attributes, device files
                raise refused(errno.EOPNOTSUPP)
            kind, body = kind + REPLY, answer(fields)
        except OSError as problem:
            kind, body = ERROR, ONE.pack(problem.errno or errno.EIO)
        except (BadMessage, ValueError):  # a name with a zero in it, a number that no host takes
            kind, body = ERROR, ONE.pack(errno.EINVAL)
        except OverflowError:
            kind, body = ERROR, ONE.pack(errno.EFBIG)
        return HEAD.pack(HEAD.size + len(body), kind, tag) + body

    # ---- fids

    def _fid(self, number: int) -> Fid:
        fid = self._fids.get(number)
        if fid is None:
            raise refused(errno.EBADF)
        return fid

    def _give(self, number: int, names: Names) -> None:
        if number in self._fids:
            raise refused(errno.EBADF)
        if len(self._fids) >= MOST_FIDS:
            raise refused(errno.ENFILE)
        self._fids[number] = Fid(names)

    def _unopened(self, number: int) -> Fid:
        """What is open stays what it is."""
        fid = self._fid(number)
        if fid.descriptor >= 0:
            raise refused(errno.EINVAL)
        return fid

    def _close(self, fid: Fid) -> None:
        if fid.descriptor >= 0:
            self._share.forget_if_gone(os.fstat(fid.descriptor), names_left=0)
        fid.close()

    def _check_open_files(self) -> None:
        if sum(fid.descriptor >= 0 for fid in self._fids.values()) >= MOST_OPEN:
            raise refused(errno.EMFILE)

    def _status(self, fid: Fid) -> os.stat_result:
        """An open file is still there when its name is gone."""
        return os.fstat(fid.descriptor) if fid.descriptor >= 0 else self._share.status(fid.names)

    def _qid(self, names: Names) -> bytes:
        return self._share.qid(self._share.status(names)).packed

    def _move(self, source: Names, target: Names) -> None:
        """What is below has moved along."""
        self._share.rename(source, target)
        for fid in self._fids.values():
            if fid.names[: len(source)] == source:
                fid.names = target + fid.names[len(source) :]

    # ---- a session

    def _version(self, fields: Fields) -> bytes:
        (most,) = fields.numbers(ONE)
        self.reset()
        self._most = min(max(most, LEAST_MESSAGE_BYTES), MOST_MESSAGE_BYTES)
        return ONE.pack(self._most) + text(VERSION if fields.text() == VERSION else UNKNOWN_VERSION)

    def _attach(self, fields: Fields) -> bytes:
        number, _ = fields.numbers(TWO)
        self._give(number, ())
        return self._qid(())

    def _walk(self, fields: Fields) -> bytes:
        number, new = fields.numbers(TWO)
        (steps,) = fields.numbers(struct.Struct("<H"))
        names, found = self._fid(number).names, list[bytes]()
        if steps > MOST_STEPS:
            raise refused(errno.EINVAL)
        for step in [sys.intern(fields.text()) for _ in range(steps)]:  # fids that share names share their bytes
            try:
                names = names[:-1] if step == ".." else (*names, step)
                found.append(self._qid(names))
            except OSError:
                if not found:
                    raise
                break
        if len(found) == steps:
            if new == number:
                self._unopened(number).names = names
            else:
                self._give(new, names)
        return struct.pack("<H", len(found)) + b"".join(found)

    def _clunk(self, fields: Fields) -> bytes:
        (number,) = fields.numbers(ONE)
        self._close(self._fid(number))
        del self._fids[number]
        return b""

    # ---- files

    def _open(self, fields: Fields) -> bytes:
        number, flags = fields.numbers(TWO)
        fid = self._unopened(number)
        self._check_open_files()
        fid.descriptor = self._share.open(fid.names, flags)
        status = os.fstat(fid.descriptor)
        if flags & os.O_TRUNC:
            self._share.note_change(status)
        return self._share.qid(status).packed + ONE.pack(0)

    def _create(self, fields: Fields) -> bytes:
        (number,) = fields.numbers(ONE)
        fid, name = self._unopened(number), fields.text()
        flags, permissions, _ = fields.numbers(struct.Struct("<III"))
        self._check_open_files()
        names = (*fid.names, name)
        fid.descriptor = self._share.create(names, flags, permissions)
        fid.names = names
        return self._share.qid(os.fstat(fid.descriptor)).packed + ONE.pack(0)

    def _read(self, fields: Fields) -> bytes:
        number, offset, count = fields.numbers(READ)
        data = os.pread(self._file(number), min(count, self._most - READ_HEAD_BYTES), offset)
        return ONE.pack(len(data)) + data

    def _write(self, fields: Fields) -> bytes:
        number, offset, count = fields.numbers(WRITE)
        data = fields.raw(count)
        descriptor = self._file(number)
        self._share.check_writable()
        self._share.spend(count)
        written = os.pwrite(descriptor, data, offset)
        self._share.note_change(os.fstat(descriptor))
        return ONE.pack(written)

    def _file(self, number: int) -> int:
        """The descriptor of one that is open."""
        descriptor = self._fid(number).descriptor
        if descriptor < 0:
            raise refused(errno.EBADF)
        return descriptor

    def _synchronize(self, fields: Fields) -> bytes:
        """What the host's kernel has, it has: the machine's crash is not the host's."""
        self._fid(fields.numbers(ONE)[0])
        return b""

    def _lock_of(self, fields: Fields) -> bytes:
        """Nobody has any: the lock that is asked for is F_UNLCK."""
        _, _, start, size, process = fields.numbers(struct.Struct("<IBQQI"))
        return struct.pack("<BQQI", 2, start, size, process) + text(fields.text())

    def _read_link(self, fields: Fields) -> bytes:
        return text(self._share.target(self._fid(fields.numbers(ONE)[0]).names))

    def _read_directory(self, fields: Fields) -> bytes:
        number, offset, count = fields.numbers(READ)
        fid = self._fid(number)
        self._file(number)
        if not offset:
            fid.entries = []
            entries = self._listing(fid.names)
            if sum(len(fid.entries) for fid in self._fids.values()) + len(entries) > MOST_LISTED:
                raise refused(errno.ENOMEM)
            fid.entries = entries
        found, room = bytearray(), min(count, self._most - READ_HEAD_BYTES)
        for number in range(offset, len(fid.entries)):
            if len(found) + len(fid.entries[number]) > room:
                break
            found += fid.entries[number]
        return ONE.pack(len(found)) + bytes(found)

    def _listing(self, names: Names) -> list[bytes]:
        entries = [(".", self._share.qid(self._share.status(names)))]
        entries.append(("..", self._share.qid(self._share.status(names[:-1]))))
        entries += self._share.entries(names)
        return [
            qid.packed + struct.pack("<QB", number, stat.S_IFMT(qid.mode) >> 12) + text(name)
            for number, (name, qid) in enumerate(entries, 1)
        ]

    # ---- attributes

    def _attributes(self, fields: Fields) -> bytes:
        number, _ = fields.numbers(ATTRIBUTES_ASKED)
        found = self._share.attributes(self._status(self._fid(number)))
        blocks = -(-found.size // BLOCK_BYTES)
        sizes = struct.pack("<IIIQQQQQ", found.mode, found.owner, found.group, found.links, 0, found.size, 4096, blocks)
        time = divmod(found.modified_ns, NS)
        return (
            struct.pack("<Q", ALL_BASIC) + found.qid.packed + sizes + ATTRIBUTES_TIMES.pack(*time * 3, 0, 0) + bytes(16)
        )

    def _set_attributes(self, fields: Fields) -> bytes:
        number, valid, mode, owner, group, size, _, _, modified_s, modified_ns = fields.numbers(ATTRIBUTES_SET)
        fid, share = self._fid(number), self._share
        share.check_writable()
        found = share.attributes(self._status(fid))
        if (valid & SET_UID and owner != found.owner) or (valid & SET_GID and group != found.group):
            raise refused(errno.EPERM)  # whose they are on the host is the host's
        if valid & SET_MODE:
            share.set_mode(fid.names, mode)
        if valid & SET_SIZE:
            share.set_size(fid.names, size)
        if valid & SET_MTIME:
            share.set_modified(fid.names, modified_s * NS + modified_ns if valid & SET_MTIME_TO else None)
        return b""

    # ---- names

    def _named(self, fields: Fields) -> Names:
        """A directory's fid, and a name in it."""
        return (*self._fid(fields.numbers(ONE)[0]).names, fields.text())

    def _make_directory(self, fields: Fields) -> bytes:
        names = self._named(fields)
        mode, _ = fields.numbers(TWO)
        self._share.make_directory(names, mode & 0o7777)
        return self._qid(names)

    def _make_symlink(self, fields: Fields) -> bytes:
        names = self._named(fields)
        self._share.make_symlink(names, fields.text())
        return self._qid(names)

    def _make_link(self, fields: Fields) -> bytes:
        directory, source = fields.numbers(TWO)
        self._share.make_link((*self._fid(directory).names, fields.text()), self._fid(source).names)
        return b""

    def _rename(self, fields: Fields) -> bytes:
        number, directory = fields.numbers(TWO)
        self._move(self._fid(number).names, (*self._fid(directory).names, fields.text()))
        return b""

    def _rename_at(self, fields: Fields) -> bytes:
        source = self._named(fields)
        self._move(source, self._named(fields))
        return b""

    def _remove_at(self, fields: Fields) -> bytes:
        names = self._named(fields)
        (flags,) = fields.numbers(ONE)
        self._share.remove(names, directory=bool(flags & REMOVE_DIRECTORY))
        return b""

    def _remove(self, fields: Fields) -> bytes:
        """Of a fid, which is gone in any case."""
        (number,) = fields.numbers(ONE)
        fid = self._fid(number)
        self._close(fid)
        del self._fids[number]
        is_directory = stat.S_ISDIR(self._share.status(fid.names).st_mode)
        self._share.remove(fid.names, directory=is_directory)
        return b""
