"""What GDB is told of each architecture's registers. Names of features and types: GDB's manual, "Standard Target
Features"."""

from __future__ import annotations

from emulator.board import visible_registers as aarch64
from emulator.board.board_cpu import BoardCpu
from emulator.board.pc import visible_registers as x86_64
from emulator.board.pc.pc_cpu import PcCpu
from emulator.cpu import Level
from emulator.x86_64_system import SystemRegister
from perfemu.gdb.target_description import Feature, TargetDescription, flags, lanes

_PSTATE_BITS = {  # as SPSR_EL1 has it
    "SP": (0, 0), "EL": (2, 3), "nRW": (4, 4), "F": (6, 6), "I": (7, 7), "A": (8, 8), "D": (9, 9), "IL": (20, 20),
    "SS": (21, 21), "PAN": (22, 22), "UAO": (23, 23), "V": (28, 28), "C": (29, 29), "Z": (30, 30), "N": (31, 31),
}  # fmt: skip
_VECTOR_LANES = {
    "d": ("ieee_double", 2), "s": ("ieee_single", 4), "q": ("uint128", 1),
    "u64": ("uint64", 2), "u32": ("uint32", 4), "u16": ("uint16", 8), "u8": ("uint8", 16),
}  # fmt: skip
_EFLAGS_BITS = {
    name: (bit, bit)
    for name, bit in (
        ("CF", 0), ("PF", 2), ("AF", 4), ("ZF", 6), ("SF", 7), ("TF", 8), ("IF", 9), ("DF", 10), ("OF", 11),
        ("NT", 14), ("RF", 16), ("VM", 17), ("AC", 18), ("VIF", 19), ("VIP", 20), ("ID", 21),
    )
}  # fmt: skip
_MXCSR_BITS = {
    name: (bit, bit)
    for bit, name in enumerate(["IE", "DE", "ZE", "OE", "UE", "PE", "DAZ", "IM", "DM", "ZM", "OM", "UM", "PM"])
} | {"FZ": (15, 15)}  # fmt: skip
_CR0_BITS = {
    name: (bit, bit)
    for name, bit in (
        ("PE", 0), ("MP", 1), ("EM", 2), ("TS", 3), ("ET", 4), ("NE", 5), ("WP", 16), ("AM", 18), ("NW", 29),
        ("CD", 30), ("PG", 31),
    )
}  # fmt: skip
_CR4_BITS = {
    name: (bit, bit)
    for name, bit in (
        ("VME", 0), ("PVI", 1), ("TSD", 2), ("DE", 3), ("PSE", 4), ("PAE", 5), ("MCE", 6), ("PGE", 7), ("PCE", 8),
        ("OSFXSR", 9), ("OSXMMEXCPT", 10), ("UMIP", 11), ("FSGSBASE", 16), ("PCIDE", 17), ("OSXSAVE", 18),
        ("SMEP", 20), ("SMAP", 21), ("PKE", 22),
    )
}  # fmt: skip
_EFER_BITS = {name: (bit, bit) for name, bit in (("SCE", 0), ("LME", 8), ("LMA", 10), ("NXE", 11))}
_XMM_LANES = {
    "v4_float": ("ieee_single", 4), "v2_double": ("ieee_double", 2), "v16_int8": ("int8", 16),
    "v8_int16": ("int16", 8), "v4_int32": ("int32", 4), "v2_int64": ("int64", 2), "uint128": ("uint128", 1),
}  # fmt: skip


def _exception_level(cpu: BoardCpu) -> str:
    return f"EL{Level(cpu.core.level).value}"


def _privilege(cpu: PcCpu) -> str:
    return f"CPL {cpu.core.read_kernel_register(SystemRegister.CPL)}"


_AARCH64 = TargetDescription(
    "aarch64",
    [
        Feature(
            "org.gnu.gdb.aarch64.core",
            aarch64.CORE,
            flags("cpsr_flags", 4, _PSTATE_BITS),
            {"sp": "data_ptr", "pc": "code_ptr", "cpsr": "cpsr_flags"},
        ),
        Feature(
            "org.gnu.gdb.aarch64.fpu",
            aarch64.FLOATING_POINT,
            lanes("vector", _VECTOR_LANES),
            {f"v{number}": "vector" for number in range(aarch64.VECTORS)},
        ),
        Feature("org.qemu.gdb.arm.sys.regs", aarch64.SYSTEM, group="cp_regs"),
    ],
    len(aarch64.CORE) + len(aarch64.FLOATING_POINT),
    aarch64.PC,
    _exception_level,
    "cp_regs",
)
_X86_64 = TargetDescription(
    "i386:x86-64",
    [
        Feature(
            "org.gnu.gdb.i386.core",
            x86_64.CORE,
            flags("i386_eflags", 4, _EFLAGS_BITS),
            {"rbp": "data_ptr", "rsp": "data_ptr", "rip": "code_ptr", "eflags": "i386_eflags"}
            | {f"st{number}": "i387_ext" for number in range(x86_64.STACK_REGISTERS)},
        ),
        Feature(
            "org.gnu.gdb.i386.sse",
            x86_64.SSE,
            [*lanes("vec128", _XMM_LANES), *flags("i386_mxcsr", 4, _MXCSR_BITS)],
            {f"xmm{number}": "vec128" for number in range(x86_64.VECTORS)} | {"mxcsr": "i386_mxcsr"},
        ),
        Feature("org.gnu.gdb.i386.segments", x86_64.BASES),
        Feature(
            "perfemu.x86_64.system",
            x86_64.SYSTEM,
            [*flags("cr0_flags", 8, _CR0_BITS), *flags("cr4_flags", 8, _CR4_BITS), *flags("efer_flags", 8, _EFER_BITS)],
            {name: f"{name}_flags" for name in ("cr0", "cr4", "efer")},
            "system",
        ),
    ],
    len(x86_64.CORE) + len(x86_64.SSE) + len(x86_64.BASES),
    x86_64.RIP,
    _privilege,
    "system",
)
TARGETS = {"aarch64": _AARCH64, "x86_64": _X86_64}  # by ISA
