"""Hash tables: HASH, PERCPU_HASH, and those that let the least recently used element go. kernel/bpf/hashtab.c.

Where Linux follows its buckets, elements come in the order in which they were made: nobody may rely on either.
"""

from __future__ import annotations

from itertools import islice
from typing import ClassVar

from emulator.linux.errors import E2BIG, EEXIST, EINVAL, ENOENT, ENOTSUPP, LinuxError
from emulator.linux.fs.file import Caller
from perfcore.abi.bpf import F_LOCK, MapFlag, UpdateFlag
from perfcore.bpf.instructions import STACK_BYTES
from perfcore.bpf.maps.map import ELEMENT_HELPERS, OVERHEAD_BYTES, Host, Map, MapRequest, round_up

_LARGEST_ELEMENT = (1 << 22) - STACK_BYTES  # KMALLOC_MAX_SIZE
_END = -1


class HashMap(Map):
    """Slots in memory, and which key has which. The used ones are a list, the newest last."""

    permitted_flags = MapFlag.NO_PREALLOC | MapFlag.ZERO_SEED
    helpers: ClassVar[frozenset[str]] = ELEMENT_HELPERS
    has_batch = True
    copies = 1  # of each value

    def __init__(self, request: MapRequest, host: Host) -> None:
        super().__init__(request, host)
        self.stride = round_up(request.value_size, 8)
        element = self.stride * self.copies + round_up(request.key_size, 8) + OVERHEAD_BYTES
        self.memory = self.allocate(element * request.max_entries)  # keys, and what a table needs, count as well
        self._slots: dict[bytes, int] = {}
        self._keys: dict[int, bytes] = {}
        self._next: dict[int, int] = {_END: _END}
        self._previous: dict[int, int] = {_END: _END}
        self._free: list[int] = []

    @classmethod
    def check(cls, request: MapRequest) -> None:
        cls.check_flags(request)
        super().check(request)
        if request.key_size + request.value_size >= _LARGEST_ELEMENT:
            raise LinuxError(E2BIG, f"elements of {request.key_size} and {request.value_size} bytes")

    # ---- slots

    def _append(self, slot: int) -> None:
        last = self._previous[_END]
        self._next[last], self._previous[slot] = slot, last
        self._next[slot], self._previous[_END] = _END, slot

    def _unlink(self, slot: int) -> None:
        before, after = self._previous.pop(slot), self._next.pop(slot)
        self._next[before], self._previous[after] = after, before

    def _slot(self, key: bytes) -> int | None:
        return self._slots.get(key)

    def _make(self, key: bytes) -> int:
        """A slot for a new element, its values zeroes. E2BIG where there is none."""
        if len(self._slots) >= self.request.max_entries:
            self.make_room()
        slot = self._free.pop() if self._free else len(self._slots)
        self._slots[key] = slot
        self._keys[slot] = key
        self._append(slot)
        start = self._start(slot, 0)
        self.memory.data[start : start + self.stride * self.copies] = bytes(self.stride * self.copies)
        return slot

    def make_room(self) -> None:
        raise LinuxError(E2BIG, f"the map has its {self.request.max_entries} elements")

    def remove_oldest(self) -> None:
        self.delete(self._keys[self._next[_END]])

    def used(self, slot: int) -> None:
        """An element has been looked up or written."""

    def move_to_the_end(self, slot: int) -> None:
        self._unlink(slot)
        self._append(slot)

    def _start(self, slot: int, copy: int) -> int:
        return (slot * self.copies + copy) * self.stride

    def _for_update(self, key: bytes, flags: int) -> int:
        if flags & ~F_LOCK > UpdateFlag.EXIST:
            raise LinuxError(EINVAL, f"an update with flags {flags:#x}")
        slot = self._slot(key)
        if slot is not None and flags & UpdateFlag.NOEXIST:
            raise LinuxError(EEXIST, "the element exists")
        if slot is None and flags & UpdateFlag.EXIST:
            raise LinuxError(ENOENT, "there is no such element")
        if slot is None:
            return self._make(key)
        self.used(slot)
        return slot

    def _present(self, key: bytes) -> int:
        slot = self._slot(key)
        if slot is None:
            raise LinuxError(ENOENT, "there is no such element")
        return slot

    # ---- by programs

    def lookup(self, key: bytes) -> int:
        slot = self._slot(key)
        if slot is None:
            return 0
        self.used(slot)
        return self.memory.address_of(self._start(slot, self.own_copy))

    @property
    def own_copy(self) -> int:
        return 0

    def update(self, key: bytes, value: bytes, flags: int) -> None:
        start = self._start(self._for_update(key, flags), self.own_copy)
        self.memory.data[start : start + self.request.value_size] = value

    def delete(self, key: bytes) -> None:
        slot = self._present(key)
        del self._slots[key], self._keys[slot]
        self._unlink(slot)
        self._free.append(slot)

    @property
    def count(self) -> int:
        return len(self._slots)

    def elements(self) -> list[tuple[bytes, int]]:
        copy = self.own_copy
        return [(key, self.memory.address_of(self._start(slot, copy))) for key, slot in self._slots.items()]

    # ---- by system calls

    def read(self, key: bytes) -> bytes:
        start = self._start(self._present(key), 0)
        return bytes(self.memory.data[start : start + self.value_bytes])

    def take(self, key: bytes) -> bytes:
        value = self.read(key)
        self.delete(key)
        return value

    def keys_from(self, first: int, most: int) -> list[bytes]:
        return list(islice(self._slots, first, first + most))

    def next_key(self, key: bytes | None) -> bytes:
        slot = None if key is None else self._slot(key)
        following = self._next[_END if slot is None else slot]
        if following == _END:
            raise LinuxError(ENOENT, "that was the last element")
        return self._keys[following]


class PercpuHashMap(HashMap):
    """Each CPU has its value of an element."""

    helpers: ClassVar[frozenset[str]] = HashMap.helpers | {"map_lookup_percpu_elem"}

    def __init__(self, request: MapRequest, host: Host) -> None:
        self.copies = host.cpu_count
        super().__init__(request, host)

    @property
    def own_copy(self) -> int:
        return self.host.cpu_number

    @property
    def value_bytes(self) -> int:
        return self.stride * self.copies

    def lookup_of_cpu(self, key: bytes, cpu: int) -> int:
        slot = self._slot(key)
        return 0 if slot is None else self.memory.address_of(self._start(slot, cpu))

    def write(self, task: Caller, key: bytes, value: bytes, flags: int) -> None:
        start = self._start(self._for_update(key, flags), 0)
        self.memory.data[start : start + self.value_bytes] = value


def check_preallocated(request: MapRequest) -> None:
    """What lets elements go has room for all of them from the beginning."""
    if request.flags & MapFlag.NO_PREALLOC:
        raise LinuxError(ENOTSUPP, f"BPF_F_NO_PREALLOC is not for {request.type.name} maps")


class LruHashMap(HashMap):
    """Where there is no room the least recently used element goes: exactly that, where Linux is content with one of
    the older ones."""

    permitted_flags = MapFlag.NO_COMMON_LRU | MapFlag.ZERO_SEED

    @classmethod
    def check(cls, request: MapRequest) -> None:
        check_preallocated(request)
        super().check(request)

    def make_room(self) -> None:
        self.remove_oldest()

    def used(self, slot: int) -> None:
        self.move_to_the_end(slot)


class LruPercpuHashMap(PercpuHashMap):
    """Both."""

    permitted_flags = LruHashMap.permitted_flags

    @classmethod
    def check(cls, request: MapRequest) -> None:
        check_preallocated(request)
        super().check(request)

    def make_room(self) -> None:
        self.remove_oldest()

    def used(self, slot: int) -> None:
        self.move_to_the_end(slot)
