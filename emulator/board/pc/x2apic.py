"""The local APIC's registers as MSRs: IA32_APIC_BASE, which says in which mode it is, and 800H to 83FH in x2APIC mode.

Intel SDM volume 3, "Extended XAPIC (x2APIC)". An access that the manual forbids is #GP: UndefinedRegister.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial

from emulator.board.pc import extended_apic, local_apic
from emulator.board.pc.local_apic import KEPT_BITS, REGISTER_BYTES, LocalApic, Mode
from emulator.board.pc.memory_map import LOCAL_APIC
from emulator.board.pc.msrs import APIC_ENABLED, BOOT_PROCESSOR, IA32_APIC_BASE, X2APIC
from emulator.sysregs import Access, Msr, SystemRegisters, UndefinedRegister

FIRST = 0x800
SELF_INTERRUPT = 0x83F
INTERRUPT_COMMAND = 0x830  # of 64 bits
BYTES_OF_AN_MSR = 16  # of the registers in memory
READ_ONLY_BITS = 1 << 12 | 1 << 14  # of entries of the local vector table: writing them changes nothing
_BITS_OF_A_VECTOR = 32


class _May(Enum):
    READ = "read"
    WRITE = "write"
    BOTH = "both"


def _rows() -> dict[int, tuple[str, _May, int]]:
    """By offset: name, what software may do, and the bits that it may set."""
    named = local_apic
    entries = {
        named.LVT_TIMER: "TIMER", named.LVT_THERMAL: "THERMAL", named.LVT_PMC: "PMI", named.LVT_LINT0: "LINT0",
        named.LVT_LINT1: "LINT1", named.LVT_ERROR: "ERROR",
    }  # fmt: skip
    rows = {
        named.ID: ("APICID", _May.READ, 0),
        named.APIC_VERSION: ("VERSION", _May.READ, 0),
        named.TPR: ("TPR", _May.BOTH, KEPT_BITS[named.TPR]),
        named.PPR: ("PPR", _May.READ, 0),
        named.EOI: ("EOI", _May.WRITE, 0),
        named.LDR: ("LDR", _May.READ, 0),
        named.SVR: ("SIVR", _May.BOTH, KEPT_BITS[named.SVR]),
        named.ESR: ("ESR", _May.BOTH, 0),
        named.ICR_LOW: ("ICR", _May.BOTH, 0xFFFF_FFFF << 32 | KEPT_BITS[named.ICR_LOW]),
        named.INITIAL_COUNT: ("INIT_COUNT", _May.BOTH, KEPT_BITS[named.INITIAL_COUNT]),
        named.CURRENT_COUNT: ("CUR_COUNT", _May.READ, 0),
        named.DIVIDE: ("DIV_CONF", _May.BOTH, KEPT_BITS[named.DIVIDE]),
        named.SELF_IPI: ("SELF_IPI", _May.WRITE, 0xFF),
    }
    rows |= {entry: (f"LVT_{name}", _May.BOTH, KEPT_BITS[entry] | READ_ONLY_BITS) for entry, name in entries.items()}
    for first, name in ((named.ISR, "ISR"), (named.TMR, "TMR"), (named.IRR, "IRR")):
        rows |= {first + BYTES_OF_AN_MSR * n: (f"{name}{n}", _May.READ, 0) for n in range(256 // _BITS_OF_A_VECTOR)}
    return rows


ROWS = _rows()


EXTENDED_ROWS = {
    extended_apic.FEATURE: ("EXT_FEATURE", _May.READ, 0),
    extended_apic.CONTROL: ("EXT_CONTROL", _May.BOTH, 0),
} | {
    entry: (f"EXT_LVT{n}", _May.BOTH, KEPT_BITS[local_apic.LVT_PMC] | READ_ONLY_BITS)
    for n, entry in enumerate(extended_apic.ENTRIES)
}


def claim(registers: SystemRegisters, apic: LocalApic) -> dict[int, str]:
    """Of one CPU. The registers' names."""
    registers.claim(
        Msr(IA32_APIC_BASE), Access(partial(_base, apic), partial(_set_base, apic), takes=partial(_check_base, apic))
    )
    names = {IA32_APIC_BASE: "IA32_APIC_BASE"}
    for offset, (name, may, bits) in (ROWS | (EXTENDED_ROWS if apic.is_amd else {})).items():
        number = FIRST + offset // BYTES_OF_AN_MSR
        names[number] = f"IA32_X2APIC_{name}"
        registers.claim(
            Msr(number),
            Access(
                None if may is _May.WRITE else partial(_read, apic, offset),
                None if may is _May.READ else _writer(apic, offset),
                partial(_require_mode, apic),
                partial(_check_bits, names[number], bits),
            ),
        )
    return names


def _require_mode(apic: LocalApic) -> None:
    if apic.mode != Mode.X2APIC:
        raise UndefinedRegister("the local APIC is not in x2APIC mode")


def _check_bits(name: str, bits: int, value: int) -> None:
    if value & ~bits:
        raise UndefinedRegister(f"{name} has no bits {value & ~bits:#x}")


def _read(apic: LocalApic, offset: int) -> int:
    _require_mode(apic)
    value = apic.read(offset, REGISTER_BYTES)
    if offset == local_apic.ICR_LOW:
        value |= apic.read(local_apic.ICR_HIGH, REGISTER_BYTES) << 32
    return value


def _writer(apic: LocalApic, offset: int) -> Callable[[int], None]:
    if offset == local_apic.SELF_IPI:
        return apic.interrupt_itself
    if offset != local_apic.ICR_LOW:
        return lambda value: apic.write(offset, REGISTER_BYTES, value)

    def command(value: int) -> None:
        apic.write(local_apic.ICR_HIGH, REGISTER_BYTES, value >> 32)
        apic.write(local_apic.ICR_LOW, REGISTER_BYTES, value & 0xFFFF_FFFF)

    return command


# ---- IA32_APIC_BASE

_BITS = {Mode.OFF: 0, Mode.XAPIC: APIC_ENABLED, Mode.X2APIC: APIC_ENABLED | X2APIC}
_MODES = {bits: mode for mode, bits in _BITS.items()}
# "x2APIC State Transitions": all others are #GP.
_LEGAL = {
    Mode.OFF: {Mode.OFF, Mode.XAPIC},
    Mode.XAPIC: {Mode.OFF, Mode.XAPIC, Mode.X2APIC},
    Mode.X2APIC: {Mode.OFF, Mode.X2APIC},
}


def _base(apic: LocalApic) -> int:
    return LOCAL_APIC | (BOOT_PROCESSOR if apic.number == 0 else 0) | _BITS[apic.mode]


def _check_base(apic: LocalApic, value: int) -> None:
    base, switches = _base(apic), APIC_ENABLED | X2APIC
    mode = _MODES.get(value & switches)
    if mode is None or mode not in _LEGAL[apic.mode]:
        raise UndefinedRegister(f"IA32_APIC_BASE is {base:#x}, and {value:#x} is no legal transition from that")
    if (value ^ base) & ~switches:
        raise UndefinedRegister(f"IA32_APIC_BASE is {base:#x}, and {value:#x} would move it")


def _set_base(apic: LocalApic, value: int) -> None:
    apic.set_mode(_MODES[value & (APIC_ENABLED | X2APIC)])
