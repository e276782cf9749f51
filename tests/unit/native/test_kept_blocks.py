"""How many decoded blocks a core keeps: a guest cannot make it keep ever more."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.cpu import ExitReason
from tests.unit.native.bare import Bare, assemble

ENTRIES = 60
# The same 100 instructions, entered at each of the first 60: 60 blocks of 100 down to 41 instructions. All of it twice.
SLED = f"""
    mov     $2, %ebx
3:  lea     sled(%rip), %rsi
    mov     ${ENTRIES}, %ecx
1:  call    *%rsi
    inc     %rsi
    dec     %ecx
    jnz     1b
    dec     %ebx
    jnz     3b
    syscall
sled:
    .fill   99, 1, 0x90
    ret"""
OTHERS = 5  # from the beginning, from 3, from 1, behind CALL, behind the first JNZ
ONCE_MORE = 1  # SYSCALL, behind the second


@pytest.mark.parametrize(("kept", "twice"), [(100, True), (5000, False)])
def test_long_blocks_count_by_their_instructions(kept: int, twice: bool, tmp_path: Path) -> None:
    """Of 100 blocks there are 600, of 5,000 there are 30,000; the 60 blocks have 4,230."""
    bare = Bare.load("x86_64", assemble("x86_64", SLED, tmp_path))
    bare.core.keep_blocks(kept)
    assert bare.run() is ExitReason.SYSCALL
    assert bare.core.cycles == 1 + 2 * (2 + 2) + 2 * sum(100 - entry + 4 for entry in range(ENTRIES)) + 1
    once = ENTRIES + OTHERS + ONCE_MORE
    if twice:
        assert bare.core.decoded_blocks >= 2 * ENTRIES
    else:
        assert bare.core.decoded_blocks <= once
