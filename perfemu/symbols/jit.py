"""jit: the symbols of code that a program made at run time, from what it wrote: perf-PID.map and jitdump.

As tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt. Addresses are the process's. Both files
are a guest's, so anything may be in them: what makes no sense ends the reading, without a word.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from perfemu.symbols.table import Symbol, SymbolTable

JIT_MAP = re.compile(r"/tmp/perf-(\d{1,10})\.map")  # perf's name for anonymous memory with code in it
JITDUMP = re.compile(r"(?:.*/)?jit-\d+\.dump")
MOST_BYTES = 64 << 20  # of one file

_MAGIC = 0x4A695444  # "JiTD", as the writer's words are; the other way round it is a big-endian machine's
_HEADER = struct.Struct("<4I2I2Q")  # magic, version, total size, ELF machine, padding, pid, time, flags
_RECORD = struct.Struct("<IIQ")  # id, total size, time
_LOAD, _MOVE = 0, 1
_LOADED = struct.Struct("<II4Q")  # pid, tid, vma, address, size, index; then the name, and the code
_MOVED = struct.Struct("<II5Q")  # pid, tid, vma, old address, new address, size, index
_LAST_ADDRESS = (1 << 64) - 1
_MOST_SYMBOLS = 1_000_000  # of a process: a file of nothing but lines is no reason to use up the memory


def host_jit_map(path: str) -> bytes | None:
    """A map that a program of the host has left, if it is the user's or root's, as perf wants it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()):
            return None
        return file.read(MOST_BYTES)


def jit_symbols(map_contents: bytes, dumps: Iterable[bytes], pid: int) -> SymbolTable:
    """Of one process. Where code replaced other code, the last."""
    made = chain(_of_map(map_contents), *(_of_dump(dump, pid) for dump in dumps))
    return SymbolTable(_without_overlaps(islice(made, _MOST_SYMBOLS)))


def _of_map(contents: bytes) -> Iterator[Symbol]:
    """Lines of start and size in hex, and the name, in which there may be spaces."""
    for line in contents.split(b"\n"):
        fields = line.split(None, 2)
        if len(fields) < 3:
            continue
        try:
            start, size = int(fields[0], 16), int(fields[1], 16)
        except ValueError:
            continue
        if 0 <= start and 0 < size and start + size <= _LAST_ADDRESS:
            yield Symbol(start, start + size, fields[2].decode("utf-8", "replace").rstrip())


def _of_dump(contents: bytes, wanted_pid: int) -> Iterator[Symbol]:
    if len(contents) < _HEADER.size:
        return
    magic, _, position, *_ = _HEADER.unpack_from(contents)
    names: dict[int, str] = {}  # by index
    while magic == _MAGIC and position + _RECORD.size <= len(contents):
        kind, size, _ = _RECORD.unpack_from(contents, position)
        end = position + size
        if size < _RECORD.size or end > len(contents):
            return
        body = position + _RECORD.size
        if kind == _LOAD and body + _LOADED.size <= end:
            pid, _, _, start, length, index = _LOADED.unpack_from(contents, body)
            name_at = body + _LOADED.size
            name = contents[name_at:end].split(b"\0", 1)[0].decode("utf-8", "replace")
            names[index] = name
            if pid == wanted_pid and length:
                yield Symbol(start, start + length, name)
        elif kind == _MOVE and body + _MOVED.size <= end:
            pid, _, _, _, start, length, index = _MOVED.unpack_from(contents, body)
            if pid == wanted_pid and length and index in names:
                yield Symbol(start, start + length, names[index])
        position = end


def _without_overlaps(made: Iterable[Symbol]) -> list[Symbol]:
    """In the order of making: what lies over older code takes its place."""
    kept: list[Symbol] = []  # ascending, without overlaps
    starts: list[int] = []
    for symbol in made:
        if not starts or symbol.start >= kept[-1].end:  # the usual case
            kept.append(symbol)
            starts.append(symbol.start)
            continue
        first = bisect_right(starts, symbol.start) - 1
        if first < 0 or kept[first].end <= symbol.start:
            first += 1
        last = bisect_left(starts, symbol.end)
        left = [old._replace(end=symbol.start) for old in kept[first : first + 1] if old.start < symbol.start]
        right = [old._replace(start=symbol.end) for old in kept[last - 1 : last] if last and old.end > symbol.end]
        kept[first:last] = [*left, symbol, *right]
        starts[first:last] = [each.start for each in (*left, symbol, *right)]
    return kept
