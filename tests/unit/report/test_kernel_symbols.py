"""The symbols that a Linux kernel keeps in its memory, in each layout that scripts/kallsyms.c has had."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

import pytest

from perfemu.kernel_symbols import has_orc, symbols_in_memory
from perfemu.symbols.kallsyms import kallsyms_table

BASE = 0xFFFF_8000_0800_0000
COUNT = 600
LONG = "x" * 200  # its length takes two bytes
NAMES = [f"Tfunction_{number}" for number in range(COUNT - 1)] + ["t" + LONG]
OFFSETS = [16 * number for number in range(COUNT)]
TOKENS = [chr(number) if 32 < number < 127 else f"token{number}" for number in range(256)]
TOKENS[200] = "function_"


def aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def compressed(name: str) -> bytes:
    coded = name[:1].encode() + name[1:].replace("function_", "\xc8").encode("latin-1")
    length = bytes([len(coded)]) if len(coded) < 0x80 else bytes([len(coded) & 0x7F | 0x80, len(coded) >> 7])
    return length + coded


def kernel(*, sorts: bool, offsets_behind: bool, offsets_as: Sequence[int] = OFFSETS) -> bytes:
    """An image's read-only data around its symbols."""
    coded = [compressed(name) for name in NAMES]
    starts = [0, *accumulate(map(len, coded))]
    offsets = aligned(struct.pack(f"<{COUNT}i", *offsets_as)) + struct.pack("<Q", BASE)
    markers = aligned(struct.pack("<3I", *starts[:COUNT:256]))
    tokens = aligned(b"".join(token.encode() + b"\0" for token in TOKENS))
    index = struct.pack("<256H", *[0, *accumulate(len(token) + 1 for token in TOKENS)][:256])
    parts = [
        bytes(range(1, 241)),
        b"" if offsets_behind else offsets,
        struct.pack("<Q", COUNT),
        aligned(b"".join(coded)),
        markers,
        aligned(bytes(3 * COUNT)) if sorts else b"",
        tokens,
        index,
        offsets if offsets_behind else b"",
        bytes(64),
    ]
    return b"".join(parts)


@pytest.mark.parametrize(("sorts", "offsets_behind"), [(False, False), (True, False), (False, True)])
def test_each_layout(sorts: bool, offsets_behind: bool) -> None:
    text = symbols_in_memory(kernel(sorts=sorts, offsets_behind=offsets_behind))
    assert text is not None
    lines = text.decode().splitlines()
    assert lines == [f"{BASE + at:016x} {name[0]} {name[1:]}" for at, name in zip(OFFSETS, NAMES, strict=True)]
    found = kallsyms_table(text).find(BASE + 16 * 7 + 4)
    assert found is not None
    assert found.name == "function_7"


def test_symbols_of_each_cpu_are_absolute() -> None:
    """x86-64's layout: kallsyms_sym_address() gives base - 1 - offset where the offset is negative."""
    of_cpus = [0, 0, 0x1000]
    offsets = of_cpus + [-1 - at for at in OFFSETS[3:]]
    text = symbols_in_memory(kernel(sorts=False, offsets_behind=False, offsets_as=offsets))
    assert text is not None
    addresses = [int(line.split()[0], 16) for line in text.decode().splitlines()]
    assert addresses == of_cpus + [BASE + at for at in OFFSETS[3:]]


def test_memory_without_symbols_has_none() -> None:
    assert symbols_in_memory(bytes(100_000)) is None


@pytest.mark.parametrize("at", range(0, 12_000, 499))
def test_damage_is_no_crash(at: int) -> None:
    """A guest may write what it likes there."""
    image = bytearray(kernel(sorts=True, offsets_behind=False))
    at %= len(image)
    image[at : at + 64] = bytes(b ^ 0xA5 for b in image[at : at + 64])
    symbols_in_memory(image)
    found = symbols_in_memory(image[:at])
    assert found is None or found.endswith(b"\n")


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        ("ffffffff82a3b8f0 D __start_orc_unwind\n", True),
        ("ffffffff8104d2f0 t orc_find\nffffffff8104d300 T unwind_next_frame\n", True),
        ("ffffffff8104d2f0 T unwind_module_init\n", True),
        ("ffffffff8104d300 T unwind_next_frame\nffffffff8104d310 t orc_finder\n", False),  # frame pointers, or guesses
        ("", False),
    ],
)
def test_a_kernel_with_orc_says_so(symbols: str, expected: bool) -> None:
    assert has_orc(symbols.encode()) is expected
