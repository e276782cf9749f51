"""CPUID of the x86-64 machine: x86-64-v2 with BMI, without anything that depends on XSAVE.

Family 6, model 5EH (Skylake), as the PMU's events are named, so that who looks up events by model finds these names.
What the core refuses is not offered: AVX and FMA, which Unicorn's decoder gets wrong, and RDRAND, which would draw on
the host. Nor is ERMS: with it glibc copies by REP MOVSB.
Leaves: Intel SDM volume 2, "CPUID".
"""

from __future__ import annotations

import struct

Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX

SIGNATURE = 0x000506E3  # family 6, model 5EH, stepping 3
BRAND = "perfemu x86-64-v2 processor"
MAX_BASIC = 0xD
MAX_EXTENDED = 0x8000_0008

# Feature names are those of /proc/cpuinfo (asm/cpufeatures.h), with their bits.
FEATURES_1_EDX = {
    "fpu": 0, "de": 2, "pse": 3, "tsc": 4, "msr": 5, "pae": 6, "cx8": 8, "apic": 9, "sep": 11, "pge": 13, "cmov": 15,
    "pat": 16, "pse36": 17, "clflush": 19, "mmx": 23, "fxsr": 24, "sse": 25, "sse2": 26,
}  # fmt: skip
FEATURES_1_ECX = {
    "pni": 0, "pclmulqdq": 1, "ssse3": 9, "cx16": 13, "sse4_1": 19, "sse4_2": 20, "movbe": 22, "popcnt": 23,
    "aes": 25,
}  # fmt: skip
FEATURES_7_EBX = {"fsgsbase": 0, "bmi1": 3, "bmi2": 8}
FEATURES_EXTENDED_ECX = {"lahf_lm": 0, "abm": 5}
FEATURES_EXTENDED_EDX = {"syscall": 11, "nx": 20, "pdpe1gb": 26, "rdtscp": 27, "lm": 29}
FEATURE_NAMES = (
    *FEATURES_1_EDX, *FEATURES_EXTENDED_EDX, "constant_tsc", "nonstop_tsc",
    *FEATURES_1_ECX, *FEATURES_EXTENDED_ECX, *FEATURES_7_EBX,
)  # fmt: skip

LINE_BYTES = 64
_PARTITIONS = 1

# leaf 4: type (1 data, 2 instruction, 3 unified), level, ways, sets, EDX flags
CACHES = (
    (1, 1, 8, 64, 0),  # L1D 32 KiB
    (2, 1, 8, 64, 0),  # L1I 32 KiB
    (3, 2, 8, 512, 0),  # L2 256 KiB
    (3, 3, 16, 8192, 0b110),  # L3 8 MiB: inclusive, complex index
)


def _bits(features: dict[str, int]) -> int:
    return sum(1 << bit for bit in features.values())


def _cache_leaf(kind: int, level: int, ways: int, sets: int, flags: int) -> Leaf:
    self_initialising = 1 << 8
    eax = kind | level << 5 | self_initialising  # one thread shares it, one core in the package
    return eax, (ways - 1) << 22 | (_PARTITIONS - 1) << 12 | (LINE_BYTES - 1), sets - 1, flags


def _vendor() -> Leaf:
    ebx, edx, ecx = struct.unpack("<3I", b"GenuineIntel")
    return MAX_BASIC, ebx, ecx, edx


def _brand(part: int) -> Leaf:
    eax, ebx, ecx, edx = struct.unpack_from("<4I", BRAND.encode().ljust(48, b"\0"), part * 16)
    return eax, ebx, ecx, edx


LEAVES: dict[int, Leaf] = {
    0x0: _vendor(),
    0x1: (SIGNATURE, LINE_BYTES // 8 << 8 | 1 << 16, _bits(FEATURES_1_ECX), _bits(FEATURES_1_EDX)),
    0x2: (0x0000_FF01, 0, 0, 0),  # FFH: see leaf 4
    0x7: (0, _bits(FEATURES_7_EBX), 0, 0),
    0x8000_0000: (MAX_EXTENDED, 0, 0, 0),
    0x8000_0001: (0, 0, _bits(FEATURES_EXTENDED_ECX), _bits(FEATURES_EXTENDED_EDX)),
    0x8000_0002: _brand(0),
    0x8000_0003: _brand(1),
    0x8000_0004: _brand(2),
    0x8000_0006: (0, 0, 256 << 16 | 6 << 12 | LINE_BYTES, 0),  # L2: 256 KiB, 8 ways
    0x8000_0007: (0, 0, 0, 1 << 8),  # invariant TSC
    0x8000_0008: (39 | 48 << 8, 0, 0, 0),  # physical and linear address bits
}
TOPOLOGY = 0xB
SUBLEAVES: dict[tuple[int, int], Leaf] = {
    **{(0x4, index): _cache_leaf(*cache) for index, cache in enumerate(CACHES)},
    (TOPOLOGY, 0): (0, 1, 1 << 8 | 0, 0),  # one thread in a core
    (TOPOLOGY, 1): (0, 1, 2 << 8 | 1, 0),  # one core in the package
}
_WITH_SUBLEAVES = {0x4, 0x7, TOPOLOGY, 0xD}
_NOTHING: Leaf = (0, 0, 0, 0)


def cpuid(leaf: int, subleaf: int) -> Leaf:
    """What CPUID answers. A PMU answers leaf 0AH in its place (``SystemRegisters.claim_cpuid_leaf``)."""
    if leaf not in _WITH_SUBLEAVES:
        return LEAVES.get(leaf, _NOTHING)
    if (found := SUBLEAVES.get((leaf, subleaf))) is not None:
        return found
    if leaf == TOPOLOGY:
        return 0, 0, subleaf & 0xFF, 0
    return LEAVES.get(leaf, _NOTHING) if subleaf == 0 else _NOTHING
