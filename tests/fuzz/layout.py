"""Where things are in a random program's memory: one segment of code, results and buffers. Addresses in bytes."""

from __future__ import annotations

BASE = 0x400000
CODE = BASE + 0x1000
CODE_BYTES = 0x20000
RESULTS = CODE + CODE_BYTES  # of system calls: 8 bytes each
MOST_RESULTS = 64
STRUCTURES = RESULTS + 0x1000  # one every STRIDE bytes
STRIDE = 0x100
MOST_STRUCTURES = 192
BUFFERS = STRUCTURES + STRIDE * MOST_STRUCTURES
BUFFER_PAGES = 8
STACKS = BUFFERS + 0x1000 * BUFFER_PAGES  # of threads and signals
STACK_BYTES = 0x4000
MOST_STACKS = 4
END = STACKS + STACK_BYTES * MOST_STACKS  # nothing is mapped behind it
ELSEWHERE = 0x10_0000_0000  # where mappings at wanted addresses go

# What no process has, or only the kernel; ends of what there is; ends of what could be.
BAD_ADDRESSES = (
    0, 1, 0xFFF, 0x1000, END, END - 1, END - 4, END - 7, END - 0x1000, CODE, BASE - 8, ELSEWHERE, ELSEWHERE + 0xFFF,
    (1 << 31) - 1, 1 << 32, (1 << 47) - 0x1000, (1 << 47) - 1, 1 << 47, (1 << 48) - 0x1000, 1 << 48, 1 << 55,
    (1 << 63) - 1, 1 << 63, (1 << 64) - 0x1000, (1 << 64) - 8, (1 << 64) - 1,
)  # fmt: skip


def result(number: int) -> int:
    """The address of a result."""
    return RESULTS + 8 * number


def stack_top(number: int) -> int:
    return STACKS + STACK_BYTES * (number + 1)
