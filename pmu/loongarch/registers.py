"""Registers of LoongArch's performance monitors.

LoongArch Reference Manual volume 1, "Control and Status Registers Related to Performance Monitoring", which calls them
PMCFG and PMCNT; the names here are Linux's (arch/loongarch/include/asm/loongarch.h). Of MISC, ECFG, ESTAT and CPUCFG
only what concerns the monitors is declared. Reserved bits read as zero and ignore writes.
"""

from __future__ import annotations

from emulator.sysregs import ConfigurationWord, Csr
from pmu.register import RO, RW, Bank, Register

MOST_MONITORS = 32  # "at least one performance monitor is implemented, and up to 32"
MOST_ANNOUNCED = 16  # as many as CPUCFG6.PMNUM can tell of
WIDTH_BITS = 64
OVERFLOW = 1 << 63  # of a counter: while the bit is set, the monitor asks for its interrupt


class PERFCTRLn(Register):
    """Performance Monitoring Configuration n: what monitor n counts, at which privilege levels."""

    event_field = "EVENT"
    bank = Bank(MOST_MONITORS, "PERFCTRL{}", lambda n: Csr(0x200 + 2 * n))

    EVENT = RW(9, 0)
    PLV0 = RW(16)  # count at privilege level 0: the kernel's
    PLV1 = RW(17)
    PLV2 = RW(18)
    PLV3 = RW(19)  # ... at 3: user mode
    IE = RW(20)  # interrupt while bit 63 of the counter is set


class PERFCNTRn(Register):
    """Performance Monitoring Counter n."""

    bank = Bank(MOST_MONITORS, "PERFCNTR{}", lambda n: Csr(0x201 + 2 * n))

    COUNT = RW(63, 0)


class MISC(Register):
    """Miscellaneous control: who may read the counters."""

    encoding = Csr(0x3)

    RPCNTL1 = RW(9)  # privilege level 1 may
    RPCNTL2 = RW(10)
    RPCNTL3 = RW(11)


class ECFG(Register):
    """Exception Configuration: the local enable of the monitors' interrupt."""

    encoding = Csr(0x4)

    PCOV = RW(10)  # LIE[10]: performance counter overflow


class ESTAT(Register):
    """Exception Status: whether the monitors' interrupt is pending, enabled or not."""

    encoding = Csr(0x5)

    PCOV = RO(10)  # IS[10]


class CPUCFG6(Register):
    """CPUCFG, word 6: which monitors there are."""

    encoding = ConfigurationWord(6)

    PMP = RO(0)  # there are some
    PAMVER = RO(3, 1)  # version of their architecture
    PMNUM = RO(7, 4)  # their number, less one
    PMBITS = RO(13, 8)  # bits of a counter, less one
    UPM = RO(14)  # user mode can read them, if MISC lets it
