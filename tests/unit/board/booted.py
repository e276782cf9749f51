"""Bare-metal code on the board virt, started as a flat image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from emulator.board.board import Boot, Outside
from emulator.board.debugging import Debugged, Stop
from emulator.board.image import read_image
from emulator.board.serial_input import Source
from emulator.board.virt import Virt
from emulator.board.virt_tree import RAM_BASE, UART
from emulator.core_file.core_file import load_core
from emulator.cpu import Cpu
from emulator.machine import Hardware, Machine, MachineConfig, Software
from pmu.arm.pmuv3 import PmuV3
from pmu.model import model
from tests.unit.native.bare import assemble

LOADED_AT = RAM_BASE + 0x8_0000
MEMORY_BYTES = 16 << 20

# Where a test's code begins with these, x20 is the UART, and `off` turns the board off.
START = f"""
        movz    x20, #{UART >> 16}, lsl #16
"""
# Interrupts of group 1 come to CPU 0, if they are enabled; x1 is the distributor.
GIC_ON = """
        mov     x0, #1
        msr     s3_0_c12_c12_7, x0      // ICC_IGRPEN1_EL1
        mov     x0, #0xf0
        msr     s3_0_c4_c6_0, x0        // ICC_PMR_EL1
        movz    x1, #0x0800, lsl #16    // GICD
        mov     w0, #2
        str     w0, [x1]                // CTLR: group 1
"""
OFF = """
off:    movz    w0, #0x8400, lsl #16
        movk    w0, #8
        hvc     #0
"""


class BoardDebugger(Protocol):
    """A `Debugger` that is told what it debugs."""

    debugged: Debugged | None

    def stopped(self, stop: Stop) -> None: ...

    def look(self) -> bool: ...


@dataclass
class Booted:
    """One run, at its end."""

    board: Virt
    cpus: list[Cpu]
    output: bytes
    messages: list[str] = field(default_factory=list)

    def register(self, number: int, cpu: int = 0) -> int:
        return self.cpus[cpu].core.read_register(number)


def boot(
    source: str,
    folder: Path,
    *,
    core: str = "ideal",
    cpus: int = 1,
    quantum: int = 1000,
    instructions: int | None = None,
    nanoseconds: int | None = None,
    source_of_input: Source | None = None,
    counters: int | None = None,
    pmu: str = "armv8_pmuv3",
    watch: Callable[[Sequence[Cpu]], None] | None = None,
    debugger: BoardDebugger | None = None,
    **offered: Any,
) -> Booted:
    """The code between START and OFF, run to the board's end. `counters`: of a PMU that each CPU has then, a `pmu`.

    `watch` may count what the CPUs do; `debugger` may stop them; `offered`: what of Outside there is besides.
    """
    code = assemble("aarch64", START + source + OFF, folder)
    limits = {"most_instructions": instructions, "most_ns": nanoseconds}
    config = MachineConfig("aarch64", load_core(core), MEMORY_BYTES, cpus=cpus, quantum=quantum, **limits)
    hardware = Hardware(config)
    if watch is not None:
        watch(hardware.cpus)
    output, messages = bytearray(), []
    pmus = [] if counters is None else [_pmu(cpu, pmu, counters) for cpu in hardware.cpus]
    outside = Outside(output.extend, messages.append, source_of_input, **offered)
    board = Virt(hardware, Boot(read_image(code, RAM_BASE)), outside, pmus)
    software: Software = board
    if debugger is not None:
        software = debugger.debugged = Debugged(board, hardware.memory, RAM_BASE, debugger)
    Machine(hardware, software).run_to_the_end()
    return Booted(board, hardware.cpus, bytes(output), messages)


def _pmu(cpu: Cpu, name: str, counters: int) -> PmuV3:
    pmu = model(name)
    return PmuV3(cpu.core.add_bank(pmu.bank_size(counters)), pmu, counters)


def private_interrupt_on(number: int) -> str:
    """Code after which that SGI or PPI comes to CPU 0. Uses x0 and x1."""
    enabled = f"""
        movz    x1, #0x080b, lsl #16    // GICR, its second frame
        mov     w0, #-1
        str     w0, [x1, #0x80]         // IGROUPR0
        mov     w0, #1 << {number}
        str     w0, [x1, #0x100]        // ISENABLER0
    """
    return GIC_ON + enabled
