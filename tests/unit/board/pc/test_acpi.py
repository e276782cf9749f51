"""Tables of firmware: by ACPICA's own disassembler, and by their sums."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest

import require
from emulator.board.pc import acpi, aml, mp_tables
from emulator.board.pc.memory_map import ACPI_TABLES_BYTES, MP_TABLES


def memory(tables: dict[int, bytes]) -> bytes:
    """From the first table on. No two overlap."""
    data = bytearray(ACPI_TABLES_BYTES)
    taken: set[int] = set()
    first = min(tables)
    for address, table in tables.items():
        places = set(range(address - first, address - first + len(table)))
        assert not places & taken
        taken |= places
        data[address - first : address - first + len(table)] = table
    return bytes(data)


def by_signature(tables: dict[int, bytes]) -> dict[bytes, bytes]:
    return {table[:4]: table for table in tables.values()}


def test_sums_are_zero_and_pointers_lead_to_tables() -> None:
    tables = acpi.tables(4, [16, 17])
    data = memory(tables)
    rsdp = data[:36]
    assert (rsdp[:8], sum(rsdp[:20]) & 0xFF, sum(rsdp) & 0xFF) == (b"RSD PTR ", 0, 0)
    (rsdt, _, xsdt) = struct.unpack_from("<IIQ", rsdp, 16)
    seen = set()
    for pointer, layout in ((rsdt, "<I"), (xsdt, "<Q")):
        root = tables[pointer]
        for at in range(36, len(root), struct.calcsize(layout)):
            seen.add(tables[struct.unpack_from(layout, root, at)[0]][:4])
    assert seen == {b"FACP", b"APIC"}
    for table in tables.values():
        if table[:4] not in (b"RSD ", b"FACS"):
            assert sum(table) & 0xFF == 0
            assert struct.unpack_from("<I", table, 4)[0] == len(table)
    fadt = by_signature(tables)[b"FACP"]
    assert len(fadt) == 244  # of revision 3
    facs, dsdt = struct.unpack_from("<2I", fadt, 36)
    assert (tables[facs][:4], tables[dsdt][:4], facs % 64) == (b"FACS", b"DSDT", 0)


def disassembled(table: bytes, folder: Path) -> str:
    require.command("iasl", package="acpica-tools")
    path = folder / "table.dat"
    path.write_bytes(table)
    done = subprocess.run(["iasl", "-d", path], capture_output=True, text=True, check=True)
    assert not re.search("error|warning|invalid", done.stdout + done.stderr, re.IGNORECASE)
    return (folder / "table.dsl").read_text()


def test_the_dsdt_is_read_by_others(tmp_path: Path) -> None:
    text = disassembled(by_signature(acpi.tables(1, [16, 17]))[b"DSDT"], tmp_path)
    assert re.search(r"Name \(_S5, Package \(0x04\)[^{]*\{\s*Zero,\s*Zero,\s*Zero,\s*Zero\s*\}\)", text)
    devices = re.findall(
        r'Device \((VR\d\d)\)\s*\{\s*Name \(_HID, "(\w+)"\).*?Memory32Fixed \(ReadWrite,\s*(\w+),[^\n]*\n\s*(\w+),.*?'
        r"Interrupt \(ResourceConsumer, (\w+), (\w+), (\w+), ,, \)\s*\{\s*(\w+),",
        text,
        re.DOTALL,
    )
    assert devices == [
        ("VR00", "LNRO0005", "0xFEB00000", "0x00000200", "Level", "ActiveHigh", "Shared", "0x00000010"),
        ("VR01", "LNRO0005", "0xFEB00200", "0x00000200", "Level", "ActiveHigh", "Shared", "0x00000011"),
    ]


def test_fadt_and_madt_are_read_by_others(tmp_path: Path) -> None:
    tables = by_signature(acpi.tables(2, []))
    fadt = disassembled(tables[b"FACP"], tmp_path)
    for line in (
        "SCI Interrupt : 0009",
        "PM1A Event Block Address : 00000600",
        "PM1A Control Block Address : 00000604",
        "PM Timer Block Address : 00000608",
        "8042 Present on ports 60/64 (V2) : 0",
        "VGA Not Present (V4) : 1",
        "Reset Register Supported (V2) : 1",
        "32-bit PM Timer (V1) : 1",
        "Value to cause reset : 06",
    ):
        assert line in fadt
    madt = disassembled(tables[b"APIC"], tmp_path)
    assert re.findall(r"Local Apic ID : (\w+)", madt) == ["00", "01"]
    assert re.findall(r"Processor ID : (\w+)", madt) == ["00", "01", "FF"]
    assert re.findall(r"Source : (\w+)\n.*Interrupt : (\w+)", madt) == [("00", "00000002"), ("09", "00000009")]
    assert "Interrupt Input LINT : 01" in madt


# with the name's four bytes and the length's own: 14, 64 + 2, 4094 + 3
@pytest.mark.parametrize(
    ("size", "length"),
    [(9, b"\x0e"), (60, bytes((1 << 6 | 66 & 15, 66 >> 4))), (4090, bytes((2 << 6 | 4097 & 15, 0, 1)))],
)
def test_lengths_of_packages(size: int, length: bytes) -> None:
    """ACPI 6.4, "Package Length Encoding": up to 63 in one byte; else four bits, and one to three bytes more."""
    assert aml.scope("ABCD", bytes(size))[1 : 1 + len(length)] == length


def test_mp_tables() -> None:
    tables = mp_tables.tables(3, 0x506E3, 0x178BFBFF)
    pointer = tables.pop(MP_TABLES)
    assert (pointer[:4], len(pointer), sum(pointer) & 0xFF) == (b"_MP_", 16, 0)
    ((address, table),) = tables.items()
    assert struct.unpack_from("<I", pointer, 4)[0] == address
    signature, length = struct.unpack_from("<4sH", table)
    assert (signature, length, sum(table) & 0xFF) == (b"PCMP", len(table), 0)
    sizes = {0: 20, 1: 8, 2: 8, 3: 8, 4: 8}
    at, kinds = 44, []
    while at < length:
        kinds.append(table[at])
        at += sizes[table[at]]
    assert kinds == [0] * 3 + [1, 2] + [3] * 15 + [4] * 2
    assert struct.unpack_from("<H", table, 34)[0] == len(kinds)
