"""CPUID of the x86-64 machine: x86-64-v2 with BMI, without anything that depends on XSAVE.

What the core refuses is not offered: AVX and FMA, which Unicorn's decoder gets wrong, and RDRAND, which would draw on
the host. Nor is ERMS: with it glibc copies by REP MOVSB. Without OSXSAVE there is no XGETBV: it is undefined.
Vendor, model, caches and topology are the ``Processor``'s. What PMUs add (Intel's leaf 0AH, AMD's 80000022H) they
claim.
Leaves: Intel SDM volume 2, "CPUID"; AMD64 Architecture Programmer's Manual volume 3, appendix E.
"""

from __future__ import annotations

import struct

from emulator.arch.processor import CacheDescription, CacheKind, Processor, TlbDescription

Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX

MAX_BASIC = 0xB  # as of the last processors without XSAVE, whose leaf comes behind: whoever finds it relies on it
INTEL, AMD = "GenuineIntel", "AuthenticAMD"
MAX_EXTENDED = {INTEL: 0x8000_0008, AMD: 0x8000_001E}
PHYSICAL_BITS = {INTEL: 39, AMD: 48}  # of addresses
VIRTUAL_BITS = 48
BRAND_BYTES = 48  # with a zero at the end

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
HTT = {"ht": 28}  # leaf 1, EDX: the package has several CPUs, and leaf 1 says how many
AMD_EXTENDED_ECX = {"topoext": 22}  # leaves 8000001DH and 8000001EH
AMD_SEVERAL_ECX = {"cmp_legacy": 1}  # with HTT: they are cores, not threads of one


_NOTHING: Leaf = (0, 0, 0, 0)
_SELF_INITIALISING, _FULLY_ASSOCIATIVE = 1 << 8, 1 << 9
_INCLUSIVE, _COMPLEX_INDEX = 0b10, 0b100
_TOPOLOGY = 0xB
_WITH_SUBLEAVES = {0x4, 0x7, _TOPOLOGY, 0xD, 0x8000_001D}
_THREAD_LEVEL, _CORE_LEVEL = 1 << 8, 2 << 8  # leaf 0BH, ECX


def _bits(features: dict[str, int]) -> int:
    return sum(1 << bit for bit in features.values())


def features_edx(processor: Processor) -> dict[str, int]:
    """Of leaf 1."""
    return {**FEATURES_1_EDX, **(HTT if processor.cpus > 1 else {})}


def _extended_ecx(processor: Processor) -> dict[str, int]:
    if processor.vendor != AMD:
        return FEATURES_EXTENDED_ECX
    return {**FEATURES_EXTENDED_ECX, **AMD_EXTENDED_ECX, **(AMD_SEVERAL_ECX if processor.cpus > 1 else {})}


def feature_names(processor: Processor) -> tuple[str, ...]:
    """As /proc/cpuinfo lists them."""
    return (
        *features_edx(processor), *FEATURES_EXTENDED_EDX, "constant_tsc", "nonstop_tsc",
        *FEATURES_1_ECX, *_extended_ecx(processor), *FEATURES_7_EBX,
    )  # fmt: skip


def signature(processor: Processor) -> int:
    """Leaf 1, EAX: family, model and stepping."""
    family, model = processor.family, processor.model
    base, more = min(family, 0xF), max(family - 0xF, 0)
    return more << 20 | model >> 4 << 16 | base << 8 | (model & 0xF) << 4 | processor.stepping


class Cpuid:
    """What CPUID answers on one CPU of a package."""

    def __init__(self, processor: Processor, number: int) -> None:
        self._leaves = _common(processor, number)
        self._subleaves: dict[tuple[int, int], Leaf] = {
            (_TOPOLOGY, 0): (0, 1, _THREAD_LEVEL | 0, number),
            (_TOPOLOGY, 1): (processor.apic_id_bits, processor.cpus, _CORE_LEVEL | 1, number),
        }
        self._number = number
        amd = processor.vendor == AMD
        self._leaves |= (_amd if amd else _intel)(processor, number)
        leaf = 0x8000_001D if amd else 0x4
        for index, cache in enumerate(processor.caches):
            self._subleaves[leaf, index] = _cache_leaf(processor, cache, amd)

    def __call__(self, leaf: int, subleaf: int) -> Leaf:
        if leaf not in _WITH_SUBLEAVES:
            return self._leaves.get(leaf, _NOTHING)
        if (found := self._subleaves.get((leaf, subleaf))) is not None:
            return found
        if leaf == _TOPOLOGY:
            return 0, 0, subleaf & 0xFF, self._number
        return self._leaves.get(leaf, _NOTHING) if subleaf == 0 else _NOTHING


def _common(processor: Processor, number: int) -> dict[int, Leaf]:
    ebx, edx, ecx = struct.unpack("<3I", processor.vendor.encode())
    several = 1 << processor.apic_id_bits if processor.vendor == INTEL else processor.cpus
    brand = processor.brand.encode()[: BRAND_BYTES - 1].ljust(BRAND_BYTES, b"\0")
    return {
        0x0: (MAX_BASIC, ebx, ecx, edx),
        0x1: (
            signature(processor),
            (processor.line_bytes // 8) << 8 | several << 16 | number << 24,
            _bits(FEATURES_1_ECX),
            _bits(features_edx(processor)),
        ),
        0x7: (0, _bits(FEATURES_7_EBX), 0, 0),
        0x8000_0000: (MAX_EXTENDED[processor.vendor], 0, 0, 0),
        0x8000_0001: (
            signature(processor) if processor.vendor == AMD else 0,
            0,
            _bits(_extended_ecx(processor)),
            _bits(FEATURES_EXTENDED_EDX),
        ),
        **{0x8000_0002 + part: struct.unpack_from("<4I", brand, 16 * part) for part in range(3)},
        0x8000_0007: (0, 0, 0, 1 << 8),  # invariant TSC
    }


def _intel(processor: Processor, number: int) -> dict[int, Leaf]:
    return {
        0x2: (0x0000_FF01, 0, 0, 0),  # FFH: see leaf 4
        0x8000_0006: (0, 0, _second_level(processor), 0),
        0x8000_0008: (PHYSICAL_BITS[INTEL] | VIRTUAL_BITS << 8, 0, 0, 0),
    }


def _amd(processor: Processor, number: int) -> dict[int, Leaf]:
    data, code = processor.cache(1, CacheKind.Data), processor.cache(1, CacheKind.Instruction)
    third = processor.cache(3)
    third_edx = 0
    if third is not None:
        third_edx = third.size >> 19 << 18 | _associativity(third.ways) << 12 | 1 << 8 | third.line
    second_tlb = processor.l2tlb.entries & 0xFFF | _associativity(processor.l2tlb.ways) << 12
    return {
        0x8000_0005: (0, _first_tlbs(processor), _first_level(data), _first_level(code)),
        0x8000_0006: (0, second_tlb << 16 | second_tlb, _second_level(processor), third_edx),
        0x8000_0008: (
            PHYSICAL_BITS[AMD] | VIRTUAL_BITS << 8, 0, processor.apic_id_bits << 12 | (processor.cpus - 1), 0,
        ),
        0x8000_001E: (number, number, 0, 0),  # APIC id; core, of one thread; node 0
    }  # fmt: skip


def _cache_leaf(processor: Processor, cache: CacheDescription, amd: bool) -> Leaf:
    """Leaf 4, and AMD's 8000001DH, which is the same but for the number of cores."""
    span = 1 << processor.apic_id_bits  # APIC ids that are set aside for the package's CPUs
    sharers = (processor.cpus if amd else span) if cache.shared else 1
    eax = cache.kind | cache.level << 5 | _SELF_INITIALISING | (sharers - 1) << 14
    if not amd:
        eax |= min(span - 1, 0x3F) << 26
    if cache.sets == 1:
        eax |= _FULLY_ASSOCIATIVE
    edx = (_INCLUSIVE if cache.inclusive else 0) | (_COMPLEX_INDEX if cache.level == 3 and not amd else 0)
    return eax, (cache.ways - 1) << 22 | (cache.line - 1), cache.sets - 1, edx


def _first_level(cache: CacheDescription | None) -> int:
    """8000_0005H, ECX and EDX: KiB, ways, lines of a tag, bytes of a line."""
    return 0 if cache is None else cache.size >> 10 << 24 | min(cache.ways, 0xFF) << 16 | 1 << 8 | cache.line


def _first_tlbs(processor: Processor) -> int:
    """8000_0005H, EBX: of pages of 4 KiB."""

    def half(tlb: TlbDescription) -> int:
        return min(tlb.ways or 0xFF, 0xFF) << 8 | min(tlb.entries, 0xFF) if tlb.entries else 0

    return half(processor.dtlb) << 16 | half(processor.itlb)


def _second_level(processor: Processor) -> int:
    """8000_0006H, ECX: of L2."""
    cache = processor.cache(2)
    if cache is None:
        return 0
    lines_of_a_tag = 1 << 8 if processor.vendor == AMD else 0
    return min(cache.size >> 10, 0xFFFF) << 16 | _associativity(cache.ways) << 12 | lines_of_a_tag | cache.line


_ASSOCIATIVITY = {1: 1, 2: 2, 3: 3, 4: 4, 6: 5, 8: 6, 16: 8, 32: 0xA, 48: 0xB, 64: 0xC, 96: 0xD, 128: 0xE}
_SEE_CACHE_LEAF = 9


def _associativity(ways: int) -> int:
    """The code of leaf 80000006H."""
    return _ASSOCIATIVITY.get(ways, _SEE_CACHE_LEAF)
