"""Guest code under an AddressTracer, and the same under Unicorn's MEM hooks."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import unicorn
from elftools.elf.elffile import ELFFile
from unicorn import arm64_const

import access_hook
import code_hook
from emulator._native import PAGE_SIZE, AddressSpace, AddressTracer, PhysicalMemory
from native.bare import CODE, DATA, DATA_PAGES, EXECUTE, PC, READ, SP, STACK_TOP, WRITE

# The four ways in which addresses can be found: (without the engine's register file, without ranges of calls).
WAYS = {
    "slices": (False, False),
    "slices, registers by API": (True, False),
    "calls": (False, True),
    "calls, registers by API": (True, True),
}
WRITE_CALL = {"aarch64": (8, 64, 2, 0), "x86_64": (0, 1, 2, 0)}  # number's register, number, size's, result's


@dataclass
class Traced:
    """`tracer` is about to run something; the events that it has found so far are taken out by `events`."""

    isa: str
    memory: PhysicalMemory
    space: AddressSpace
    tracer: AddressTracer

    def finish(
        self, most_blocks: int = 1 << 63, stepping: bool = False, between: Callable[[], None] = lambda: None
    ) -> None:
        """Run to the exit, or the first other system call than write; `between` is called every `most_blocks`."""
        number, write, size, result = WRITE_CALL[self.isa]
        while (why := self.tracer.run(most_blocks, stepping)) != "syscall" or self.tracer.read_register(
            number
        ) == write:
            if why == "blocks":
                between()
            else:
                assert why == "syscall", f"{why} at {self.tracer.pc:#x}"
                self.tracer.write_register(result, self.tracer.read_register(size))

    def seen(self) -> list[access_hook.Event]:
        return list(struct.iter_unpack("<4Q", self.tracer.seen()))


def on(isa: str, memory: PhysicalMemory, space: AddressSpace, entry: int, stack_pointer: int, way: str) -> Traced:
    """Whatever is mapped in `space`."""
    tracer = AddressTracer(isa, space, *WAYS[way])
    assert tracer.way == way
    tracer.write_register(PC[isa], entry)
    tracer.write_register(SP[isa], stack_pointer)
    return Traced(isa, memory, space, tracer)


def program(isa: str, path: Path, arguments: tuple[str, ...] = (), way: str = "slices") -> Traced:
    """A freestanding guest program, as `code_hook.load` loads it."""
    memory = PhysicalMemory(64 << 20)
    space = AddressSpace(memory)

    def map_pages(address: int, size: int, protection: int) -> None:
        count = size // PAGE_SIZE
        space.map(address, memory.allocate(count), count, protection)

    with path.open("rb") as stream:
        elf = ELFFile(stream)
        for segment in elf.iter_segments("PT_LOAD"):
            start = segment["p_vaddr"] & -PAGE_SIZE
            end = -(-(segment["p_vaddr"] + segment["p_memsz"]) // PAGE_SIZE) * PAGE_SIZE
            flags = segment["p_flags"]  # PF_X 1, PF_W 2, PF_R 4
            map_pages(start, end - start, flags >> 2 & 1 | flags & 2 | flags << 2 & 4)
            space.write(segment["p_vaddr"], segment.data())
        stack_pointer = code_hook.STACK + code_hook.STACK_SIZE - PAGE_SIZE
        map_pages(code_hook.STACK, code_hook.STACK_SIZE, READ | WRITE)
        space.write(stack_pointer, code_hook.stack_contents(stack_pointer, [path.name, *arguments]))
        return on(isa, memory, space, elf["e_entry"], stack_pointer, way)


def bare(isa: str, code: bytes, way: str = "slices", protection: int = READ | EXECUTE) -> Traced:
    """Code at CODE, which ends with a system call, and DATA as in `bare.Bare`."""
    memory = PhysicalMemory(64 << 20)
    space = AddressSpace(memory)
    pages = -(-len(code) // PAGE_SIZE)
    space.map(CODE, memory.allocate(pages), pages, protection)
    space.write(CODE, code)
    space.map(DATA, memory.allocate(DATA_PAGES), DATA_PAGES, READ | WRITE)
    return on(isa, memory, space, CODE, STACK_TOP, way)


def reference(isa: str, code: bytes) -> list[access_hook.Event]:
    """The events of the same code, by MEM hooks."""
    engine = code_hook.make_engine(isa, STACK_TOP)
    if isa == "aarch64":
        engine.reg_write(arm64_const.UC_ARM64_REG_NZCV, 0)
        engine.reg_write(arm64_const.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # FPEN
    engine.mem_map(CODE, -(-len(code) // PAGE_SIZE) * PAGE_SIZE, unicorn.UC_PROT_ALL)
    engine.mem_write(CODE, code)
    engine.mem_map(DATA, DATA_PAGES * PAGE_SIZE)
    accesses = access_hook.Accesses(engine, isa)
    code_hook.run(engine, isa, CODE)
    return accesses.events
