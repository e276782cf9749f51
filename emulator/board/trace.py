"""Trace: what a board's guest does beside computing, a line for each time that its board is asked.

Registers that the core itself answers (its translation tables', the exception link, the stack pointers) are not among
them, and exceptions that are interrupts are where the guest acknowledges them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum

from emulator.cpu import Cpu
from emulator.sysregs import SysReg


class Traced(StrEnum):
    """What may be asked for."""

    EXCEPTIONS = "exceptions"
    INTERRUPTS = "interrupts"
    MMIO = "mmio"
    SYSREGS = "sysregs"  # AArch64's
    MSRS = "msrs"  # x86-64's, and ports
    PORTS = "ports"


class Trace:
    """Who is interested in what; `write` gets the lines."""

    def __init__(self, what: Collection[Traced], write: Callable[[str], None]) -> None:
        self.exceptions = Traced.EXCEPTIONS in what
        self.interrupts = Traced.INTERRUPTS in what
        self.mmio = Traced.MMIO in what
        self.sysregs = Traced.SYSREGS in what
        self.msrs = Traced.MSRS in what
        self.ports = Traced.PORTS in what
        self._write = write

    def note(self, cpu: Cpu, text: str) -> None:
        """As `cpu` is now: its cycle, its level, and where its PC is."""
        core = cpu.core
        self.write(core.cycles, cpu.number, _LEVELS[cpu.isa][cpu.level], core.pc, text)

    def write(self, cycle: int, cpu: int, level: str, pc: int, text: str) -> None:
        self._write(f"{cycle} CPU {cpu} {level} {pc:#x}: {text}")


_LEVELS = {"aarch64": ("EL0", "EL1"), "x86_64": ("user", "kernel")}  # by ISA and Level

NOTHING = Trace((), lambda line: None)

# Arm ARM DDI 0487 and GICv3's IHI 0069: op0 is 3, then (op1, CRn, CRm, op2)
_NAMES = {
    (0, 4, 6, 0): "ICC_PMR_EL1",
    (0, 12, 8, 3): "ICC_BPR0_EL1",
    (0, 12, 11, 1): "ICC_DIR_EL1",
    (0, 12, 11, 3): "ICC_RPR_EL1",
    (0, 12, 11, 5): "ICC_SGI1R_EL1",
    (0, 12, 12, 0): "ICC_IAR1_EL1",
    (0, 12, 12, 1): "ICC_EOIR1_EL1",
    (0, 12, 12, 2): "ICC_HPPIR1_EL1",
    (0, 12, 12, 3): "ICC_BPR1_EL1",
    (0, 12, 12, 4): "ICC_CTLR_EL1",
    (0, 12, 12, 5): "ICC_SRE_EL1",
    (0, 12, 12, 7): "ICC_IGRPEN1_EL1",
    (0, 0, 0, 0): "MIDR_EL1",
    (0, 0, 0, 5): "MPIDR_EL1",
    (0, 0, 0, 6): "REVIDR_EL1",
    (0, 0, 4, 0): "ID_AA64PFR0_EL1",
    (0, 0, 4, 1): "ID_AA64PFR1_EL1",
    (0, 0, 5, 0): "ID_AA64DFR0_EL1",
    (0, 0, 5, 1): "ID_AA64DFR1_EL1",
    (0, 0, 6, 0): "ID_AA64ISAR0_EL1",
    (0, 0, 6, 1): "ID_AA64ISAR1_EL1",
    (0, 0, 7, 0): "ID_AA64MMFR0_EL1",
    (0, 0, 7, 1): "ID_AA64MMFR1_EL1",
    (0, 0, 7, 2): "ID_AA64MMFR2_EL1",
    (0, 1, 0, 1): "ACTLR_EL1",
    (1, 0, 0, 0): "CCSIDR_EL1",
    (1, 0, 0, 1): "CLIDR_EL1",
    (2, 0, 0, 0): "CSSELR_EL1",
    (3, 0, 0, 1): "CTR_EL0",
    (3, 0, 0, 7): "DCZID_EL0",
    (0, 14, 1, 0): "CNTKCTL_EL1",
    (3, 14, 0, 0): "CNTFRQ_EL0",
    (3, 14, 0, 1): "CNTPCT_EL0",
    (3, 14, 0, 2): "CNTVCT_EL0",
    (3, 14, 2, 0): "CNTP_TVAL_EL0",
    (3, 14, 2, 1): "CNTP_CTL_EL0",
    (3, 14, 2, 2): "CNTP_CVAL_EL0",
    (3, 14, 3, 0): "CNTV_TVAL_EL0",
    (3, 14, 3, 1): "CNTV_CTL_EL0",
    (3, 14, 3, 2): "CNTV_CVAL_EL0",
    (0, 9, 14, 1): "PMINTENSET_EL1",
    (0, 9, 14, 2): "PMINTENCLR_EL1",
    (0, 9, 13, 3): "PMSSCR_EL1",
    (0, 9, 14, 4): "PMUACR_EL1",
    (0, 9, 14, 5): "PMECR_EL1",
    (0, 9, 14, 6): "PMMIR_EL1",
    (3, 9, 4, 0): "PMICNTR_EL0",
    (3, 9, 6, 0): "PMICFILTR_EL0",
    (3, 9, 12, 0): "PMCR_EL0",
    (3, 9, 12, 1): "PMCNTENSET_EL0",
    (3, 9, 12, 2): "PMCNTENCLR_EL0",
    (3, 9, 12, 3): "PMOVSCLR_EL0",
    (3, 9, 12, 4): "PMSWINC_EL0",
    (3, 9, 12, 5): "PMSELR_EL0",
    (3, 9, 12, 6): "PMCEID0_EL0",
    (3, 9, 12, 7): "PMCEID1_EL0",
    (3, 9, 13, 0): "PMCCNTR_EL0",
    (3, 9, 13, 1): "PMXEVTYPER_EL0",
    (3, 9, 13, 2): "PMXEVCNTR_EL0",
    (3, 9, 13, 4): "PMZR_EL0",
    (3, 9, 14, 0): "PMUSERENR_EL0",
    (3, 9, 14, 3): "PMOVSSET_EL0",
    (3, 14, 15, 7): "PMCCFILTR_EL0",
}
_MOST_COUNTERS = 31


def register_name(register: SysReg) -> str:
    """As the architecture has it; by its encoding where we do not know better."""
    op0, op1, crn, crm, op2 = register
    counter = (crm & 3) << 3 | op2
    if (op0, op1, crn) == (3, 3, 14) and crm >= 8 and counter < _MOST_COUNTERS:
        return f"PMEV{'TYPER' if crm >= 12 else 'CNTR'}{counter}_EL0"
    known = _NAMES.get((op1, crn, crm, op2)) if op0 == 3 else None
    return known or f"S{op0}_{op1}_C{crn}_C{crm}_{op2}"
