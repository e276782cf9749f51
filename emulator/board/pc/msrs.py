"""Model-specific registers of a pc's CPUs, but the core's own (EFER and those of segments and system calls), the local
APIC's and the PMU's. Intel SDM volume 4, and AMD64 Architecture Programmer's Manual volume 2, by their names.

One that has no row here is not there: #GP, and the user is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from emulator.arch.cpuid import AMD
from emulator.arch.processor import Processor
from emulator.sysregs import Access, Msr, SystemRegisters

IA32_APIC_BASE, IA32_TSC_DEADLINE = 0x1B, 0x6E0
BOOT_PROCESSOR, X2APIC, APIC_ENABLED = 1 << 8, 1 << 10, 1 << 11
MICROCODE_REVISION = 0xF0  # of a Skylake without the errata for which kernels do without features
FAST_STRINGS, PERFMON, NO_BTS, NO_PEBS = 1 << 0, 1 << 7, 1 << 11, 1 << 12  # IA32_MISC_ENABLE
MTRR_VARIABLE, MTRR_FIXED, MTRR_WRITE_COMBINING = 8, 1 << 8, 1 << 10  # IA32_MTRRCAP
MTRR_ENABLED = 0b11 << 10 | 6  # IA32_MTRR_DEF_TYPE: with the fixed ones, and all else is write-back
PAT_AT_RESET = 0x0007_0406_0007_0406
BUS_HZ = 100_000_000
# IA32_ARCH_CAPABILITIES: nothing is executed speculatively, so that these cores leak nothing. RDCL_NO, IBRS_ALL,
# SKIP_L1DFL_VMENTRY, SSB_NO, MDS_NO, IF_PSCHANGE_MC_NO, TAA_NO, SBDR_SSDP_NO, FBSDP_NO, PSDP_NO, PBRSB_NO, GDS_NO,
# RFDS_NO
NOT_VULNERABLE = sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 8, 13, 14, 15, 24, 26, 27))
ARCH_CAPABILITIES = 0x10A


class OnWrite(Enum):
    """What becomes of what software writes."""

    KEEP = "it is read back"
    IGNORE = "nothing"
    FAULT = "#GP"


@dataclass(frozen=True, slots=True)
class Kept:
    """A register from which nothing follows here but what it reads."""

    number: int
    name: str
    initial: int = 0
    on_write: OnWrite = OnWrite.KEEP


def _rows(processor: Processor, unavailable: int) -> tuple[Kept, ...]:
    ratio = processor.frequency_hz // BUS_HZ & 0xFF
    fixed = (0x250, 0x258, 0x259, *range(0x268, 0x270))
    return (
        Kept(0x17, "IA32_PLATFORM_ID", on_write=OnWrite.FAULT),
        Kept(0x8B, "IA32_BIOS_SIGN_ID", MICROCODE_REVISION << 32, OnWrite.IGNORE),
        Kept(0xFE, "IA32_MTRRCAP", MTRR_VARIABLE | MTRR_FIXED | MTRR_WRITE_COMBINING, on_write=OnWrite.FAULT),
        *(Kept(0x200 + 2 * n, f"IA32_MTRR_PHYSBASE{n}") for n in range(MTRR_VARIABLE)),
        *(Kept(0x201 + 2 * n, f"IA32_MTRR_PHYSMASK{n}") for n in range(MTRR_VARIABLE)),
        *(Kept(number, f"IA32_MTRR_FIX_{number:x}", 0x0606_0606_0606_0606) for number in fixed),
        Kept(0x2FF, "IA32_MTRR_DEF_TYPE", MTRR_ENABLED),
        Kept(0x277, "IA32_PAT", PAT_AT_RESET),
        *(_amd() if processor.vendor == AMD else _intel(ratio, unavailable)),
    )


def _intel(ratio: int, unavailable: int) -> tuple[Kept, ...]:
    return (
        Kept(0x3A, "IA32_FEATURE_CONTROL", 1, on_write=OnWrite.FAULT),  # locked, with nothing on
        Kept(0xCE, "MSR_PLATFORM_INFO", ratio << 8 | ratio << 40, on_write=OnWrite.FAULT),
        Kept(0x48, "IA32_SPEC_CTRL"),  # which IBRS_ALL says that there is; likewise IBPB
        Kept(0x49, "IA32_PRED_CMD", on_write=OnWrite.IGNORE),
        Kept(ARCH_CAPABILITIES, "IA32_ARCH_CAPABILITIES", NOT_VULNERABLE, on_write=OnWrite.FAULT),
        Kept(0x198, "IA32_PERF_STATUS", ratio << 8, on_write=OnWrite.FAULT),
        Kept(0x199, "IA32_PERF_CTL", ratio << 8),
        Kept(0x1A0, "IA32_MISC_ENABLE", FAST_STRINGS | PERFMON | unavailable),
    )


def _amd() -> tuple[Kept, ...]:
    return (
        Kept(0xC001_0010, "SYSCFG"),
        Kept(0xC001_0015, "HWCR", 1 << 24),  # TscFreqSel: the time stamp counter has P0's frequency
        Kept(0xC001_001F, "NB_CFG"),
        Kept(0xC001_0055, "IntPendingMsg"),
        Kept(0xC001_1002, "CPUID_7_Features"),
        Kept(0xC001_1004, "CPUID_Features"),
        Kept(0xC001_1005, "CPUID_ExtFeatures"),
        Kept(0xC001_1020, "LS_CFG"),
        Kept(0xC001_1021, "IC_CFG"),
        Kept(0xC001_1022, "DC_CFG"),
        Kept(0xC001_1023, "CU_CFG"),
        Kept(0xC001_1028, "FP_CFG"),
        Kept(0xC001_1029, "DE_CFG", 1 << 1),  # LFENCE serializes
        Kept(0xC001_102D, "LS_CFG2"),
        Kept(0xC001_102E, "BP_CFG"),
    )


class Value:
    """What a register reads."""

    kept = ("now",)

    def __init__(self, initial: int) -> None:
        self.now = initial


# Kernels ask by trying: #GP is the answer of processors that do without, and no news.
ABSENT = {
    0x33: "MSR_TEST_CTRL",
    0x34: "MSR_SMI_COUNT",
    0x3B: "IA32_TSC_ADJUST",
    0x48: "IA32_SPEC_CTRL",  # of AMD's, likewise
    0x49: "IA32_PRED_CMD",
    0xCF: "IA32_CORE_CAPABILITIES",
    0xE2: "MSR_PKG_CST_CONFIG_CONTROL",
    0x122: "IA32_TSX_CTRL",
    0x140: "MSR_MISC_FEATURES_ENABLES",
    0x179: "IA32_MCG_CAP",
    0x1A2: "MSR_TEMPERATURE_TARGET",
    0x1A6: "MSR_OFFCORE_RSP_0",
    0x1A7: "MSR_OFFCORE_RSP_1",
    0x1AD: "MSR_TURBO_RATIO_LIMIT",
    0x1C9: "MSR_LASTBRANCH_TOS",
    0x3F1: "IA32_PEBS_ENABLE",
    0x3F6: "MSR_PEBS_LD_LAT",
    0x3F7: "MSR_PEBS_FRONTEND",
    0x570: "IA32_RTIT_CTL",
    0x606: "MSR_RAPL_POWER_UNIT",
    0x64E: "MSR_PPERF",
    **{0x680 + n: f"MSR_LASTBRANCH_{n}_FROM_IP" for n in range(32)},
    **{0x6C0 + n: f"MSR_LASTBRANCH_{n}_TO_IP" for n in range(32)},
    0x770: "IA32_PM_ENABLE",
    0xDA0: "IA32_XSS",
    0xC001_1029: "DE_CFG",  # of AMD's; there it has a row
    **{0xDC0 + n: f"MSR_LBR_INFO_{n}" for n in range(32)},
}


def claim(
    registers: SystemRegisters,
    processor: Processor,
    deadline: tuple[Callable[[], int], Callable[[int], None]],
    unavailable: int = NO_BTS | NO_PEBS,
) -> tuple[dict[int, str], list[Value]]:
    """Of one CPU; `deadline` reads and writes IA32_TSC_DEADLINE; `unavailable`: bits of IA32_MISC_ENABLE. The
    registers' names, and what they keep."""
    rows = _rows(processor, unavailable)
    values = [Value(row.initial) for row in rows]
    for row, value in zip(rows, values, strict=True):
        registers.claim(Msr(row.number), _access(row, value))
    registers.claim(Msr(IA32_TSC_DEADLINE), Access(*deadline))
    return {row.number: row.name for row in rows} | {IA32_TSC_DEADLINE: "IA32_TSC_DEADLINE"}, values


def _access(row: Kept, value: Value) -> Access:
    def write(new: int) -> None:
        if row.on_write is OnWrite.KEEP:
            value.now = new

    return Access(lambda: value.now, None if row.on_write is OnWrite.FAULT else write)
