"""Tasks: processes and threads as records tell of them: names, mapped files, forks; resolves addresses to Places."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from perfcore.abi.constants import Misc
from perfcore.abi.records import Comm, Exit, Fork, Mmap, Mmap2, Mmap2BuildId, Record
from perfemu.profile.places import Place
from perfemu.symbols.finder import SymbolFinder

KERNEL_PID = 0xFFFFFFFF  # of the records that tell of the kernel's own text
_MAP_ANONYMOUS = 0x20
_ANONYMOUS_NAMES = ("//anon", "/dev/zero", "/anon_hugepage", "/SYSV", "[heap]", "[stack")


class _Mapping(NamedTuple):
    start: int
    end: int
    offset: int  # in the file, of `start`
    path: str


class AddressSpace:
    """What is mapped where in one process. `places` remembers what was resolved since the last change."""

    def __init__(self, mappings: list[_Mapping] | None = None) -> None:
        self._mappings = mappings or []  # ascending, without overlaps
        self.places: dict[int, Place] = {}

    def copy(self) -> AddressSpace:
        return AddressSpace(list(self._mappings))

    def clear(self) -> None:
        self._mappings = []
        self.places = {}

    def add(self, new: _Mapping) -> None:
        """Map; whatever was there before in this range is gone."""
        kept = []
        for old in self._mappings:
            if old.end <= new.start or old.start >= new.end:
                kept.append(old)
                continue
            if old.start < new.start:
                kept.append(old._replace(end=new.start))
            if old.end > new.end:
                kept.append(old._replace(start=new.end, offset=old.offset + new.end - old.start))
        kept.append(new)
        kept.sort()
        self._mappings = kept
        self.places = {}

    def find(self, address: int) -> _Mapping | None:
        index = bisect_right(self._mappings, (address, 1 << 64, 0, "")) - 1
        if index >= 0 and address < self._mappings[index].end:
            return self._mappings[index]
        return None


class Tasks:
    """Fed with records in time order."""

    def __init__(self, finder: SymbolFinder) -> None:
        self._finder = finder
        self._comms: dict[int, str] = {0: "swapper"}  # by tid
        self._spaces: dict[int, AddressSpace] = {}  # by pid

    def apply(self, record: Record, misc: int) -> None:
        """Take in what a record says; those that say nothing about tasks are ignored."""
        if isinstance(record, (Mmap2, Mmap2BuildId, Mmap)):
            self._map(record, misc)
        elif isinstance(record, Comm):
            self._comms[record.tid] = record.comm
            if misc & Misc.COMM_EXEC:
                self.space(record.pid).clear()
        elif isinstance(record, Fork):
            self._comms[record.tid] = self.comm(record.ptid)
            if record.pid != record.ppid:
                self._spaces[record.pid] = self.space(record.ppid).copy()
        elif isinstance(record, Exit):
            return  # late samples of the task may still come

    def comm(self, tid: int) -> str:
        """perf shows a thread that it was never told of as a colon and its number."""
        return self._comms.get(tid) or f":{tid}"

    def space(self, pid: int) -> AddressSpace:
        found = self._spaces.get(pid)
        if found is None:
            found = self._spaces[pid] = AddressSpace()
        return found

    def resolve(self, pid: int, address: int, in_kernel: bool) -> Place:
        """The place of an address; the same object until the process's mappings change."""
        space = self.space(KERNEL_PID if in_kernel else pid)
        place = space.places.get(address)
        if place is None:
            place = space.places[address] = self._place(space, address, in_kernel)
        return place

    def _place(self, space: AddressSpace, address: int, in_kernel: bool) -> Place:
        mapping = space.find(address)
        if mapping is None:
            return Place(address, address, "", None, in_kernel)
        offset = address - mapping.start + mapping.offset
        if in_kernel:
            return Place(address, address, mapping.path, None, in_kernel)
        return Place(address, offset, mapping.path, self._finder.file(mapping.path), in_kernel)

    def _map(self, record: Mmap | Mmap2 | Mmap2BuildId, misc: int) -> None:
        path, pid, offset = record.filename, record.pid, record.pgoff
        if misc & Misc.CPUMODE_MASK == Misc.KERNEL:
            pid = KERNEL_PID
            if path.startswith("[kernel.kallsyms]"):
                path = "[kernel.kallsyms]"
        elif path.startswith(_ANONYMOUS_NAMES[:4]):
            path, offset = f"/tmp/perf-{pid}.map", record.addr  # perf: code made at run time
        self.space(pid).add(_Mapping(record.addr, record.addr + record.len, offset, path))
