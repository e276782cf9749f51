"""VisibleRegister: one of a CPU's registers, as a debugger sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

AnyCpu = TypeVar("AnyCpu")


@dataclass(frozen=True)
class VisibleRegister(Generic[AnyCpu]):
    """`read` gives None where it is not modelled; `write` is None where debuggers may not change it."""

    name: str
    bits: int
    read: Callable[[AnyCpu], int | None]
    write: Callable[[AnyCpu, int], None] | None
