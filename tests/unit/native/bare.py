"""A core with a few pages of hand-written code around it, and what Unicorn's own CODE hook says about that code."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import code_hook
import require
from emulator._native import PAGE_SIZE, AddressSpace, Core, CounterBank, PhysicalMemory
from emulator.cpu import ExitReason
from emulator.probes import Probe

CODE = 0x40_0000
DATA = 0x70_0000
DATA_PAGES = 16
STACK_TOP = DATA + DATA_PAGES * PAGE_SIZE - 0x100
FOREVER = 1 << 62
READ, WRITE, EXECUTE = 1, 2, 4

PC = {"aarch64": 32, "x86_64": 16}
SP = {"aarch64": 31, "x86_64": 7}
ASSEMBLERS = {
    "aarch64": ("aarch64-linux-gnu-as", "aarch64-linux-gnu-objcopy", "gcc-aarch64-linux-gnu"),
    "x86_64": ("as", "objcopy", "binutils"),
}


def assemble(isa: str, source: str, folder: Path) -> bytes:
    """The .text of `source`. Skips where the assembler is not installed."""
    assembler, objcopy, package = ASSEMBLERS[isa]
    require.command(assembler, package=package)
    text, linked, binary = folder / "code.s", folder / "code.o", folder / "code.bin"
    text.write_text(source + "\n")
    subprocess.run([assembler, text, "-o", linked], check=True)
    subprocess.run([objcopy, "-O", "binary", "-j", ".text", linked, binary], check=True)
    return binary.read_bytes()


@dataclass
class Bare:
    """`core` is about to run `code` at CODE; DATA is 16 readable and writable pages, the stack at their end."""

    isa: str
    code: bytes
    memory: PhysicalMemory
    space: AddressSpace
    core: Core

    @classmethod
    def load(cls, isa: str, code: bytes, protection: int = READ | EXECUTE) -> Bare:
        memory = PhysicalMemory(64 << 20)
        space = AddressSpace(memory)
        pages = -(-len(code) // PAGE_SIZE)
        frame = memory.allocate(pages)
        memory.view(frame, pages)[: len(code)] = code
        space.map(CODE, frame, pages, protection)
        space.map(DATA, memory.allocate(DATA_PAGES), DATA_PAGES, READ | WRITE)
        core = Core(isa, memory)
        core.follow_branches()
        core.set_address_space(space)
        core.write_register(PC[isa], CODE)
        core.write_register(SP[isa], STACK_TOP)
        return cls(isa, code, memory, space, core)

    def run(self, until: int = FOREVER) -> ExitReason:
        return ExitReason(self.core.run(until))

    def total(self, probe: Probe) -> int:
        return self.core.total(probe)

    def sample(self, probe: Probe, period: int, between: Callable[[], None] = lambda: None) -> list[tuple[int, int]]:
        """(pc, instructions retired) at every `period`-th firing of `probe`, until the program's syscall."""
        bank: CounterBank = self.core.add_bank(1)
        bank.set_width(0, 48)
        bank.connect(0, 1 << probe)
        bank.write(0, 2**48 - period)
        bank.arm(1)
        samples = []
        while (reason := self.run()) is ExitReason.OVERFLOW:
            samples.append((self.core.pc, self.core.cycles))
            assert bank.overflowed() == 1
            bank.clear_overflowed(1)
            bank.write(0, 2**48 - period)
            between()
        assert reason is ExitReason.SYSCALL
        return samples


def reference_trace(isa: str, code: bytes) -> list[int]:
    """Addresses of all that retires up to the syscall, by Unicorn's CODE hook."""
    engine = code_hook.make_engine(isa, STACK_TOP)
    engine.mem_map(CODE, -(-len(code) // PAGE_SIZE) * PAGE_SIZE)
    engine.mem_write(CODE, code)
    engine.mem_map(DATA, DATA_PAGES * PAGE_SIZE)
    return code_hook.run(engine, isa, CODE)
