"""System registers that random images read and write, by what they are for."""

from __future__ import annotations

from emulator.sysregs import SysReg

SCTLR, TTBR0, TTBR1, TCR = (SysReg(3, 0, 1, 0, 0), SysReg(3, 0, 2, 0, 0), SysReg(3, 0, 2, 0, 1), SysReg(3, 0, 2, 0, 2))
SPSR, ELR, ESR, FAR, VBAR = (
    SysReg(3, 0, 4, 0, 0), SysReg(3, 0, 4, 0, 1), SysReg(3, 0, 5, 2, 0), SysReg(3, 0, 6, 0, 0), SysReg(3, 0, 12, 0, 0),
)  # fmt: skip
CPACR, MAIR, MDSCR, SP_EL0, TPIDR = (
    SysReg(3, 0, 1, 0, 2), SysReg(3, 0, 10, 2, 0), SysReg(2, 0, 0, 2, 2), SysReg(3, 0, 4, 1, 0), SysReg(3, 0, 13, 0, 4),
)  # fmt: skip
ICC_IAR1, ICC_EOIR1, ICC_PMR, ICC_IGRPEN1 = (
    SysReg(3, 0, 12, 12, 0), SysReg(3, 0, 12, 12, 1), SysReg(3, 0, 4, 6, 0), SysReg(3, 0, 12, 12, 7),
)  # fmt: skip
PMU = [SysReg(3, 3, 9, crm, op2) for crm in (12, 13, 14) for op2 in range(8)]
PMU += [SysReg(3, 3, 14, crm, op2) for crm in (8, 12, 15) for op2 in range(8)] + [
    SysReg(3, 0, 9, 14, n) for n in (1, 2)
]
TIMERS = [SysReg(3, 3, 14, crm, op2) for crm in (0, 2, 3) for op2 in range(3)]
DEBUG = [SysReg(2, 0, 0, n, op2) for n in range(4) for op2 in (4, 5, 6, 7)] + [
    SysReg(2, 0, 1, 0, 4),
    SysReg(2, 0, 1, 1, 4),
]
GIC = [SysReg(3, 0, 12, crm, op2) for crm in (8, 9, 11, 12) for op2 in range(8)] + [ICC_PMR]
OTHERS = [
    SysReg(3, 0, 0, 0, 0), SysReg(3, 0, 0, 0, 5), SysReg(3, 3, 13, 0, 2), SysReg(3, 0, 13, 0, 1), SysReg(3, 0, 4, 2, 2),
    SysReg(3, 3, 4, 2, 1), SysReg(3, 3, 4, 2, 0), SysReg(3, 0, 4, 2, 0), SysReg(3, 0, 7, 4, 0), SysReg(3, 2, 0, 0, 0),
    SysReg(3, 1, 0, 0, 1), SysReg(3, 0, 14, 1, 0), SysReg(3, 3, 4, 4, 0), SysReg(3, 0, 4, 2, 3), SysReg(3, 0, 4, 2, 4),
]  # fmt: skip
STEERING = [SCTLR, TTBR0, TTBR1, TCR, SPSR, ELR, VBAR, CPACR, MAIR, MDSCR, SP_EL0, ESR, FAR]
