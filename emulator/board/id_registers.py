"""What an AArch64 CPU of the board says of itself at EL1: its ID registers, and those that only hold a value.

Fields: Arm ARM DDI 0487, "AArch64 System Register Descriptions".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from emulator.aarch64_features import ID_AA64PFR0_EL1, features_of
from emulator.arch.processor import CacheKind, Processor
from emulator.board.debug_unit import BREAKPOINTS, CONTEXT_BREAKPOINTS, WATCHPOINTS
from emulator.cpu import Cpu
from emulator.sysregs import Access, SysReg

ID_AA64DFR0_EL1, ID_AA64DFR1_EL1 = SysReg(3, 0, 0, 5, 0), SysReg(3, 0, 0, 5, 1)
ID_SPACE = [SysReg(3, 0, 0, crm, op2) for crm in range(1, 8) for op2 in range(8)]
BASE: dict[SysReg, int] = {
    SysReg(3, 0, 0, 0, 6): 0,  # REVIDR_EL1
    ID_AA64PFR0_EL1: 0x11,  # EL1 and EL0 are AArch64 alone; FP and AdvSIMD
    # debug architecture v8
    ID_AA64DFR0_EL1: CONTEXT_BREAKPOINTS - 1 << 28 | WATCHPOINTS - 1 << 20 | BREAKPOINTS - 1 << 12 | 6,
    SysReg(3, 0, 0, 7, 0): 0x0F00_0025,  # ID_AA64MMFR0_EL1: granules of 4 KiB alone; ASIDs of 16 bits, addresses of 48
}
# Software may keep values in them, and nothing follows from that here: name -> register
KEPT = {
    "ACTLR_EL1": SysReg(3, 0, 1, 0, 1),
}
MIDR_EL1, MPIDR_EL1 = SysReg(3, 0, 0, 0, 0), SysReg(3, 0, 0, 0, 5)
CLIDR_EL1, CCSIDR_EL1, CSSELR_EL1 = SysReg(3, 1, 0, 0, 1), SysReg(3, 1, 0, 0, 0), SysReg(3, 2, 0, 0, 0)
AIDR_EL1 = SysReg(3, 1, 0, 0, 7)
MPIDR_IS_ONE = 1 << 31

CLIDR_TYPES = {frozenset({CacheKind.Instruction, CacheKind.Data}): 3, frozenset({CacheKind.Unified}): 4}


class Held:
    """A register that holds what was written last."""

    kept = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def read(self) -> int:
        return self.value

    def write(self, value: int) -> None:
        self.value = value


def claim(cpu: Cpu, processor: Processor, parts: Iterable[Mapping[SysReg, int]], *, gic_registers: bool) -> list[Held]:
    """`parts`: what ID registers say of the PMU, say. `gic_registers`: whether there are GICv3's.

    Returns those of them that hold something.
    """
    registers = cpu.system_registers
    values = {**dict.fromkeys(ID_SPACE, 0), **BASE, MIDR_EL1: processor.midr_el1, AIDR_EL1: 0}
    values[ID_AA64PFR0_EL1] |= gic_registers << 24
    for part in parts:
        for register, value in part.items():
            values[register] |= value
    values[MPIDR_EL1] = MPIDR_IS_ONE | cpu.number
    for feature in features_of(processor.features):
        if feature.register is not None:
            values[feature.register] += feature.value << feature.shift
    for register, value in values.items():
        registers.claim(register, Access(read=partial(int, value)))
    held = [Held() for _ in KEPT]
    for register, its in zip(KEPT.values(), held, strict=True):
        registers.claim(register, Access(its.read, its.write))
    return [*held, _claim_caches(cpu, processor)]


def _claim_caches(cpu: Cpu, processor: Processor) -> Held:
    """CLIDR_EL1 says which there are; CSSELR_EL1, which is returned, chooses the one that CCSIDR_EL1 describes."""
    selection = Held()
    level_of_unification = coherency = 0
    clidr = 0
    levels: dict[int, set[CacheKind]] = {}
    for cache in processor.caches:
        levels.setdefault(cache.level, set()).add(cache.kind)
    for level, kinds in levels.items():
        clidr |= CLIDR_TYPES.get(frozenset(kinds), 4) << 3 * (level - 1)
        level_of_unification, coherency = 1, max(coherency, level)
    clidr |= level_of_unification << 21 | coherency << 24 | level_of_unification << 27

    def describe() -> int:
        level, instruction = (selection.value >> 1) + 1, selection.value & 1
        for cache in processor.caches:
            if cache.level == level and (cache.kind is CacheKind.Instruction) == bool(instruction):
                return (cache.sets - 1) << 13 | (cache.ways - 1) << 3 | cache.line.bit_length() - 5
        return 0

    registers = cpu.system_registers
    registers.claim(CLIDR_EL1, Access(read=lambda: clidr))
    registers.claim(CSSELR_EL1, Access(selection.read, lambda value: selection.write(value & 0xF)))
    registers.claim(CCSIDR_EL1, Access(read=describe))
    return selection
