"""struct pt_regs: the registers that an ISA's kernel saves, by the names that probes have for them.

uapi/asm/ptrace.h for their order, regoffset_table in arch/*/kernel/ptrace.c for the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from emulator.linux.arch.x86_64 import USER_CS, USER_SS

KERNEL_CS, KERNEL_SS = 0x10, 0x18  # x86-64's selectors of the kernel's own code and stack
_NO_SYSTEM_CALL = (1 << 64) - 1  # orig_ax, where there was none


class SavedRegister(NamedTuple):
    """One of them."""

    name: str  # behind %
    native: str  # of `Architecture.register_names`; "": it is none of those
    user: int = 0  # what that is while a program executes


def _x86_64() -> tuple[SavedRegister, ...]:
    numbered = [SavedRegister(name, name) for name in ("r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8")]
    bp, bx, ax, cx, dx, si, di, ip, flags, sp = (
        SavedRegister(name, f"r{name}") for name in ("bp", "bx", "ax", "cx", "dx", "si", "di", "ip", "flags", "sp")
    )
    orig_ax = SavedRegister("orig_ax", "", _NO_SYSTEM_CALL)
    cs, ss = SavedRegister("cs", "", USER_CS), SavedRegister("ss", "", USER_SS)
    return (*numbered[:4], bp, bx, *numbered[4:], ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss)


PT_REGS: Mapping[str, tuple[SavedRegister, ...]] = {
    "x86_64": _x86_64(),
    "aarch64": tuple(SavedRegister(name, name) for name in (*(f"x{n}" for n in range(31)), "sp", "pc", "pstate")),
}
_ALIASES = {"aarch64": {"lr": "x30"}}

# Linux passes a function's first arguments in these; what it returns is in one.
ARGUMENTS = {"x86_64": ("di", "si", "dx", "cx", "r8", "r9"), "aarch64": tuple(f"x{n}" for n in range(8))}
RESULT = {"x86_64": "ax", "aarch64": "x0"}

# Of a kprobe at a function's first instruction: where the next one is said to be, from that on (x86-64's stop is an
# instruction of one byte); and what is the same in all of the kernel.
PROGRAM_COUNTER = {"x86_64": ("ip", 1), "aarch64": ("pc", 0)}
OF_THE_KERNEL: Mapping[str, Mapping[str, int]] = {"x86_64": {"cs": KERNEL_CS, "ss": KERNEL_SS}, "aarch64": {}}


def find_saved(isa: str, name: str) -> SavedRegister | None:
    """regs_query_register_offset()"""
    wanted = _ALIASES.get(isa, {}).get(name, name)
    return next((register for register in PT_REGS[isa] if register.name == wanted), None)
