"""struct pt_regs of what executes, as programs read it."""

from __future__ import annotations

import struct

from emulator.cpu import Cpu
from emulator.linux.arch.architecture import Architecture
from perfcore.abi.pt_regs import OF_THE_KERNEL, PROGRAM_COUNTER, PT_REGS, RESULT
from perfcore.events.programs import Register


def user_registers(architecture: Architecture, cpu: Cpu) -> bytes:
    """bpf_user_pt_regs_t"""
    return probe_registers(architecture, cpu.core.registers().__getitem__)


def probe_registers(architecture: Architecture, register: Register) -> bytes:
    """... of whoever has these registers."""
    names = architecture.register_names
    words = [register(names.index(saved.native)) if saved.native else saved.user for saved in PT_REGS[architecture.isa]]
    return struct.pack(f"<{len(words)}Q", *words)


def kernel_registers(architecture: Architecture, register: Register, address: int | None) -> bytes:
    """... of the kernel's own code: at the beginning of the function at `address`; None: it has returned.

    Of the modelled kernel arguments and results are known, selectors, and where it is. The rest is 0.
    """
    isa, names = architecture.isa, architecture.register_names
    counter, behind = PROGRAM_COUNTER[isa]
    words = []
    for saved in PT_REGS[isa]:
        if saved.name == counter:
            words.append(0 if address is None else address + behind)
        elif saved.native:
            known = address is not None or saved.name == RESULT[isa]
            words.append(register(names.index(saved.native)) if known else 0)
        else:
            words.append(OF_THE_KERNEL[isa].get(saved.name, saved.user))
    return struct.pack(f"<{len(words)}Q", *words)


def system_call_registers(architecture: Architecture, cpu: Cpu, number: int) -> bytes:
    """The same in a system call, whose number x86-64 keeps."""
    words = user_registers(architecture, cpu)
    if architecture.isa != "x86_64":
        return words
    at = 8 * [saved.name for saved in PT_REGS["x86_64"]].index("orig_ax")
    return words[:at] + struct.pack("<Q", number) + words[at + 8 :]
