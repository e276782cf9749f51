"""BeyondRam: the physical addresses of a pc's CPU that are no RAM: its own local APIC, and what is on the bus."""

from __future__ import annotations

from collections.abc import Callable

from emulator.board.bus import Bus, Unmodelled
from emulator.board.pc.local_apic import LocalApic, Mode
from emulator.board.pc.memory_map import LOCAL_APIC, LOCAL_APIC_BYTES
from emulator.board.trace import Trace
from emulator.cpu import Cpu


class BeyondRam:
    """An access to nothing reads ones, and is told."""

    def __init__(
        self, cpu: Cpu, apic: LocalApic, bus: Bus, trace: Callable[[], Trace], message: Callable[[str], None]
    ) -> None:
        self._cpu, self._apic, self._bus = cpu, apic, bus
        self._trace, self._message = trace, message

    def _is_apics(self, address: int) -> bool:
        return self._apic.mode == Mode.XAPIC and LOCAL_APIC <= address < LOCAL_APIC + LOCAL_APIC_BYTES

    def read(self, address: int, size: int) -> int:
        try:
            if self._is_apics(address):
                value = self._apic.read(address - LOCAL_APIC, size)
            else:
                value = self._bus.read(address, size)
        except Unmodelled as error:
            self._message(f"{error}: all bits are ones; PC {self._cpu.core.pc:#x}")
            value = (1 << 8 * size) - 1
        if self._trace().mmio:
            self._note_access("load", address, size, value)
        return value

    def write(self, address: int, size: int, value: int) -> None:
        if self._trace().mmio:
            self._note_access("store", address, size, value)
        try:
            if self._is_apics(address):
                self._apic.write(address - LOCAL_APIC, size, value)
            else:
                self._bus.write(address, size, value)
        except Unmodelled as error:
            self._message(f"{error}: nothing happens; PC {self._cpu.core.pc:#x}")

    def _note_access(self, what: str, address: int, size: int, value: int) -> None:
        if self._is_apics(address):
            place = f"local APIC + {address - LOCAL_APIC:#x}"
        else:
            try:
                place = self._bus.place(address, size)
            except Unmodelled:
                place = f"{address:#x}"
        self._trace().note(self._cpu, f"{place}: {what} of {size} bytes: {value:#x}")
