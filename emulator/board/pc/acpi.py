"""ACPI's tables for a pc: RSDP, XSDT, RSDT, FADT, FACS, DSDT, MADT. ACPI Specification 6.4, chapter 5.

Hardware is as PIIX4's: a PM1 event and control block, and the PM timer. There is no SMI: ACPI is on from the start.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from emulator.board.pc import aml
from emulator.board.pc.memory_map import ACPI_TABLES, IO_APIC, LOCAL_APIC, VIRTIO, VIRTIO_SLOT_BYTES
from emulator.board.pc.power import (
    CONTROL_BYTES,
    EVENT_BYTES,
    OFF,
    PM_CONTROL,
    PM_EVENTS,
    PM_TIMER,
    RESET,
    RESET_VALUE,
    TIMER_BYTES,
)

SYSTEM_CONTROL_INTERRUPT = 9
TIMER_INTERRUPT, TIMER_PIN = 0, 2  # ISA's, and the I/O APIC's
IO_APIC_NUMBER = 0
_OEM, _TABLE_OEM, _CREATOR = b"PERFMU", b"PERFEMU ", b"PFMU"
_NO_C2, _NO_C3 = 101, 1001  # latencies in microseconds from which on there is no such state
_LEGACY_DEVICES, _NO_VGA, _NO_MSI = 1 << 0, 1 << 2, 1 << 3  # IAPC_BOOT_ARCH: and no 8042
_WBINVD, _C1, _NO_POWER_BUTTON, _NO_SLEEP_BUTTON, _TIMER_32_BITS, _RESET_REGISTER = (
    1 << bit for bit in (0, 2, 4, 5, 8, 10)
)
_CENTURY = 0x32  # of the real-time clock
_CONFORMS, _LEVEL_HIGH = 0, 0b11 << 2 | 0b01  # flags of an interrupt
_PCAT_COMPATIBLE = 1
_SYSTEM_IO = 1


def tables(cpus: int, virtio_interrupts: Sequence[int]) -> dict[int, bytes]:
    """By physical address; the RSDP is the first. `virtio_interrupts`: of each slot that has a device."""
    dsdt = _table(b"DSDT", 2, _dsdt(virtio_interrupts))
    madt = _table(b"APIC", 3, _madt(cpus))
    facs = struct.pack("<4sI", b"FACS", 64) + bytes(56)
    facs_at = ACPI_TABLES + 0x40
    dsdt_at = facs_at + 0x40
    fadt_at = _behind(dsdt_at, dsdt)
    fadt = _table(b"FACP", 3, _fadt(facs_at, dsdt_at))
    madt_at = _behind(fadt_at, fadt)
    xsdt_at = _behind(madt_at, madt)
    xsdt = _table(b"XSDT", 1, struct.pack("<2Q", fadt_at, madt_at))
    rsdt_at = _behind(xsdt_at, xsdt)
    rsdt = _table(b"RSDT", 1, struct.pack("<2I", fadt_at, madt_at))
    return {
        ACPI_TABLES: _rsdp(rsdt_at, xsdt_at),
        facs_at: facs,
        dsdt_at: dsdt,
        fadt_at: fadt,
        madt_at: madt,
        xsdt_at: xsdt,
        rsdt_at: rsdt,
    }


def checksum(data: bytes | bytearray) -> int:
    """The byte with which a table's sum is 0."""
    return -sum(data) & 0xFF


def _behind(address: int, table: bytes) -> int:
    return address + len(table) + 15 & ~15


def _table(signature: bytes, revision: int, body: bytes) -> bytes:
    length = 36 + len(body)
    table = bytearray(
        struct.pack("<4sIBB6s8sI4sI", signature, length, revision, 0, _OEM, _TABLE_OEM, 1, _CREATOR, 1) + body
    )
    table[9] = checksum(table)
    return bytes(table)


def _rsdp(rsdt: int, xsdt: int) -> bytes:
    rsdp = bytearray(struct.pack("<8sB6sBIIQB3x", b"RSD PTR ", 0, _OEM, 2, rsdt, 36, xsdt, 0))
    rsdp[8] = checksum(rsdp[:20])
    rsdp[32] = checksum(rsdp)
    return bytes(rsdp)


def _register(port: int, size: int) -> bytes:
    """A generic address structure of I/O space."""
    return struct.pack("<BBBBQ", _SYSTEM_IO if port else 0, 8 * size, 0, 0, port)


def _fadt(facs: int, dsdt: int) -> bytes:
    flags = _WBINVD | _C1 | _NO_POWER_BUTTON | _NO_SLEEP_BUTTON | _TIMER_32_BITS | _RESET_REGISTER
    blocks = PM_EVENTS, 0, PM_CONTROL, 0, 0, PM_TIMER, 0, 0
    lengths = EVENT_BYTES, CONTROL_BYTES, 0, TIMER_BYTES, 0, 0, 0, 0
    extended = [(PM_EVENTS, EVENT_BYTES), (0, 0), (PM_CONTROL, CONTROL_BYTES), (0, 0), (0, 0), (PM_TIMER, TIMER_BYTES)]
    return (
        struct.pack("<IIBBHI4x", facs, dsdt, 0, 0, SYSTEM_CONTROL_INTERRUPT, 0)
        + struct.pack("<8I8B", *blocks, *lengths)
        + struct.pack("<4H5BHx", _NO_C2, _NO_C3, 0, 0, 0, 0, 0, 0, _CENTURY, _LEGACY_DEVICES | _NO_VGA | _NO_MSI)
        + struct.pack("<I12sB3x", flags, _register(RESET, 1), RESET_VALUE)
        + struct.pack("<2Q", 0, dsdt)  # of the FACS one address is to be given
        + b"".join(_register(*each) for each in [*extended, (0, 0), (0, 0)])
    )


def _madt(cpus: int) -> bytes:
    local = b"".join(struct.pack("<BBBBI", 0, 8, number, number, 1) for number in range(cpus))
    io_apic = struct.pack("<BBBBII", 1, 12, IO_APIC_NUMBER, 0, IO_APIC, 0)
    overrides = struct.pack("<BBBBIH", 2, 10, 0, TIMER_INTERRUPT, TIMER_PIN, _CONFORMS) + struct.pack(
        "<BBBBIH", 2, 10, 0, SYSTEM_CONTROL_INTERRUPT, SYSTEM_CONTROL_INTERRUPT, _LEVEL_HIGH
    )
    nmi = struct.pack("<BBBHB", 4, 6, 0xFF, _CONFORMS, 1)  # LINT1 of all
    return struct.pack("<II", LOCAL_APIC, _PCAT_COMPATIBLE) + local + io_apic + overrides + nmi


def _dsdt(virtio_interrupts: Sequence[int]) -> bytes:
    devices = [
        aml.device(
            f"VR{slot:02}",
            aml.name("_HID", aml.string("LNRO0005")),
            aml.name("_UID", aml.integer(slot)),
            aml.name(
                "_CRS",
                aml.resources(
                    aml.memory(VIRTIO + slot * VIRTIO_SLOT_BYTES, VIRTIO_SLOT_BYTES), aml.interrupt(interrupt)
                ),
            ),
        )
        for slot, interrupt in enumerate(virtio_interrupts)
    ]
    off = aml.package(aml.integer(OFF), aml.integer(OFF), aml.integer(0), aml.integer(0))
    return aml.name("_S5_", off) + aml.scope("_SB_", *devices)
