"""What programs, maps, BTF and links have in common: who has them, and their numbers."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from emulator.linux.errors import ENOENT, ENOSPC, LinuxError

_MOST = 1 << 16  # objects of one kind


class Numbered(Protocol):
    id: int


T = TypeVar("T", bound=Numbered)


class Registry(Generic[T]):
    """The objects of one kind by their numbers, which grow (idr_alloc_cyclic)."""

    def __init__(self) -> None:
        self._objects: dict[int, T] = {}
        self._last = 0

    def add(self, thing: T) -> None:
        if len(self._objects) >= _MOST:
            raise LinuxError(ENOSPC, f"there are {_MOST} of them")
        self._last += 1
        thing.id = self._last
        self._objects[self._last] = thing

    def remove(self, thing: T) -> None:
        self._objects.pop(thing.id, None)

    def get(self, id: int) -> T:
        found = self._objects.get(id)
        if found is None:
            raise LinuxError(ENOENT, f"there is no object {id}")
        return found

    def after(self, id: int) -> int:
        """The next number that is in use. ENOENT."""
        following = min((number for number in self._objects if number > id), default=None)
        if following is None:
            raise LinuxError(ENOENT, f"there is no object behind {id}")
        return following


class Shared:
    """What several have: it ends with the last of them."""

    references = 0

    def retain(self) -> None:
        self.references += 1

    def release(self) -> None:
        assert self.references > 0, "released more often than retained"
        self.references -= 1
        if not self.references:
            self.end()

    def end(self) -> None:
        """Nobody has it any more."""
        raise NotImplementedError
