"""Registers of Intel's PEBS. Intel SDM volume 3, "Processor Event Based Sampling (PEBS)"; numbers from volume 4."""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.intel.registers import FIXED_COUNTERS, FIXED_SHIFT, IA32_FIXED_CTR_CTRL, IA32_PERFEVTSELx, Ia32Register
from pmu.register import RW, Register

LOAD_LATENCY_SHIFT = 32  # before extended PEBS: of the bit by which a counter counts loads above the threshold


class IA32_PEBS_ENABLE(Ia32Register):
    """Whose overflows write records."""

    encoding = Msr(0x3F1)

    EN_PMC = RW(31, 0)
    EN_FIXED = RW(35, 32)  # before extended PEBS: load latency of general-purpose counters 0 to 3


class MSR_PEBS_DATA_CFG(Ia32Register):
    """Which groups an adaptive record has, besides the basic one."""

    encoding = Msr(0x3F2)

    MEMORY = RW(0)
    GPR = RW(1)
    XMM = RW(2)
    LBR = RW(3)
    LBR_ENTRIES = RW(31, 24)  # less one


class MSR_PEBS_LD_LAT_THRESHOLD(Ia32Register):
    """Above how many cycles MEM_TRANS_RETIRED.LOAD_LATENCY counts a load."""

    encoding = Msr(0x3F6)

    THRESHOLD = RW(15, 0)


def reserved_in(counters: int, fixed: int, *, extended: bool) -> dict[type[Register], int]:
    """Declared bits that are reserved. `counters`, `fixed`: masks of those that there are; `extended`: all of them can
    write records (and these are adaptive), rather than general-purpose ones, of which four know load latency."""
    high = fixed if extended else counters & (1 << FIXED_COUNTERS) - 1
    return {IA32_PEBS_ENABLE: IA32_PEBS_ENABLE.declared & ~(counters | high << FIXED_SHIFT)}


ADAPTIVE_SELECT = IA32_PERFEVTSELx.ADAPTIVE.mask
ADAPTIVE_FIXED = tuple(IA32_FIXED_CTR_CTRL.fields[f"ADAPTIVE{n}"].mask for n in range(FIXED_COUNTERS))
