"""A machine without Linux or devices, with one x86-64 processor: its guest is a kernel of hand-written code."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from emulator._native import GuestPageTables
from emulator.core_file.core_file import load_core
from emulator.cpu import Cpu, ExitReason, Level
from emulator.frequency import FrequencyProfile
from emulator.machine import Hardware, Machine, MachineConfig, Turn
from emulator.probes import Probe
from emulator.x86_64_system import SegmentField, SegmentRegister, SystemRegister, segment
from tests.unit.native.bare import FOREVER

MEMORY_BYTES = 16 << 20
LOADED_AT = 0x1_0000
RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, R8 = range(9)
RIP, RFLAGS = 16, 17

# Page table entries: Intel SDM vol. 3, 4.5.
PRESENT, WRITABLE, USER, ACCESSED, DIRTY, LARGE, GLOBAL, NX = 1, 2, 4, 0x20, 0x40, 0x80, 0x100, 1 << 63
TABLES = 0x2_0000  # of four levels: a page each
PTES = TABLES + 0x3000  # of the first 2 MiB

CODE_64, CODE_32, CODE_16, DATA = 0xA09B, 0xC09B, 0x009B, 0xC093
PE, WP, PG, PAE, OSFXSR = 1, 1 << 16, 1 << 31, 1 << 5, 1 << 9
SCE, LME, LMA, NXE = 1, 1 << 8, 1 << 10, 1 << 11


@dataclass
class Monitor:
    """The software of the machine: it has no devices but those that a test gives, and ends at HLT."""

    cpu: Cpu
    slice_cycles: int = FOREVER
    on_overflow: Callable[[], None] = lambda: None
    answers_to: dict[ExitReason, Callable[[Cpu], None]] = field(default_factory=dict)
    ended: bool = False
    exits: list[ExitReason] = field(default_factory=list)

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        return {
            ExitReason.IDLE: lambda cpu: self.end(),
            ExitReason.SHUTDOWN: lambda cpu: self.end(),
            ExitReason.OVERFLOW: lambda cpu: self.on_overflow(),
            ExitReason.DEADLINE: lambda cpu: None,
            **self.answers_to,
        }

    def next_turn(self) -> Turn | None:
        return None if self.ended else (self.cpu, self.cpu.core.cycles + self.slice_cycles)

    def end(self) -> None:
        self.ended = True


@dataclass
class Pc:
    cpu: Cpu
    tables: GuestPageTables
    monitor: Monitor
    machine: Machine

    @classmethod
    def load(cls, code: bytes, core: str = "ideal", frequencies: FrequencyProfile | None = None) -> Pc:
        """`code` at LOADED_AT; nothing else is set up."""
        hardware = Hardware(MachineConfig("x86_64", load_core(core), MEMORY_BYTES, frequencies=frequencies))
        assert hardware.memory.allocate(MEMORY_BYTES >> 12) == 0
        cpu = hardware.cpus[0]
        cpu.core.follow_branches()
        tables = cpu.enter_kernel_mode()
        monitor = Monitor(cpu)
        pc = cls(cpu, tables, monitor, Machine(hardware, monitor))
        pc.write(LOADED_AT, code)
        return pc

    def write(self, physical: int, data: bytes) -> None:
        self.machine.memory.view(0, MEMORY_BYTES >> 12)[physical : physical + len(data)] = data

    def read(self, physical: int, size: int = 8) -> int:
        return int.from_bytes(self.machine.memory.view(0, MEMORY_BYTES >> 12)[physical : physical + size], "little")

    def store(self, physical: int, value: int) -> None:
        self.write(physical, struct.pack("<Q", value))

    def set(self, values: Mapping[int, int]) -> None:
        for number, value in values.items():
            self.cpu.core.write_kernel_register(number, value)

    def get(self, number: int) -> int:
        return self.cpu.core.read_kernel_register(number)

    def set_segments(self, code: int, data: int = DATA) -> None:
        """Flat ones, of the selectors 08 and 10."""
        for register in (SegmentRegister.ES, SegmentRegister.CS, SegmentRegister.SS, SegmentRegister.DS):
            attributes = code if register is SegmentRegister.CS else data
            values = {
                SegmentField.SELECTOR: 0x08 if register is SegmentRegister.CS else 0x10,
                SegmentField.BASE: 0,
                SegmentField.LIMIT: 0xFFFF_FFFF,
                SegmentField.ATTRIBUTES: attributes,
            }
            self.set({segment(register, name): value for name, value in values.items()})

    def start_64(self, pages: Mapping[int, int]) -> None:
        """At LOADED_AT in 64-bit mode, with these entries for pages of the first 2 MiB."""
        for level in range(3):
            self.store(TABLES + 0x1000 * level, TABLES + 0x1000 * (level + 1) | PRESENT | WRITABLE | USER)
        for address, entry in pages.items():
            self.store(PTES + 8 * (address >> 12), entry)
        registers = SystemRegister
        self.set({registers.CR3: TABLES, registers.CR4: PAE | OSFXSR, registers.EFER: SCE | LME | LMA | NXE})
        self.set({registers.CR0: PE | PG | WP})
        self.set_segments(CODE_64)
        self.cpu.core.write_register(RIP, LOADED_AT)

    def run(self) -> None:
        self.machine.run_to_the_end()

    def by_level(self, probe: Probe) -> tuple[int, int]:
        return self.cpu.core.total(probe, Level.USER), self.cpu.core.total(probe, Level.KERNEL)
