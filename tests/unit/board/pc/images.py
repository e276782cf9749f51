"""Images for PCs, of our own, and what each prints: on QEMU's PC (python -m tests.unit.board.pc.on_qemu), and here."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import require
from guests import DIRECTORY

SOURCES = Path(__file__).parent
COMMAND_LINE = "one two"


@dataclass(frozen=True)
class PcImage:
    """`status`: 2n + 1 of what it writes to the exit port."""

    prints: str
    status: int = 1
    cpus: int = 1
    differs_on_qemu: tuple[tuple[str, str], ...] = ()  # (here, there): where QEMU 7.2 is not as the manual says


# 2 BAD B002 is the Multiboot specification's, 9FC00 where PCs have their extended BIOS data
HELLO = """
magic 2badb002
memory, command line, modules, memory map: 4d
KiB below 640: 27f
command line: one two
modules: 0
the first range of memory: 0 9fc00 1
QEMU 2 CPUs
"""
# Vector, error code; then for faults how far behind the instruction's start RIP is, else whether it is behind; CR2.
# Error codes of page faults: 1 present, 2 written, 10H fetched.
GATES = """
divide
 0 0 0
int3
 3 0 1
undefined
 6 0 0
int 40
 40 0 1
general protection: an address, a selector
 d 0 0
 d 1234 0
page faults: absent, read and written; read-only; not to be executed
 e 0 0 4000010
 e 2 0 4000020
 e 3 0 4200030
 e 11 4400123 4400123
single step
 1 1 1 2 1 3
NMI
 2 0
by another stack
 2 1
"""
TIMER = """
once: 50 0
five times: 50 50 50 50 50
masked: 0 0
task priority: 10000 10000 50
task priority by CR8: 7 50 10000 50
8254 by the 8259: 30 30 30
8254 by the I/O APIC: 50 50 50
channel 2 has come to its end: 0 20
"""
CPUS = """
the second is here, with APIC id 1
physically: 1
logically: 1
all but the sender: 1
lowest priority, of a set of one: 1
all: 1
NMI: 1
a locked counter: 4e20
time has gone back: 0
"""
# EAX, CS and SS of privilege 3, CS of 0. Then vector, error code, CS; an error code of INT n is 8n + 2.
USER = """
from privilege 3: 1 23 1b 8
SYSCALL: 2 8 10 0 202
from privilege 3: 3 23 1b 8
 d 0 23
 d 0 23
 d 0 23
 d 0 23
 d 0 23
 d 0 23
 d 0 23
 d 0 23
 d 0 23
 d 0 23
 d 0 23
 d 0 23
 d 20a 23
 e 5 23 4000123
 e 7 23 4000456
 e 4 23 ffff800000000000
 6 0 23
"""
# Of each exception: DR6's B0 to B3, BD and BS, and how far behind the first instruction RIP is. A data breakpoint is a
# trap: RIP is behind the instruction, but at a REP that has iterations left.
DEBUG = """
stored, loaded
 1 b 1 22 1 2e
 1 7 1 e 1 16 1 1f 1 2f
two at once
 6 a 4 12
the stack
 1 1 8 7 8 8 8 a 8 11 8 15 8 16
strings
 1 0 1 0 1 0 1 0 1 11
instructions
 1 1 2 4 1 1 2 4 1 1 2 4
a trap and a step
 4001 b 4000 c
a fault, and no trap

debug registers are guarded
 2000 0
"""

IMAGES = {
    "hello": PcImage(HELLO, status=43, cpus=2),
    "gates": PcImage(GATES),
    "timer": PcImage(TIMER),
    "cpus": PcImage(CPUS, cpus=2),
    "user": PcImage(USER, differs_on_qemu=((" d 20a 23", " d 412 23"),)),
    "debug": PcImage(
        DEBUG,
        differs_on_qemu=((" 6 a", " 2 a"), (" 4001 b 4000 c", " 4001 ffffffffffffecda 0 b"), (" 2000 0\n", "\n")),
    ),
}


@cache
def built(name: str) -> bytes:
    """A file that is loaded by the addresses in its Multiboot header: of IMAGES, or a guest program."""
    guest_program = DIRECTORY / name / "pc.elf"
    if guest_program.exists():
        return guest_program.read_bytes()
    return assembled((SOURCES / f"{name}.S").read_text())


def assembled(program: str) -> bytes:
    """The same of a text, with `main`."""
    require.command("as", package="binutils")
    with TemporaryDirectory() as folder:
        source, linked, image = (Path(folder) / name for name in ("image.S", "image.o", "image"))
        source.write_text((SOURCES / "runtime.S").read_text() + program)
        subprocess.run(["as", "--64", source, "-o", linked], check=True)
        addresses = ["-Ttext=0x100000", "-e", "_start", "--defsym", "loaded_end=_edata", "--defsym", "bss_end=_end"]
        subprocess.run(["ld", "-N", *addresses, "--oformat", "binary", "-o", image, linked], check=True)
        return image.read_bytes()
