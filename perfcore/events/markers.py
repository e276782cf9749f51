"""Markers: instructions that do nothing, by which a program says where a region of it begins and ends.

On AArch64 they are HINTs that the architecture has not allocated, on x86-64 a NOP of eight bytes with a displacement
of ours: real CPUs execute both as nothing at all. Each has one of eight numbers. They are looked for in the files that
a program maps as code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from emulator.cpu import Cpu
from emulator.linux.mm.breakpoints import Listener
from emulator.linux.mm.mapping import Mapping
from emulator.linux.process.task import Task
from perfcore.events.code_places import CodePlaces
from perfcore.events.kernel import Linux

NUMBERS = 8
_MOST_CODE_BYTES = 1 << 32  # of all mappings of a run, that are looked through: some seconds
_MOST_MARKERS = 1 << 16  # of a program, that are heeded: more than anybody writes, and no burden


@dataclass(frozen=True, slots=True)
class Marker:
    """One of them, and where it is in the code that was looked through."""

    offset: int
    number: int
    begins: bool  # a region, rather than ends it


@dataclass(frozen=True, slots=True)
class _Encoding:
    pattern: re.Pattern[bytes]
    alignment: int  # bytes
    decode: Callable[[bytes], tuple[int, bool]]  # the two groups -> number, whether it begins a region


def _hint(varying: bytes) -> tuple[int, bool]:
    """op2 in bits 5 to 7; CRm is 14 or 15 in bits 8 to 11."""
    return varying[0] >> 5, varying[1] == 0x2E


def _nop(varying: bytes) -> tuple[int, bool]:
    """The lowest byte of the displacement."""
    return varying[0] & 7, varying[0] & 0xF0 == 0xB0


_ENCODINGS = {
    # HINT #112 + n, HINT #120 + n: 1101 0101 0000 0011 0010 CRm op2 11111
    "aarch64": _Encoding(re.compile(rb"([\x1f\x3f\x5f\x7f\x9f\xbf\xdf\xff][\x2e\x2f])\x03\xd5"), 4, _hint),
    # NOPL 0x4d4550Bn(%RAX,%RAX), NOPL 0x4d4550En(%RAX,%RAX): 0F 1F, ModRM, SIB, "PEM" above the lowest byte
    "x86_64": _Encoding(re.compile(rb"\x0f\x1f\x84\x00([\xb0-\xb7\xe0-\xe7])PEM", re.DOTALL), 1, _nop),
}


def find_markers(code: bytes, isa: str) -> Iterator[Marker]:
    """All in `code`, which begins at an instruction."""
    encoding = _ENCODINGS[isa]
    for match in encoding.pattern.finditer(code):
        if match.start() % encoding.alignment == 0:
            yield Marker(match.start(), *encoding.decode(match[1]))


@dataclass(slots=True)
class MarkerCounts:
    """What has happened."""

    found: int = 0  # markers of the number that is wanted, in code that was mapped
    entered: int = 0
    ended: int = 0


class Markers:
    """Which threads are between a marker that begins a region and one that ends it; `number` None: any.

    The one that begins counts, the one that ends does not. Within a region another beginning changes nothing, nor does
    another end outside. Processes that are forked inside are inside, threads that are made there are not; the end of a
    thread, or another program in its place, ends its region.
    """

    def __init__(self, kernel: Linux, isa: str, number: int | None = None) -> None:
        """Make it before tasks run."""
        self.counts = MarkerCounts()
        self._kernel, self._isa, self._number = kernel, isa, number
        self._inside: set[Task] = set()
        self._moved: list[Callable[[Task], None]] = []
        self._bytes_left = _MOST_CODE_BYTES
        self._known: dict[tuple[object, int, int], dict[int, Listener]] = {}  # by file, offset and length
        self._places = CodePlaces(kernel, self._find)
        kernel.tracepoints.task_fork.subscribe(self._task_fork)
        kernel.tracepoints.task_exec.subscribe(self._leave)
        kernel.tracepoints.task_exit.subscribe(self._leave)

    def __contains__(self, task: Task) -> bool:
        return task in self._inside

    def on_moved(self, moved: Callable[[Task], None]) -> None:
        self._moved.append(moved)

    def _find(self, mapping: Mapping) -> dict[int, Listener]:
        """Each part of a file is looked through once: a guest may map it as often as it likes."""
        key = mapping.file, mapping.offset, mapping.length
        if key not in self._known:
            self._known[key] = found = self._look_through(mapping)
            self.counts.found += len(found)
        return self._known[key]

    def _look_through(self, mapping: Mapping) -> dict[int, Listener]:
        if mapping.content is None:
            return {}
        code = mapping.content.read_at(mapping.offset, min(mapping.length, self._bytes_left))
        self._bytes_left -= len(code)
        wanted = (marker for marker in find_markers(code, self._isa) if self._number in (None, marker.number))
        return {
            mapping.offset + marker.offset: partial(self._reached, marker.begins)
            for marker in islice(wanted, _MOST_MARKERS - self.counts.found)
        }

    def _reached(self, begins: bool, cpu: Cpu) -> None:
        task = self._kernel.current(cpu)
        assert task is not None, "an idle CPU comes to no breakpoint"
        if not begins:
            self.counts.ended += task in self._inside
            self._leave(task)
        elif task not in self._inside:
            self.counts.entered += 1
            self._inside.add(task)
            self._tell(task)

    def _leave(self, task: Task) -> None:
        if task in self._inside:
            self._inside.remove(task)
            self._tell(task)

    def _task_fork(self, parent: Task, child: Task) -> None:
        """It is on no CPU yet."""
        if parent in self._inside and child.pid != parent.pid:
            self._inside.add(child)

    def _tell(self, task: Task) -> None:
        for moved in self._moved:
            moved(task)
