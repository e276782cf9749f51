"""Both ISAs' registers, by name."""

from __future__ import annotations

from emulator.linux.ptrace.aarch64 import AArch64Registers
from emulator.linux.ptrace.registers import TracedRegisters
from emulator.linux.ptrace.x86_64 import X86Registers

TRACED_REGISTERS: dict[str, TracedRegisters] = {"aarch64": AArch64Registers(), "x86_64": X86Registers()}
