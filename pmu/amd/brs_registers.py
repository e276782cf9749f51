"""Registers of AMD's Branch Sampling (BRS), Family 19h models 00h to 0Fh: Zen 3. AMD's PPR for those models, 56214, as
far as Linux's arch/x86/events/amd/brs.c says what stands there. LBR v2 has come in its place, with the same numbers."""

from __future__ import annotations

from emulator.sysregs import Msr
from pmu.register import RW, Bank, Register

BRS_ENTRIES = 16


class DebugExtnCfg(Register):
    """Debug extensions: what of it concerns branch sampling."""

    encoding = Msr(0xC000_010F)

    BRSMEN = RW(2)  # behind an overflow branches are recorded
    RESERVED = RW(4, 3)  # must be 11b
    VB = RW(5)  # some have been
    MSROFF = RW(19, 16)  # the next one's number; when all are full, 0
    PMC = RW(26, 24)  # the counter whose overflow it is


class SamplingBranchFromx(Register):
    """Where branch x is, in the order in which they were taken."""

    bank = Bank(BRS_ENTRIES, "SamplingBranchFrom{}", lambda n: Msr(0xC001_0300 + 2 * n))

    ADDRESS = RW(63, 0)


class SamplingBranchTox(Register):
    """Where it went."""

    bank = Bank(BRS_ENTRIES, "SamplingBranchTo{}", lambda n: Msr(0xC001_0301 + 2 * n))

    ADDRESS = RW(63, 0)
