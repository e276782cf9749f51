"""IoApic: interrupts of devices, as messages to local APICs. Intel 82093AA data sheet; with an EOI register."""

from __future__ import annotations

from collections.abc import Callable

from emulator.board.pc.local_apic import DELIVERIES, Delivery, Message, of_32_bits

PINS = 24
VERSION = (PINS - 1) << 16 | 0x20
SELECT, WINDOW, EOI = 0x00, 0x10, 0x40  # offsets in memory
IDENTIFICATION, VERSION_REGISTER, ARBITRATION, FIRST_ENTRY = 0, 1, 2, 0x10  # by SELECT
REMOTE_IRR, LEVEL, MASKED, LOGICAL = 1 << 14, 1 << 15, 1 << 16, 1 << 11
_READ_ONLY = 1 << 12 | REMOTE_IRR
_WORD = 0xFFFF_FFFF


class IoApic:
    """`send` gets the messages."""

    kept = "_identification", "_selected", "_entries", "_levels"

    def __init__(self, identification: int, send: Callable[[Message], None]) -> None:
        self._send = send
        self._identification = identification << 24
        self._selected = 0
        self._entries = [MASKED] * PINS
        self._levels = 0  # a bit for each pin that is asserted

    def set_level(self, pin: int, asserted: bool) -> None:
        """Pins are active high here, whatever polarity an entry has: it is what the wire's polarity is declared as."""
        before = self._levels >> pin & 1
        self._levels = self._levels & ~(1 << pin) | asserted << pin
        if not asserted:
            return
        if self._entries[pin] & LEVEL:
            self._serve(pin)
        elif not before and not self._entries[pin] & MASKED:  # an edge at a masked pin is lost
            self._deliver(pin)

    def end_of_interrupt(self, vector: int) -> None:
        for pin, entry in enumerate(self._entries):
            if entry & LEVEL and entry & 0xFF == vector:
                self._entries[pin] &= ~REMOTE_IRR
                self._serve(pin)

    def _serve(self, pin: int) -> None:
        """A level-triggered pin: once, until its end is heard."""
        if self._levels >> pin & 1 and not self._entries[pin] & (MASKED | REMOTE_IRR):
            self._entries[pin] |= REMOTE_IRR
            self._deliver(pin)

    def _deliver(self, pin: int) -> None:
        entry = self._entries[pin]
        delivery = DELIVERIES.get(entry >> 8 & 7)
        if delivery is None or delivery is Delivery.EXTERNAL:  # the 8259 has the first CPU's LINT0
            return
        self._send(
            Message(
                delivery,
                entry & 0xFF,
                of_32_bits(entry >> 56, logical=bool(entry & LOGICAL)),
                logical=bool(entry & LOGICAL),
                level_triggered=bool(entry & LEVEL),
            )
        )

    # ---- registers

    def read(self, offset: int, size: int) -> int:
        if offset == SELECT:
            return self._selected
        return self._read_selected() if offset == WINDOW else 0

    def _read_selected(self) -> int:
        if self._selected in (IDENTIFICATION, ARBITRATION):
            return self._identification
        if self._selected == VERSION_REGISTER:
            return VERSION
        pin, half = divmod(self._selected - FIRST_ENTRY, 2)
        return self._entries[pin] >> 32 * half & _WORD if 0 <= pin < PINS else 0

    def write(self, offset: int, size: int, value: int) -> None:
        if offset == SELECT:
            self._selected = value & 0xFF
        elif offset == EOI:
            self.end_of_interrupt(value & 0xFF)
        elif offset == WINDOW and self._selected == IDENTIFICATION:
            self._identification = value & 0x0F00_0000
        elif offset == WINDOW:
            pin, half = divmod(self._selected - FIRST_ENTRY, 2)
            if 0 <= pin < PINS:
                self._write_entry(pin, half, value & _WORD)

    def _write_entry(self, pin: int, half: int, value: int) -> None:
        shift = 32 * half
        new = self._entries[pin] & ~(_WORD << shift) | value << shift
        entry = new & ~_READ_ONLY | self._entries[pin] & _READ_ONLY
        if not entry & LEVEL:
            entry &= ~REMOTE_IRR
        self._entries[pin] = entry
        if entry & LEVEL:
            self._serve(pin)
