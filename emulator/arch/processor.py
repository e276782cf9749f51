"""Processor: what a machine's CPUs say of themselves: name, caches, TLBs, topology. One package of equal cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from emulator.core_file.core_file import CoreFile

Table = Mapping[str, object]

LINE_BYTES = 64  # of caches of which nothing else is said


class CacheKind(IntEnum):
    """As in CPUID leaf 4; the names are those of sysfs."""

    Data = 1
    Instruction = 2
    Unified = 3


@dataclass(frozen=True, slots=True)
class CacheDescription:
    kind: CacheKind
    level: int
    size: int  # bytes
    ways: int
    line: int = LINE_BYTES
    shared: bool = False  # by all CPUs; else each has one
    inclusive: bool = False  # of the lower levels' lines

    @property
    def sets(self) -> int:
        return self.size // (self.ways * self.line)


@dataclass(frozen=True, slots=True)
class TlbDescription:
    entries: int = 0
    ways: int = 0  # 0: fully associative


# Where a core has no caches: those of a Core i7-6700, so that C libraries choose as they would there.
X86_64_CACHES = (
    CacheDescription(CacheKind.Data, 1, 32 << 10, 8),
    CacheDescription(CacheKind.Instruction, 1, 32 << 10, 8),
    CacheDescription(CacheKind.Unified, 2, 256 << 10, 4),
    CacheDescription(CacheKind.Unified, 3, 8 << 20, 16, shared=True, inclusive=True),
)

# Where a core file does not say whose core it is: [identity] in docs/cores.md
MIDR_EL1 = 0x410F_D083  # Arm, Cortex-A72 r0p3
VENDOR = "GenuineIntel"
FAMILY, MODEL, STEPPING = 6, 0x5E, 3  # Skylake: whose events the PMU has
BRAND = "perfemu x86-64-v2 processor"


@dataclass(frozen=True, slots=True)
class Processor:
    """The package. Its CPUs have one thread each and are numbered from 0."""

    cpus: int = 1
    frequency_hz: int = 1_000_000_000
    midr_el1: int = MIDR_EL1
    features: tuple[str, ...] = ()  # AArch64: beyond Armv8.0-A
    vendor: str = VENDOR
    family: int = FAMILY
    model: int = MODEL
    stepping: int = STEPPING
    brand: str = BRAND
    caches: tuple[CacheDescription, ...] = ()  # by level; of the first the data's first
    itlb: TlbDescription = TlbDescription()
    dtlb: TlbDescription = TlbDescription()
    l2tlb: TlbDescription = TlbDescription()

    @classmethod
    def of(cls, core: CoreFile, isa: str, cpus: int) -> Processor:
        """The one whose cores are as the core file has them."""
        identity = _table(core, "identity")
        caches = _caches(core)
        if not caches and isa == "x86_64":
            caches = X86_64_CACHES
        return cls(
            cpus,
            core.frequency_hz,
            midr_el1=_number(identity, "midr_el1", MIDR_EL1),
            features=core.features if isa == "aarch64" else (),
            vendor=_text(identity, "vendor", VENDOR),
            family=_number(identity, "family", FAMILY),
            model=_number(identity, "model", MODEL),
            stepping=_number(identity, "stepping", STEPPING),
            brand=_text(identity, "brand", BRAND),
            caches=caches,
            itlb=_tlb(core, "itlb"),
            dtlb=_tlb(core, "dtlb"),
            l2tlb=_tlb(core, "l2tlb"),
        )

    @property
    def apic_id_bits(self) -> int:
        """How many bits of an APIC id tell CPUs of the package apart."""
        return (self.cpus - 1).bit_length()

    @property
    def line_bytes(self) -> int:
        return self.caches[0].line if self.caches else LINE_BYTES

    def cache(self, level: int, kind: CacheKind = CacheKind.Unified) -> CacheDescription | None:
        return next((cache for cache in self.caches if (cache.level, cache.kind) == (level, kind)), None)

    def sharers(self, cache: CacheDescription, number: int) -> int:
        """The CPUs, as a mask, that share the one of CPU `number`."""
        return (1 << self.cpus) - 1 if cache.shared else 1 << number


_CACHE_TABLES = (
    ("l1d", CacheKind.Data),
    ("l1i", CacheKind.Instruction),
    ("l2", CacheKind.Unified),
    ("llc", CacheKind.Unified),
)


def _caches(core: CoreFile) -> tuple[CacheDescription, ...]:
    found: list[CacheDescription] = []
    for name, kind in _CACHE_TABLES:
        table = _table(core, name)
        if not table:
            continue
        first = kind is not CacheKind.Unified
        level = 1 if first else max([1, *(cache.level for cache in found)]) + 1
        found.append(
            CacheDescription(
                kind,
                level,
                _number(table, "size", 0),
                _number(table, "ways", 1),
                _number(table, "line", LINE_BYTES),
                shared=table.get("scope") == "shared",
                inclusive=table.get("inclusion") == "inclusive",
            )
        )
    return tuple(found)


def _tlb(core: CoreFile, name: str) -> TlbDescription:
    table = _table(core, name)
    return TlbDescription(_number(table, "entries", 0), _number(table, "ways", 0))


def _table(core: CoreFile, name: str) -> Table:
    found = core.tables.get(name)
    return found if isinstance(found, dict) else {}


def _number(table: Table, name: str, default: int) -> int:
    value = table.get(name, default)
    assert isinstance(value, int), f"{name} is a number in core files"
    return value


def _text(table: Table, name: str, default: str) -> str:
    return str(table.get(name, default))
