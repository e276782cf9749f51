"""Bus: which device answers at a physical address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from emulator.board.register_maps import HasRegister

LOAD, STORE = "a load", "a store"
MOST_MISSED = 100  # of which the user is told


class Device(Protocol):
    """Registers in memory. Offsets are from the device's start, sizes 1, 2, 4 or 8 bytes; accesses are whole."""

    def read(self, offset: int, size: int) -> int: ...

    def write(self, offset: int, size: int, value: int) -> None: ...


class Unmodelled(Exception):
    """Nothing answers: says what was asked for, by address or name."""


@dataclass(frozen=True, slots=True)
class Region:
    name: str
    start: int  # physical address
    size: int
    device: Device
    has_register: HasRegister | None  # None: at each offset


class Bus:
    """Devices by address. There are few, and accesses to them are rare beside instructions."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.when_missing: Callable[[str], None] | None = None  # told of accesses where a device has no register
        self._missed: set[tuple[str, int, str]] = set()

    def attach(self, name: str, start: int, size: int, device: Device, has_register: HasRegister | None = None) -> None:
        """ValueError where another device is."""
        for region in self.regions:
            if start < region.start + region.size and region.start < start + size:
                raise ValueError(f"{name} at {start:#x} overlaps {region.name}")
        self.regions.append(Region(name, start, size, device, has_register))

    def read(self, address: int, size: int) -> int:
        region = self._region(address, size, LOAD)
        return region.device.read(address - region.start, size) & ((1 << 8 * size) - 1)

    def write(self, address: int, size: int, value: int) -> None:
        region = self._region(address, size, STORE)
        region.device.write(address - region.start, size, value & ((1 << 8 * size) - 1))

    def _miss(self, name: str, offset: int, what: str) -> None:
        """The guest goes on: once for each, as long as they are few."""
        if what not in (LOAD, STORE) or (name, offset, what) in self._missed or len(self._missed) >= MOST_MISSED:
            return
        self._missed.add((name, offset, what))
        if self.when_missing is not None:
            effect = "is ignored" if what == STORE else "gets 0"
            self.when_missing(f"{what} at {name} + {offset:#x}, where no register is modelled, {effect}")

    def place(self, address: int, size: int) -> str:
        """The device there, and the offset in it. Raises Unmodelled."""
        region = self._region(address, size, "an access")
        return f"{region.name} + {address - region.start:#x}"

    def _region(self, address: int, size: int, what: str) -> Region:
        for region in self.regions:
            if region.start <= address and address + size <= region.start + region.size:
                if region.has_register is not None and not region.has_register(address - region.start):
                    self._miss(region.name, address - region.start, what)
                return region
        raise Unmodelled(f"{what} of {size} bytes at physical address {address:#x}, where this board has nothing")
