"""Bus: which device answers at a physical address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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


class Bus:
    """Devices by address. There are few, and accesses to them are rare beside instructions."""

    def __init__(self) -> None:
        self.regions: list[Region] = []

    def attach(self, name: str, start: int, size: int, device: Device) -> None:
        """ValueError where another device is."""
        for region in self.regions:
            if start < region.start + region.size and region.start < start + size:
                raise ValueError(f"{name} at {start:#x} overlaps {region.name}")
        self.regions.append(Region(name, start, size, device))

    def read(self, address: int, size: int) -> int:
        region = self._region(address, size, "a load")
        return region.device.read(address - region.start, size) & ((1 << 8 * size) - 1)

    def write(self, address: int, size: int, value: int) -> None:
        region = self._region(address, size, "a store")
        region.device.write(address - region.start, size, value & ((1 << 8 * size) - 1))

    def place(self, address: int, size: int) -> str:
        """The device there, and the offset in it. Raises Unmodelled."""
        region = self._region(address, size, "an access")
        return f"{region.name} + {address - region.start:#x}"

    def _region(self, address: int, size: int, what: str) -> Region:
        for region in self.regions:
            if region.start <= address and address + size <= region.start + region.size:
                return region
        raise Unmodelled(f"{what} of {size} bytes at physical address {address:#x}, where this board has nothing")
