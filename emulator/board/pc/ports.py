"""Ports: what is in I/O space, by port. Where nothing is, all bits read as ones, as on a PC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.board.bus import Device


@dataclass(frozen=True, slots=True)
class PortRange:
    name: str
    first: int
    count: int
    device: Device
    width: int  # bytes that it takes at once; a wider access is one to each of so many ports


class Ports:
    """Devices by port. A port of ABSENT, and those of a range that is not there, answers without a word."""

    def __init__(self, message: Callable[[str], None]) -> None:
        self._message = message
        self.ranges: list[PortRange] = []
        self._by_port: dict[int, PortRange] = {}
        self._silent = {port for first, count in ABSENT.values() for port in range(first, first + count)}

    def attach(self, name: str, first: int, count: int, device: Device, width: int = 1) -> None:
        """ValueError where another device is."""
        attached = PortRange(name, first, count, device, width)
        for port in range(first, first + count):
            if port in self._by_port:
                raise ValueError(f"{name} at port {port:#x} overlaps {self._by_port[port].name}")
            self._by_port[port] = attached
        self.ranges.append(attached)

    def place(self, port: int) -> str:
        found = self._by_port.get(port)
        return f"port {port:#x}" if found is None else f"{found.name}, port {port:#x}"

    def read(self, port: int, size: int) -> int:
        found = self._by_port.get(port)
        if found is None:
            self._note_absent(port, "IN")
            return (1 << 8 * size) - 1
        step = min(found.width, size)
        value = 0
        for part in range(0, size, step):
            if (port + part) & 0xFFFF in self._by_port and found is self._by_port[(port + part) & 0xFFFF]:
                piece = found.device.read(port + part - found.first, step) & ((1 << 8 * step) - 1)
            else:
                piece = self.read(port + part & 0xFFFF, step)
            value |= piece << 8 * part
        return value

    def write(self, port: int, size: int, value: int) -> None:
        found = self._by_port.get(port)
        if found is None:
            self._note_absent(port, "OUT")
            return
        step = min(found.width, size)
        for part in range(0, size, step):
            piece = value >> 8 * part & ((1 << 8 * step) - 1)
            if found is self._by_port.get((port + part) & 0xFFFF):
                found.device.write(port + part - found.first, step, piece)
            else:
                self.write(port + part & 0xFFFF, step, piece)

    def _note_absent(self, port: int, what: str) -> None:
        if port not in self._silent:
            self._message(f"{what} at port {port:#x}, where this board has nothing")


# What images look for and do well without: name -> (first port, ports)
ABSENT = {
    "DMA controller 1": (0x00, 0x10),
    "Super I/O": (0x2E, 2),
    "more Super I/O": (0x4E, 2),
    "keyboard controller": (0x60, 1),
    "DMA pages, port 80H": (0x80, 0x10),
    "delay": (0xED, 1),
    "DMA controller 2": (0xC0, 0x20),
    "coprocessor": (0xF0, 2),
    "secondary IDE": (0x170, 8),
    "primary IDE": (0x1F0, 8),
    "game port": (0x200, 8),
    "parallel port 2": (0x278, 8),
    "COM4": (0x2E8, 8),
    "COM2": (0x2F8, 8),
    "parallel port 1": (0x378, 8),
    "VGA": (0x3B0, 0x30),
    "COM3": (0x3E8, 8),
    "floppy disks": (0x3F0, 8),
    "bochs debug port": (0xE9, 1),
    "PCI configuration": (0xCF8, 8),
}
