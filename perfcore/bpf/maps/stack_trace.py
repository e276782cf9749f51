"""STACK_TRACE: callchains by a number that follows from what they are. kernel/bpf/stackmap.c."""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from typing import ClassVar
from zlib import crc32

from emulator.linux.errors import EEXIST, EINVAL, ENOENT, LinuxError
from perfcore.bpf.maps.array import index_of
from perfcore.bpf.maps.map import OVERHEAD_BYTES, Host, Map, MapRequest

SKIP_FIELD = 0xFF
USER_STACK, FAST_STACK_CMP, REUSE_STACKID = 1 << 8, 1 << 9, 1 << 10


class StackTraceMap(Map):
    """A bucket for each number. Where Linux takes jhash, here it is a CRC: which number it is says nothing."""

    has_lookup = False
    helpers: ClassVar[frozenset[str]] = frozenset({"get_stackid"})

    @classmethod
    def check(cls, request: MapRequest) -> None:
        cls.check_flags(request)
        if not request.max_entries or request.key_size != 4 or request.value_size < 8 or request.value_size % 8:
            raise LinuxError(EINVAL, "a stack trace's key has 4 bytes, its value a multiple of 8")

    def __init__(self, request: MapRequest, host: Host) -> None:
        if request.value_size // 8 > host.max_stack:
            raise LinuxError(EINVAL, f"traces of {request.value_size // 8} addresses: perf_event_max_stack")
        super().__init__(request, host)
        self._buckets = 1 << (request.max_entries - 1).bit_length()
        self.allocate((request.value_size + OVERHEAD_BYTES) * self._buckets)  # counts, where traces are ours
        self._traces: dict[int, bytes] = {}
        self._numbers: list[int] = []  # in order

    def number_of(self, addresses: list[int], flags: int) -> int:
        """bpf_get_stackid(): EEXIST where the bucket has another one."""
        trace = struct.pack(f"<{len(addresses)}Q", *addresses)
        number = crc32(trace) & self._buckets - 1
        present = self._traces.get(number)
        if present is not None and present != trace and not flags & REUSE_STACKID:
            raise LinuxError(EEXIST, "another trace has the number")
        if present is None:
            insort(self._numbers, number)
        self._traces[number] = trace
        return number

    def read(self, key: bytes) -> bytes:
        trace = self._traces.get(index_of(key))
        if trace is None:
            raise LinuxError(ENOENT, f"no trace has number {index_of(key)}")
        return trace.ljust(self.request.value_size, b"\0")

    def update(self, key: bytes, value: bytes, flags: int) -> None:
        raise LinuxError(EINVAL, "traces are put there by programs")

    def delete(self, key: bytes) -> None:
        number = index_of(key)
        if self._traces.pop(number, None) is None:
            raise LinuxError(ENOENT, f"no trace has number {number}")
        del self._numbers[bisect_left(self._numbers, number)]

    def next_key(self, key: bytes | None) -> bytes:
        first = 0 if key is None or index_of(key) not in self._traces else index_of(key) + 1
        at = bisect_left(self._numbers, first)
        if at == len(self._numbers):
            raise LinuxError(ENOENT, "that was the last trace")
        return struct.pack("<I", self._numbers[at])
