"""What is where in a pc's physical memory, and how its guests are told so.

RAM begins at 0 and has no holes: what PCs keep from use is told as reserved. There is no BIOS behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MOST_RAM_BYTES = 3 * GIB  # devices lie above

# Below 1 MiB: what a loader leaves in RAM that is usable all the same, for the image to find
PAGE_TABLES, PAGE_TABLES_BYTES = 0x9_0000, 0x6000
DESCRIPTORS = 0x9_6000  # a GDT
BOOT_INFORMATION, BOOT_INFORMATION_BYTES = 0x9_7000, 0x2000  # Multiboot's, PVH's, or Linux's boot_params
MEMORY_MAP = 0x9_9000  # for those that have it apart
COMMAND_LINE, COMMAND_LINE_BYTES = 0x9_A000, 0x1000
STACK_TOP = 0x9_F000
BASE_MEMORY_END = 0x9_FC00  # then 1 KiB of extended BIOS data
# Reserved: nothing is where a PC has its display's memory and ROMs; then the tables of firmware
ACPI_TABLES, ACPI_TABLES_BYTES = 0xE_0000, 0x1_0000
MP_TABLES, MP_TABLES_BYTES = 0xF_0000, 0x1_0000
HIGH_MEMORY = 1 * MIB

VIRTIO, VIRTIO_SLOT_BYTES = 0xFEB0_0000, 0x200
IO_APIC, IO_APIC_BYTES = 0xFEC0_0000, 0x1000
LOCAL_APIC, LOCAL_APIC_BYTES = 0xFEE0_0000, 0x1000


class RangeType(IntEnum):
    """As BIOS function E820H has them, and Multiboot, and PVH."""

    USABLE = 1
    RESERVED = 2


@dataclass(frozen=True, slots=True)
class Range:
    start: int
    size: int
    type: RangeType


def memory_map(ram_bytes: int) -> tuple[Range, ...]:
    """By address."""
    return (
        Range(0, BASE_MEMORY_END, RangeType.USABLE),
        Range(BASE_MEMORY_END, 0xA_0000 - BASE_MEMORY_END, RangeType.RESERVED),
        Range(ACPI_TABLES, HIGH_MEMORY - ACPI_TABLES, RangeType.RESERVED),
        Range(HIGH_MEMORY, ram_bytes - HIGH_MEMORY, RangeType.USABLE),
    )
