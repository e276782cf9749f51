"""struct pt_regs of what executes, as programs read it."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from emulator.cpu import Cpu
from emulator.linux.arch.architecture import Architecture
from emulator.linux.arch.x86_64 import USER_CS, USER_SS
from perfcore.events.programs import Register

# uapi/asm/ptrace.h, in its order: names of `Architecture.register_names`, or what it is in every program
_X86_64 = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *((1 << 64) - 1, "rip", USER_CS, "rflags", "rsp", USER_SS),  # orig_rax: there was no system call
)
_AARCH64 = (*(f"x{number}" for number in range(31)), "sp", "pc", "pstate")
_LAYOUTS: Mapping[str, tuple[str | int, ...]] = {"x86_64": _X86_64, "aarch64": _AARCH64}


def user_registers(architecture: Architecture, cpu: Cpu) -> bytes:
    """bpf_user_pt_regs_t"""
    return probe_registers(architecture, cpu.core.registers().__getitem__)


def probe_registers(architecture: Architecture, register: Register) -> bytes:
    """... of whoever has these registers."""
    names, layout = architecture.register_names, _LAYOUTS[architecture.isa]
    words = [word if isinstance(word, int) else register(names.index(word)) for word in layout]
    return struct.pack(f"<{len(words)}Q", *words)


def system_call_registers(architecture: Architecture, cpu: Cpu, number: int) -> bytes:
    """The same in a system call, whose number x86-64 keeps."""
    words = user_registers(architecture, cpu)
    if architecture.isa != "x86_64":
        return words
    at = 8 * _X86_64.index((1 << 64) - 1)
    return words[:at] + struct.pack("<Q", number) + words[at + 8 :]
