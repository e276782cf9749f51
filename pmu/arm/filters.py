"""Where a PMEVTYPER<n>_EL0, PMCCFILTR_EL0 or PMICFILTR_EL0 value lets its counter count. Their bits are the same."""

from __future__ import annotations

from emulator.cpu import Level
from pmu.arm.registers import PMEVTYPERn_EL0

_NOT_EL1, _NOT_EL0 = PMEVTYPERn_EL0.P.mask, PMEVTYPERn_EL0.U.mask
_NSK, _NSU = PMEVTYPERn_EL0.NSK.mask, PMEVTYPERn_EL0.NSU.mask


def counts_user(filters: int) -> bool:
    """Whether Non-secure EL0 counts: U and NSU are equal."""
    return bool(filters & _NOT_EL0) == bool(filters & _NSU)


def counts_kernel(filters: int) -> bool:
    """Whether Non-secure EL1 counts: P and NSK are equal."""
    return bool(filters & _NOT_EL1) == bool(filters & _NSK)


def levels_of(filters: int) -> int:
    """As ``CounterBank.filter`` takes it."""
    return counts_user(filters) << Level.USER | counts_kernel(filters) << Level.KERNEL
