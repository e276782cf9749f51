"""Pl011: Arm's serial port. Arm DDI 0183, "Programmers Model". It sends at once, and never loses a byte: more than its
FIFO holds waits in front of it."""

from __future__ import annotations

from collections.abc import Callable

DR, FR, IBRD, FBRD, LCR_H, CR, IFLS, IMSC, RIS, MIS, ICR = (
    0x00, 0x18, 0x24, 0x28, 0x2C, 0x30, 0x34, 0x38, 0x3C, 0x40, 0x44,
)  # fmt: skip
TX_EMPTY, RX_FULL, RX_EMPTY = 1 << 7, 1 << 6, 1 << 4
RX_INTERRUPT, TX_INTERRUPT, TIMEOUT_INTERRUPT = 1 << 4, 1 << 5, 1 << 6
INCOMING = RX_INTERRUPT | TIMEOUT_INTERRUPT  # always both: nobody waits for a FIFO to fill
FIFO = 16  # bytes
POLLS = 256  # looks at the flags in a row, without a byte, by which a guest waits for one
# UARTPeriphID0..3 and UARTPCellID0..3, r1p5
IDENTIFICATION = dict(zip(range(0xFE0, 0x1000, 4), (0x11, 0x10, 0x34, 0x00, 0x0D, 0xF0, 0x05, 0xB1), strict=True))


class Pl011:
    """A port whose bytes go to `send`, with its interrupt line."""

    kept = "_received", "_raw", "_polls", "transfers", "_kept"
    kept_growing = ("_received",)

    def __init__(self, send: Callable[[bytes], None], set_line: Callable[[bool], None]) -> None:
        self._send = send
        self._set_line = set_line
        self._received = bytearray()
        self._raw = 0  # RIS
        self._polls = 0
        self.transfers = 0  # bytes that were read or written
        self.when_polled: Callable[[], None] | None = None  # called when somebody looks for bytes again and again
        self._kept = {IBRD: 0, FBRD: 0, LCR_H: 0, CR: 0x300, IFLS: 0x12, IMSC: 0}

    @property
    def wants_input(self) -> bool:
        """Whether somebody waits to be interrupted by bytes, and has read all there were."""
        return not self._received and bool(self._kept[IMSC] & INCOMING)

    def receive(self, data: bytes) -> None:
        """Bytes from outside: they wait until the guest reads them."""
        self._received += data
        self._update()

    def read(self, offset: int, size: int) -> int:
        if offset == DR:
            self._note_transfer()
            byte = self._received.pop(0) if self._received else 0
            self._update()
            return byte
        if offset == FR:
            self._note_poll()
            full = RX_FULL if len(self._received) >= FIFO else 0
            return TX_EMPTY | full | (0 if self._received else RX_EMPTY)
        if offset == RIS:
            return self._raw
        if offset == MIS:
            return self._raw & self._kept[IMSC]
        return self._kept.get(offset, IDENTIFICATION.get(offset, 0))

    def write(self, offset: int, size: int, value: int) -> None:
        if offset == DR:
            self._note_transfer()
            self._send(bytes((value & 0xFF,)))
            self._raw |= TX_INTERRUPT
        elif offset == ICR:
            self._raw &= ~value
        elif offset in self._kept:
            self._kept[offset] = value & 0xFFFF
        self._update()

    def _note_poll(self) -> None:
        self._polls += 1
        if self._polls >= POLLS and not self._received:
            self._polls = 0
            if self.when_polled is not None:
                self.when_polled()

    def _note_transfer(self) -> None:
        self.transfers += 1
        self._polls = 0

    def _update(self) -> None:
        self._raw = self._raw | INCOMING if self._received else self._raw & ~INCOMING
        self._set_line(bool(self._raw & self._kept[IMSC]))
