"""target.xml: which registers there are, as GDB wants to be told. GDB's manual, "Target Description Format"."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.board.visible_registers import CORE, FLOATING_POINT, SYSTEM, VisibleRegister

REGISTERS = [*CORE, *FLOATING_POINT, *SYSTEM]  # by their numbers
IN_ONE_PACKET = len(CORE) + len(FLOATING_POINT)  # `g` has these; the others are asked for one by one

_TYPES = {"sp": "data_ptr", "pc": "code_ptr", "cpsr": "cpsr_flags"}
_STATE_BITS = {  # PSTATE as SPSR_EL1 has it
    "SP": (0, 0), "EL": (2, 3), "nRW": (4, 4), "F": (6, 6), "I": (7, 7), "A": (8, 8), "D": (9, 9), "IL": (20, 20),
    "SS": (21, 21), "PAN": (22, 22), "UAO": (23, 23), "V": (28, 28), "C": (29, 29), "Z": (30, 30), "N": (31, 31),
}  # fmt: skip
_LANES = {  # of a vector register: field -> (type, how many)
    "d": ("ieee_double", 2), "s": ("ieee_single", 4), "q": ("uint128", 1),
    "u64": ("uint64", 2), "u32": ("uint32", 4), "u16": ("uint16", 8), "u8": ("uint8", 16),
}  # fmt: skip


def _core_types() -> list[str]:
    fields = [f'<field name="{name}" start="{start}" end="{end}"/>' for name, (start, end) in _STATE_BITS.items()]
    return ['<flags id="cpsr_flags" size="4">', *fields, "</flags>"]


def _vector_types() -> list[str]:
    vectors = [f'<vector id="lanes_{field}" type="{kind}" count="{n}"/>' for field, (kind, n) in _LANES.items()]
    fields = [f'<field name="{field}" type="lanes_{field}"/>' for field in _LANES]
    return [*vectors, '<union id="vector">', *fields, "</union>"]


def _feature(name: str, types: list[str], registers: Sequence[VisibleRegister], first: int, group: str = "") -> str:
    lines = [f'<feature name="{name}">', *types]
    for number, each in enumerate(registers, first):
        kind = _TYPES.get(each.name, "vector" if each.bits == 128 else "int")
        in_group = f' group="{group}"' if group else ""
        lines.append(f'<reg name="{each.name}" bitsize="{each.bits}" type="{kind}" regnum="{number}"{in_group}/>')
    return "\n".join([*lines, "</feature>"])


def target_xml() -> bytes:
    parts = [
        '<?xml version="1.0"?>\n<!DOCTYPE target SYSTEM "gdb-target.dtd">\n<target version="1.0">',
        "<architecture>aarch64</architecture>",
        _feature("org.gnu.gdb.aarch64.core", _core_types(), CORE, 0),
        _feature("org.gnu.gdb.aarch64.fpu", _vector_types(), FLOATING_POINT, len(CORE)),
        _feature("org.qemu.gdb.arm.sys.regs", [], SYSTEM, IN_ONE_PACKET, "cp_regs"),
        "</target>",
    ]
    return "\n".join(parts).encode()
