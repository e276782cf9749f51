"""What AArch64 cores say that they have: each feature's name, its bit in AT_HWCAP, and where ID registers show it.

Names and bits: uapi/asm/hwcap.h and arch/arm64/kernel/cpuinfo.c. Fields: Arm ARM DDI 0487, ID_AA64PFR0_EL1 ...
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from emulator.sysregs import SysReg

ID_AA64PFR0_EL1 = SysReg(3, 0, 0, 4, 0)
ID_AA64ISAR0_EL1 = SysReg(3, 0, 0, 6, 0)
ID_AA64ISAR1_EL1 = SysReg(3, 0, 0, 6, 1)


@dataclass(frozen=True, slots=True)
class Feature:
    """`value` is what it adds at bit `shift` of `register`."""

    name: str  # as /proc/cpuinfo has it
    bit: int  # of AT_HWCAP
    register: SysReg | None = None
    shift: int = 0
    value: int = 1


# Of every core: Armv8.0-A with cryptography and CRC32.
OF_ALL = (
    Feature("fp", 0),
    Feature("asimd", 1),
    Feature("aes", 3, ID_AA64ISAR0_EL1, 4),
    Feature("pmull", 4, ID_AA64ISAR0_EL1, 4),  # the field's 2 says both
    Feature("sha1", 5, ID_AA64ISAR0_EL1, 8),
    Feature("sha2", 6, ID_AA64ISAR0_EL1, 12),
    Feature("crc32", 7, ID_AA64ISAR0_EL1, 16),
    Feature("cpuid", 11),
)
# Of those whose [identity] lists them. The native core knows which instructions they are: aarch64/row.hpp.
LATER = (
    Feature("atomics", 8, ID_AA64ISAR0_EL1, 20, 2),  # FEAT_LSE, and FEAT_LOR with it
    Feature("fphp", 9, ID_AA64PFR0_EL1, 16),  # FEAT_FP16, scalar ...
    Feature("asimdhp", 10, ID_AA64PFR0_EL1, 20),  # ... and vector: never one without the other
    Feature("asimdrdm", 12, ID_AA64ISAR0_EL1, 28),  # FEAT_RDM
    Feature("lrcpc", 15, ID_AA64ISAR1_EL1, 20),  # FEAT_LRCPC
    Feature("dcpop", 16, ID_AA64ISAR1_EL1, 0),  # FEAT_DPB
    Feature("asimddp", 20, ID_AA64ISAR0_EL1, 44),  # FEAT_DotProd
)
LATER_NAMES = tuple(feature.name for feature in LATER)


def features_of(names: Iterable[str]) -> list[Feature]:
    """Of a core with these of the later ones, by bit, as Linux lists them."""
    wanted = set(names)
    return sorted((*OF_ALL, *(each for each in LATER if each.name in wanted)), key=lambda feature: feature.bit)
