"""Just enough of Linux to run a static x86-64 program twice: under an AddressTracer, and under Unicorn's MEM hooks.

No files, no clock, no signals; what is asked for beyond memory, output and identity is refused (ENOSYS).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import unicorn
from elftools.elf.elffile import ELFFile
from unicorn import x86_const

import access_hook
from emulator._native import PAGE_SIZE, AddressSpace, PhysicalMemory
from native import traced
from native.bare import EXECUTE, PC, READ, SP, WRITE

ISA = "x86_64"
STACK, STACK_BYTES = 0x7FF0_0000_0000, 1 << 20
MAPPINGS, MAPPINGS_BYTES = 0x7FE0_0000_0000, 64 << 20
BREAK_BYTES = 32 << 20
RAM_BYTES = 256 << 20

ENOENT, EBADF, EINVAL, ENOTTY, ENOSYS = -2, -9, -22, -25, -38
SUCCEED = {0, 10, 11, 13, 14, 102, 104, 107, 108, 201, 273}  # end of file, mprotect, munmap, signals, root, time, ...
ONE = {39, 186, 218}  # getpid, gettid, set_tid_address
ARCH_SET_FS, MAP_ANONYMOUS = 0x1002, 0x20


class Call:
    """System calls that have an effect, or an error of their own."""

    WRITE, FSTAT, MMAP, BRK, IOCTL, WRITEV, EXIT, UNAME, READLINK = 1, 5, 9, 12, 16, 20, 60, 63, 89
    ARCH_PRCTL, CLOCK_GETTIME, EXIT_GROUP, NEWFSTATAT, READLINKAT, GETRANDOM = 158, 228, 231, 262, 267, 318


class Machine(Protocol):
    """What a program runs on."""

    def map(self, address: int, size: int, execute: bool) -> None: ...
    def write(self, address: int, data: bytes) -> None: ...
    def read(self, address: int, size: int) -> bytes: ...
    def start(self, pc: int, stack: int) -> None: ...
    def run(self) -> None:
        """To the next system call."""

    def call(self) -> list[int]:
        """Its number and arguments."""

    def answer(self, result: int) -> None: ...
    def set_thread_pointer(self, value: int) -> None: ...
    def events(self) -> list[access_hook.Event]: ...


class Tracer:
    def __init__(self, way: str) -> None:
        self.memory = PhysicalMemory(RAM_BYTES)
        self.space = AddressSpace(self.memory)
        self.traced = traced.on(ISA, self.memory, self.space, 0, 0, way)
        self.tracer = self.traced.tracer

    def map(self, address: int, size: int, execute: bool) -> None:
        pages = size // PAGE_SIZE
        self.space.map(address, self.memory.allocate(pages), pages, READ | (EXECUTE if execute else WRITE))

    def write(self, address: int, data: bytes) -> None:
        self.space.write(address, data)

    def read(self, address: int, size: int) -> bytes:
        data = self.space.read(address, size)
        assert isinstance(data, bytes)
        return data

    def start(self, pc: int, stack: int) -> None:
        self.tracer.write_register(PC[ISA], pc)
        self.tracer.write_register(SP[ISA], stack)

    def run(self) -> None:
        why = self.tracer.run()
        assert why == "syscall", f"{why} at {self.tracer.pc:#x}"

    def call(self) -> list[int]:
        return [self.tracer.read_register(number) for number in (0, 5, 4, 3, 10, 8)]

    def answer(self, result: int) -> None:
        self.tracer.write_register(0, result & (1 << 64) - 1)

    def set_thread_pointer(self, value: int) -> None:
        self.tracer.write_register(18, value)

    def events(self) -> list[access_hook.Event]:
        return self.traced.seen()


class Reference:
    _CALL = tuple(getattr(x86_const, f"UC_X86_REG_{name}") for name in ("RAX", "RDI", "RSI", "RDX", "R10", "R8"))

    def __init__(self) -> None:
        self.engine = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
        self.engine.reg_write(x86_const.UC_X86_REG_MXCSR, 0x1F80)  # nothing is unmasked
        self.engine.reg_write(x86_const.UC_X86_REG_FPCW, 0x37F)
        self.engine.reg_write(x86_const.UC_X86_REG_FPTAG, 0xFFFF)
        self.accesses = access_hook.Accesses(self.engine, ISA)
        self.engine.hook_add(unicorn.UC_HOOK_INSN, lambda *_: self.engine.emu_stop(), aux1=x86_const.UC_X86_INS_SYSCALL)

    def map(self, address: int, size: int, execute: bool) -> None:
        self.engine.mem_map(address, size, READ | (EXECUTE if execute else WRITE))

    def write(self, address: int, data: bytes) -> None:
        self.engine.mem_write(address, data)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.engine.mem_read(address, size))

    def start(self, pc: int, stack: int) -> None:
        self.engine.reg_write(x86_const.UC_X86_REG_RIP, pc)
        self.engine.reg_write(x86_const.UC_X86_REG_RSP, stack)

    def run(self) -> None:
        self.engine.emu_start(self.engine.reg_read(x86_const.UC_X86_REG_RIP), 0)

    def call(self) -> list[int]:
        return [self.engine.reg_read(number) for number in self._CALL]

    def answer(self, result: int) -> None:
        """RCX and R11 change as in `Isa::complete_syscall`."""
        self.engine.reg_write(x86_const.UC_X86_REG_RAX, result & (1 << 64) - 1)
        self.engine.reg_write(x86_const.UC_X86_REG_RCX, self.engine.reg_read(x86_const.UC_X86_REG_RIP))
        self.engine.reg_write(x86_const.UC_X86_REG_R11, self.engine.reg_read(x86_const.UC_X86_REG_EFLAGS))

    def set_thread_pointer(self, value: int) -> None:
        self.engine.reg_write(x86_const.UC_X86_REG_FS_BASE, value)

    def events(self) -> list[access_hook.Event]:
        events = self.accesses.events.copy()
        self.accesses.events.clear()
        return events


class Process:
    """A program on a machine; `output` is what it has written."""

    def __init__(self, machine: Machine, path: Path, arguments: list[str]) -> None:
        self.machine, self.output = machine, b""
        top = 0
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            segments = list(elf.iter_segments("PT_LOAD"))
            for segment in segments:
                start = max(segment["p_vaddr"] & -PAGE_SIZE, top)
                top = -(-(segment["p_vaddr"] + segment["p_memsz"]) // PAGE_SIZE) * PAGE_SIZE
                machine.map(start, top - start, bool(segment["p_flags"] & 1))
                machine.write(segment["p_vaddr"], segment.data())
            entry, headers = elf["e_entry"], segments[0]["p_vaddr"] + elf["e_phoff"]
            count = elf["e_phnum"]
        self.lowest_break = self.break_ = top + PAGE_SIZE
        self.next_mapping = MAPPINGS
        for start, size in ((self.break_, BREAK_BYTES), (MAPPINGS, MAPPINGS_BYTES), (STACK, STACK_BYTES)):
            machine.map(start, size, False)
        self._fill_stack(arguments, entry, [3, headers, 4, 56, 5, count, 6, PAGE_SIZE, 9, entry])

    def _fill_stack(self, arguments: list[str], entry: int, vector: list[int]) -> None:
        """argc, argv, no environment, the auxiliary vector; behind them the strings and AT_RANDOM's 16 bytes."""
        stack, strings = STACK + STACK_BYTES - 2 * PAGE_SIZE, b""
        behind = stack + PAGE_SIZE
        pointers = []
        for argument in arguments:
            pointers.append(behind + len(strings))
            strings += argument.encode() + b"\0"
        vector += [11, 0, 12, 0, 13, 0, 14, 0, 17, 100, 23, 0, 25, behind + len(strings), 0, 0]
        words = [len(arguments), *pointers, 0, 0, *vector]
        self.machine.write(behind, strings + bytes(range(16)))
        self.machine.write(stack, struct.pack(f"<{len(words)}Q", *words))
        self.machine.start(entry, stack)

    def steps(self) -> Iterator[list[access_hook.Event]]:
        """What it accesses up to each system call, in turn."""
        while True:
            self.machine.run()
            yield self.machine.events()
            number, *arguments = self.machine.call()
            if number in (Call.EXIT, Call.EXIT_GROUP):
                return
            self.machine.answer(self._call(number, *arguments))

    def _call(self, number: int, first: int, second: int, third: int, fourth: int, _fifth: int) -> int:
        machine = self.machine
        if number in SUCCEED:
            return 0
        if number in ONE:
            return 1
        match number:
            case Call.BRK:
                if self.lowest_break <= first < self.lowest_break + BREAK_BYTES:
                    self.break_ = first
                return self.break_
            case Call.MMAP:
                if not fourth & MAP_ANONYMOUS:
                    return EINVAL
                address = self.next_mapping
                self.next_mapping += -(-second // PAGE_SIZE) * PAGE_SIZE
                return address
            case Call.WRITE:
                self.output += machine.read(second, third)
                return third
            case Call.WRITEV:
                pieces = struct.iter_unpack("<QQ", machine.read(second, 16 * third))
                written = b"".join(machine.read(address, size) for address, size in pieces)
                self.output += written
                return len(written)
            case Call.ARCH_PRCTL:
                if first != ARCH_SET_FS:
                    return EINVAL
                machine.set_thread_pointer(second)
                return 0
            case Call.GETRANDOM:
                machine.write(first, bytes(second))
                return second
            case Call.UNAME:
                texts = ("Linux", "host", "6.1.0", "", "", "")
                machine.write(first, b"".join(text.encode().ljust(65, b"\0") for text in texts))
                return 0
            case Call.CLOCK_GETTIME:
                machine.write(second, bytes(16))
                return 0
            case Call.READLINK | Call.READLINKAT:
                return ENOENT
            case Call.FSTAT | Call.NEWFSTATAT:
                return EBADF
            case Call.IOCTL:
                return ENOTTY
        return ENOSYS
