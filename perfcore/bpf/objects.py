"""What programs, maps, BTF and links have in common: who has them, and their numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
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
        self._numbers: list[int] = []  # in order
        self._last = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def add(self, thing: T) -> None:
        if len(self._objects) >= _MOST:
            raise LinuxError(ENOSPC, f"there are {_MOST} of them")
        self._last += 1
        thing.id = self._last
        self._objects[self._last] = thing
        self._numbers.append(self._last)

    def remove(self, thing: T) -> None:
        if self._objects.pop(thing.id, None) is not None:
            del self._numbers[bisect_left(self._numbers, thing.id)]

    def get(self, id: int) -> T:
        found = self._objects.get(id)
        if found is None:
            raise LinuxError(ENOENT, f"there is no object {id}")
        return found

    def after(self, id: int) -> int:
        """The next number that is in use. ENOENT."""
        at = bisect_right(self._numbers, id)
        if at == len(self._numbers):
            raise LinuxError(ENOENT, f"there is no object behind {id}")
        return self._numbers[at]


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

    def drop_unused(self) -> None:
        """It ends if nobody has come to have it: what was made of it has failed."""
        if not self.references:
            self.end()

    def end(self) -> None:
        """Nobody has it any more."""
        raise NotImplementedError
