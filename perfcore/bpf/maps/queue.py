"""QUEUE and STACK. kernel/bpf/queue_stack_maps.c."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from emulator.linux.errors import E2BIG, EINVAL, ENOENT, LinuxError
from emulator.linux.fs.file import Caller
from perfcore.abi.bpf import UpdateFlag
from perfcore.bpf.maps.map import OVERHEAD_BYTES, Host, Map, MapRequest


class QueueMap(Map):
    """Values without keys: the oldest comes first."""

    has_lookup = False
    helpers: ClassVar[frozenset[str]] = frozenset({"map_push_elem", "map_pop_elem", "map_peek_elem"})
    first_is_oldest = True

    @classmethod
    def check(cls, request: MapRequest) -> None:
        if not request.max_entries or request.key_size or not request.value_size:
            raise LinuxError(EINVAL, "a queue has values and entries, and no keys")
        cls.check_flags(request)
        if request.value_size > 1 << 22:
            raise LinuxError(E2BIG, f"values of {request.value_size} bytes")

    def __init__(self, request: MapRequest, host: Host) -> None:
        super().__init__(request, host)
        self.allocate((request.value_size + OVERHEAD_BYTES) * request.max_entries)  # counts, where values are ours
        self._values: deque[bytes] = deque()

    def update(self, key: bytes, value: bytes, flags: int) -> None:
        if flags & UpdateFlag.NOEXIST or flags > UpdateFlag.EXIST:
            raise LinuxError(EINVAL, f"a push with flags {flags:#x}")
        if len(self._values) >= self.request.max_entries:
            if not flags & UpdateFlag.EXIST:
                raise LinuxError(E2BIG, f"the map has its {self.request.max_entries} values")
            self._values.popleft()
        self._values.append(value)

    def delete(self, key: bytes) -> None:
        raise LinuxError(EINVAL, "values are popped, not deleted")

    def next_key(self, key: bytes | None) -> bytes:
        raise LinuxError(EINVAL, "there are no keys")

    def read(self, key: bytes) -> bytes:
        """The next one stays."""
        if not self._values:
            raise LinuxError(ENOENT, "there is no value")
        return self._values[0 if self.first_is_oldest else -1]

    def take(self, key: bytes) -> bytes:
        value = self.read(key)
        if self.first_is_oldest:
            self._values.popleft()
        else:
            self._values.pop()
        return value

    def write(self, task: Caller, key: bytes, value: bytes, flags: int) -> None:
        self.update(key, value, flags)


class StackMap(QueueMap):
    """... the newest."""

    first_is_oldest = False
