"""PERF_EVENT_ARRAY: perf events to which programs write records, or which they read. kernel/bpf/arraymap.c."""

from __future__ import annotations

import struct
from typing import ClassVar

from emulator.linux.errors import E2BIG, EBADF, EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.fs.file import Caller
from perfcore.abi.bpf import MapFlag, UpdateFlag
from perfcore.bpf.maps.array import IndexedMap, index_of
from perfcore.bpf.maps.map import Host, MapRequest
from perfcore.events.event import PerfEvent
from perfcore.events.event_file import PerfEventFile


class PerfEventArrayMap(IndexedMap):
    """By index, usually of the CPU. An entry keeps its event open, until the map's last descriptor is closed."""

    permitted_flags = MapFlag.PRESERVE_ELEMS
    has_lookup = False
    helpers: ClassVar[frozenset[str]] = frozenset({"perf_event_read", "perf_event_output", "perf_event_read_value"})

    @classmethod
    def check(cls, request: MapRequest) -> None:
        super().check(request)
        if request.value_size != 4:
            raise LinuxError(EINVAL, f"the map's values are descriptors, of 4 bytes, not {request.value_size}")

    def __init__(self, request: MapRequest, host: Host) -> None:
        super().__init__(request, host)
        self.allocate(8 * request.max_entries)  # counts, where entries are ours
        self._files: dict[int, PerfEventFile] = {}

    def event(self, index: int) -> PerfEvent:
        """E2BIG beyond the end, ENOENT where none is."""
        if index >= self.request.max_entries:
            raise LinuxError(E2BIG, f"index {index}: there are {self.request.max_entries} entries")
        file = self._files.get(index)
        if file is None:
            raise LinuxError(ENOENT, f"no event is at index {index}")
        return file.event

    def write(self, task: Caller, key: bytes, value: bytes, flags: int) -> None:
        if flags != UpdateFlag.ANY:
            raise LinuxError(EINVAL, f"an update with flags {flags:#x}")
        index = self.index(key)
        if index is None:
            raise LinuxError(E2BIG, f"index {index_of(key)}: there are {self.request.max_entries} entries")
        file = task.files.get(struct.unpack("<I", value)[0])
        if not isinstance(file, PerfEventFile):
            raise LinuxError(EBADF, "the descriptor is no perf event's")
        if file.event.attr.inherit:
            raise LinuxError(EOPNOTSUPP, "programs do not read inherited events")
        file.retain()
        self._put(index, file)

    def _put(self, index: int, file: PerfEventFile | None) -> None:
        old = self._files.pop(index, None)
        if file is not None:
            self._files[index] = file
        if old is not None:
            old.release()

    def remove(self, key: bytes) -> None:
        index = self.index(key)
        if index is None:
            raise LinuxError(E2BIG, f"index {index_of(key)}: there are {self.request.max_entries} entries")
        if index not in self._files:
            raise LinuxError(ENOENT, f"no event is at index {index}")
        self._put(index, None)

    def released_by_processes(self) -> None:
        if not self.request.flags & MapFlag.PRESERVE_ELEMS:
            self.free_entries()

    def free_entries(self) -> None:
        for index in list(self._files):
            self._put(index, None)

    def free(self) -> None:
        self.free_entries()
        super().free()
