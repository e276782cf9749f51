"""struct pt_regs of what executes, as programs read it."""

from __future__ import annotations

import struct

from emulator.cpu import Cpu
from emulator.linux.arch.architecture import Architecture
from perfcore.abi.pt_regs import PT_REGS
from perfcore.events.programs import Register


def user_registers(architecture: Architecture, cpu: Cpu) -> bytes:
    """bpf_user_pt_regs_t"""
    return probe_registers(architecture, cpu.core.registers().__getitem__)


def probe_registers(architecture: Architecture, register: Register) -> bytes:
    """... of whoever has these registers."""
    names = architecture.register_names
    words = [register(names.index(saved.native)) if saved.native else saved.user for saved in PT_REGS[architecture.isa]]
    return struct.pack(f"<{len(words)}Q", *words)


def system_call_registers(architecture: Architecture, cpu: Cpu, number: int) -> bytes:
    """The same in a system call, whose number x86-64 keeps."""
    words = user_registers(architecture, cpu)
    if architecture.isa != "x86_64":
        return words
    at = 8 * [saved.name for saved in PT_REGS["x86_64"]].index("orig_ax")
    return words[:at] + struct.pack("<Q", number) + words[at + 8 :]
