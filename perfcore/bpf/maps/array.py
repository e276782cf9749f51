"""Arrays: ARRAY, whose elements may be mapped, and PERCPU_ARRAY. kernel/bpf/arraymap.c."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import ClassVar

from emulator.linux.errors import E2BIG, EACCES, EEXIST, EINVAL, ENOENT, EPERM, LinuxError
from emulator.linux.fs.file import Caller
from emulator.linux.mm.mapping import PAGE_SIZE, PROT_WRITE
from perfcore.abi.bpf import F_LOCK, MapFlag, UpdateFlag
from perfcore.bpf.maps.map import ELEMENT_HELPERS, Host, Map, MapRequest, round_up

_LARGEST_VALUE = (1 << 31) - 1


def index_of(key: bytes) -> int:
    index: int = struct.unpack("<I", key)[0]
    return index


class IndexedMap(Map):
    """Keys are 0 to max_entries - 1, and all are there."""

    @classmethod
    def check(cls, request: MapRequest) -> None:
        if request.key_size != 4:
            raise LinuxError(EINVAL, f"an array's keys have 4 bytes, not {request.key_size}")
        super().check(request)
        if request.value_size > _LARGEST_VALUE:
            raise LinuxError(E2BIG, f"values of {request.value_size} bytes")

    def index(self, key: bytes) -> int | None:
        """None: beyond the end."""
        index = index_of(key)
        return index if index < self.request.max_entries else None

    def check_update(self, key: bytes, flags: int) -> int:
        if flags & ~F_LOCK > UpdateFlag.EXIST:
            raise LinuxError(EINVAL, f"an update with flags {flags:#x}")
        index = self.index(key)
        if index is None:
            raise LinuxError(E2BIG, f"index {index_of(key)}: there are {self.request.max_entries} elements")
        if flags & UpdateFlag.NOEXIST:
            raise LinuxError(EEXIST, "all elements of an array exist")
        return index

    def check_read(self, key: bytes) -> int:
        index = self.index(key)
        if index is None:
            raise LinuxError(ENOENT, f"index {index_of(key)}: there are {self.request.max_entries} elements")
        return index

    def delete(self, key: bytes) -> None:
        raise LinuxError(EINVAL, "elements of an array are not deleted")

    @property
    def count(self) -> int:
        return self.request.max_entries

    def keys_from(self, first: int, most: int) -> list[bytes]:
        end = min(first + most, self.request.max_entries)
        return [struct.pack("<I", index) for index in range(first, end)]

    def next_key(self, key: bytes | None) -> bytes:
        index = None if key is None else self.index(key)
        if index == self.request.max_entries - 1:
            raise LinuxError(ENOENT, "that was the last element")
        return struct.pack("<I", 0 if index is None else index + 1)


class ArrayMap(IndexedMap):
    """Elements one behind the other, each at a multiple of 8 bytes."""

    permitted_flags = MapFlag.MMAPABLE | MapFlag.INNER_MAP
    helpers: ClassVar[frozenset[str]] = ELEMENT_HELPERS
    has_batch = True

    def __init__(self, request: MapRequest, host: Host) -> None:
        super().__init__(request, host)
        self.stride = round_up(request.value_size, 8)
        self.memory = self.allocate(self.stride * request.max_entries)

    def lookup(self, key: bytes) -> int:
        index = self.index(key)
        return 0 if index is None else self.memory.address_of(index * self.stride)

    def update(self, key: bytes, value: bytes, flags: int) -> None:
        start = self.check_update(key, flags) * self.stride
        self.memory.data[start : start + self.request.value_size] = value

    def read(self, key: bytes) -> bytes:
        start = self.check_read(key) * self.stride
        return bytes(self.memory.data[start : start + self.request.value_size])

    def elements(self) -> Iterator[tuple[bytes, int]]:
        for index in range(self.request.max_entries):
            yield struct.pack("<I", index), self.memory.address_of(index * self.stride)

    @property
    def constant_bytes(self) -> memoryview | None:
        constant = self.frozen and self.request.flags & MapFlag.RDONLY_PROG
        return self.memory.data if constant and self.request.max_entries == 1 else None

    def map_frames(self, task: Caller, length: int, offset: int, protection: int) -> int:
        if not self.request.flags & MapFlag.MMAPABLE:
            raise LinuxError(EINVAL, "the array was made without BPF_F_MMAPABLE")
        if protection & PROT_WRITE:
            if self.frozen:
                raise LinuxError(EPERM, "the map is frozen")
            if self.request.flags & MapFlag.RDONLY_PROG:
                raise LinuxError(EACCES, "what programs may only read is not mapped for writing")
        if offset + length > round_up(self.stride * self.request.max_entries, PAGE_SIZE):
            raise LinuxError(EINVAL, f"{length:#x} bytes at {offset:#x} are more than the map has")
        return self.memory.first + offset // PAGE_SIZE


class PercpuArrayMap(IndexedMap):
    """Each CPU has its elements."""

    helpers: ClassVar[frozenset[str]] = ELEMENT_HELPERS | {"map_lookup_percpu_elem"}
    has_batch = True

    def __init__(self, request: MapRequest, host: Host) -> None:
        super().__init__(request, host)
        self.stride = round_up(request.value_size, 8)
        self.memory = self.allocate(self.stride * request.max_entries * host.cpu_count)

    def _start(self, index: int, cpu: int) -> int:
        return (cpu * self.request.max_entries + index) * self.stride

    def lookup(self, key: bytes) -> int:
        return self.lookup_of_cpu(key, self.host.cpu_number)

    def lookup_of_cpu(self, key: bytes, cpu: int) -> int:
        index = self.index(key)
        return 0 if index is None else self.memory.address_of(self._start(index, cpu))

    def update(self, key: bytes, value: bytes, flags: int) -> None:
        start = self._start(self.check_update(key, flags), self.host.cpu_number)
        self.memory.data[start : start + self.request.value_size] = value

    @property
    def value_bytes(self) -> int:
        return self.stride * self.host.cpu_count

    def write(self, task: Caller, key: bytes, value: bytes, flags: int) -> None:
        index = self.check_update(key, flags)
        for cpu in range(self.host.cpu_count):
            start = self._start(index, cpu)
            self.memory.data[start : start + self.stride] = value[cpu * self.stride : (cpu + 1) * self.stride]

    def read(self, key: bytes) -> bytes:
        starts = [self._start(self.check_read(key), cpu) for cpu in range(self.host.cpu_count)]
        return b"".join(bytes(self.memory.data[start : start + self.stride]) for start in starts)

    def elements(self) -> Iterator[tuple[bytes, int]]:
        for index in range(self.request.max_entries):
            key = struct.pack("<I", index)
            yield key, self.lookup(key)
