"""Tasks: processes and threads as records tell of them: names, mapped files, forks; resolves addresses to Places."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from perfcore.abi.constants import Misc
from perfcore.abi.records import Comm, Fork, Mmap, Mmap2, Mmap2BuildId, Record
from perfemu.profile.places import Place
from perfemu.symbols.finder import SymbolFinder
from perfemu.symbols.kallsyms import KALLSYMS
from perfemu.visible import visible

KERNEL_PID = 0xFFFFFFFF  # of the records that tell of the kernel's own text
_ANONYMOUS_NAMES = ("//anon", "/dev/zero", "/anon_hugepage", "/SYSV", "[heap]", "[stack")


class _Mapping(NamedTuple):
    start: int
    end: int
    offset: int  # in the file, of `start`
    path: str


class Thread:
    """A thread; `comm` is its name now, and in the end its last one."""

    __slots__ = ("comm", "pid", "tid")

    def __init__(self, pid: int, tid: int, comm: str) -> None:
        self.pid = pid
        self.tid = tid
        self.comm = comm


class AddressSpace:
    """What is mapped where in one process. `places` and `chains` remember what was resolved since the last change."""

    def __init__(self, mappings: list[_Mapping] | None = None) -> None:
        self._mappings = mappings or []  # ascending, without overlaps
        self.places: dict[int, Place] = {}
        self.chains: dict[tuple[int, ...], tuple[Place, ...]] = {}

    def copy(self) -> AddressSpace:
        return AddressSpace(list(self._mappings))

    def clear(self) -> None:
        self._mappings = []
        self.places = {}
        self.chains = {}

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
        self.chains = {}

    def find(self, address: int) -> _Mapping | None:
        index = bisect_right(self._mappings, (address, 1 << 64, 0, "")) - 1
        if index >= 0 and address < self._mappings[index].end:
            return self._mappings[index]
        return None


class Tasks:
    """Fed with records in time order."""

    def __init__(self, finder: SymbolFinder) -> None:
        self._finder = finder
        self._threads: dict[int, Thread] = {0: Thread(0, 0, "swapper")}  # by tid
        self._spaces: dict[int, AddressSpace] = {}  # by pid
        self._path_numbers: dict[str, int] = {}

    def apply(self, record: Record, misc: int) -> None:
        """Take in what a record says. An EXIT changes nothing: late samples of the task may still come."""
        if isinstance(record, (Mmap2, Mmap2BuildId, Mmap)):
            self._map(record, misc)
        elif isinstance(record, Comm):
            self.thread(record.pid, record.tid).comm = visible(record.comm)
            if misc & Misc.COMM_EXEC:
                self.space(record.pid).clear()
        elif isinstance(record, Fork):
            self._threads[record.tid] = Thread(record.pid, record.tid, self.thread(record.ppid, record.ptid).comm)
            if record.pid != record.ppid:
                self._spaces[record.pid] = self.space(record.ppid).copy()

    def thread(self, pid: int, tid: int) -> Thread:
        """perf shows a thread whose name it was never told as a colon and its number."""
        found = self._threads.get(tid)
        if found is None:
            found = self._threads[tid] = Thread(pid, tid, f":{tid}")
        return found

    def process_of(self, tid: int) -> int:
        """The process of a thread; its own number if nobody has told of it."""
        found = self._threads.get(tid)
        return tid if found is None else found.pid

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
            return Place(address, address, "", -1, None, in_kernel)
        number = self._path_numbers[mapping.path]
        offset = address - mapping.start + mapping.offset
        if in_kernel:
            file = self._finder.file(KALLSYMS) if mapping.path.startswith("[") else None  # modules, too
            return Place(address, address, mapping.path, number, file, in_kernel)
        return Place(address, offset, mapping.path, number, self._finder.file(mapping.path), in_kernel)

    def _map(self, record: Mmap | Mmap2 | Mmap2BuildId, misc: int) -> None:
        path, pid, offset = record.filename, record.pid, record.pgoff
        if misc & Misc.CPUMODE_MASK == Misc.KERNEL:
            pid = KERNEL_PID
            if path.startswith(KALLSYMS):
                path = KALLSYMS
        elif path.startswith(_ANONYMOUS_NAMES[:4]):
            path, offset = f"/tmp/perf-{pid}.map", record.addr  # perf: code made at run time
        self._path_numbers.setdefault(path, len(self._path_numbers))
        self.space(pid).add(_Mapping(record.addr, record.addr + record.len, offset, path))
