"""FwCfg: what QEMU tells its guests' firmware, at two ports. QEMU's docs/specs/fw_cfg; without DMA and files."""

from __future__ import annotations

SELECTOR, DATA = 0, 1
FIRST_PORT, PORTS = 0x510, 2
SIGNATURE, IDENTIFICATION, RAM_BYTES, CPUS, MOST_CPUS = 0x00, 0x01, 0x03, 0x05, 0x0F
COMMAND_LINE_BYTES, COMMAND_LINE, FILES = 0x14, 0x15, 0x19
NOTHING = 0xFFFF  # no item's number


class FwCfg:
    """Items by number; bytes of the one that is selected come one after the other, and zeroes behind."""

    kept = "_command_line", "_selected", "_at"
    kept_growing = ("_command_line",)

    def __init__(self, cpus: int, ram_bytes: int, command_line: str) -> None:
        self._command_line = command_line.encode() + b"\0"
        self._items = {
            SIGNATURE: b"QEMU",
            IDENTIFICATION: (1).to_bytes(4, "little"),  # the interface that this is
            RAM_BYTES: ram_bytes.to_bytes(8, "little"),
            CPUS: cpus.to_bytes(2, "little"),
            MOST_CPUS: cpus.to_bytes(2, "little"),
            FILES: bytes(4),  # there are none
        }
        self._selected = NOTHING
        self._at = 0

    def read(self, offset: int, size: int) -> int:
        if offset != DATA:
            return 0
        item = self._item(self._selected)
        byte = item[self._at] if self._at < len(item) else 0
        self._at += 1
        return byte

    def write(self, offset: int, size: int, value: int) -> None:
        if offset == SELECTOR:
            self._selected, self._at = value, 0

    def _item(self, number: int) -> bytes:
        if number == COMMAND_LINE_BYTES:
            return len(self._command_line).to_bytes(4, "little")
        return self._command_line if number == COMMAND_LINE else self._items.get(number, b"")
