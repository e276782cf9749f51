"""What is where in a random image for a pc, and what its registers hold."""

from __future__ import annotations

START = 0x10_0000
HANDLERS, IDT, GDT, TASKS, TRAMPOLINE_IMAGE = (START + 0x1000 * page for page in range(1, 6))
CODE, CODE_BYTES = START + 0x1_0000, 0x1_0000
TABLES, DATA, END = START + 0x2_0000, START + 0x3_0000, START + 0x4_0000
TRAMPOLINE = 0x8000
ALIAS = 0x4000_0000  # the first 16 MiB again, in the next GiB of addresses
SLOT = 16  # code is cut into so many bytes: no instruction crosses them, and a handler goes on at the next
STACK_BYTES = 0x2000  # of each CPU, below DATA's end: its own, and one for exceptions
TASK_BYTES = 0x800

# Page tables, by their number from TABLES on
TOP, POINTERS, LOW, ALIASED, DEVICES, LOW_PAGES, ALIASED_PAGES = (TABLES + 0x1000 * number for number in range(7))

# Selectors
KERNEL_CODE, KERNEL_DATA, USER_CODE_32, USER_DATA, USER_CODE, KERNEL_CODE_32, FIRST_TASK, STRANGE = (
    0x08, 0x10, 0x18 | 3, 0x20 | 3, 0x28 | 3, 0x30, 0x38, 0x58,
)  # fmt: skip
GDT_BYTES = 0x80

# What these registers point at, from the beginning
BASE_OF_CODE, BASE_OF_ALIAS, BASE_OF_DATA, BASE_OF_APIC, BASE_OF_IO_APIC, BASE_OF_TABLES, BASE_OF_VIRTIO, TURNS = range(
    8, 16
)
BASES = tuple(range(8, 15))
