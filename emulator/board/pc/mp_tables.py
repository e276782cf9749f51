"""What the Intel MultiProcessor Specification 1.4 has of tables: for images that look there instead of at ACPI's."""

from __future__ import annotations

import struct

from emulator.board.pc.acpi import IO_APIC_NUMBER, SYSTEM_CONTROL_INTERRUPT, TIMER_INTERRUPT, TIMER_PIN, checksum
from emulator.board.pc.io_apic import VERSION as IO_APIC_VERSION
from emulator.board.pc.local_apic import VERSION as LOCAL_APIC_VERSION
from emulator.board.pc.memory_map import IO_APIC, LOCAL_APIC, MP_TABLES

_REVISION = 4  # 1.4
_ENABLED, _BOOT = 1, 2
_ISA = 0  # bus
_ISA_INTERRUPTS = 16
_VECTORED, _NMI, _EXTERNAL = 0, 1, 3  # kinds of interrupts
_CONFORMS, _LEVEL_HIGH = 0, 0b11 << 2 | 0b01
_EVERY_APIC = 0xFF
_CASCADE = 2


def tables(cpus: int, signature: int, features: int) -> dict[int, bytes]:
    """By physical address. `signature`, `features`: EAX and EDX of CPUID leaf 1."""
    entries = [
        struct.pack(
            "<BBBBII8x", 0, n, LOCAL_APIC_VERSION & 0xFF, _ENABLED | (_BOOT if n == 0 else 0), signature, features
        )
        for n in range(cpus)
    ]
    entries.append(struct.pack("<BB6s", 1, _ISA, b"ISA   "))
    entries.append(struct.pack("<BBBBI", 2, IO_APIC_NUMBER, IO_APIC_VERSION & 0xFF, _ENABLED, IO_APIC))
    for interrupt in range(_ISA_INTERRUPTS):
        if interrupt != _CASCADE:
            pin = TIMER_PIN if interrupt == TIMER_INTERRUPT else interrupt
            flags = _LEVEL_HIGH if interrupt == SYSTEM_CONTROL_INTERRUPT else _CONFORMS
            entries.append(struct.pack("<BBHBBBB", 3, _VECTORED, flags, _ISA, interrupt, IO_APIC_NUMBER, pin))
    for pin, kind in enumerate((_EXTERNAL, _NMI)):
        entries.append(struct.pack("<BBHBBBB", 4, kind, _CONFORMS, _ISA, 0, _EVERY_APIC, pin))
    body = b"".join(entries)
    table = bytearray(
        struct.pack("<4sHBB8s12sIHHIHBx", b"PCMP", 44 + len(body), _REVISION, 0, b"PERFEMU ", b"PC".ljust(12), 0, 0,
                    len(entries), LOCAL_APIC, 0, 0)
        + body
    )  # fmt: skip
    table[7] = checksum(table)
    table_at = MP_TABLES + 0x10
    pointer = bytearray(struct.pack("<4sIBBB5x", b"_MP_", table_at, 1, _REVISION, 0))
    pointer[10] = checksum(pointer)
    return {MP_TABLES: bytes(pointer), table_at: bytes(table)}
