"""Core checks: what must hold between the keys of a core file. Single keys are checked before, by the schema.

Each check yields what is wrong with the key that one would rather change.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from emulator.core_file.keys import ISAS, Data
from emulator.core_file.schema import Path
from emulator.op_classes import OpClass

TOP_TABLES = ("pmu", "pipeline")  # that every core has
MOST_PORTS = 32
BTB_WAYS = 4  # without btb_ways; predictor/target_buffer.hpp
CACHES = ("l1i", "l1d", "l2", "llc")
MOST_BRAND = 47  # characters
TLBS = ("itlb", "dtlb", "l2tlb")
# (inner, outer): the outer makes no sense without one of the inner ones
_BEHIND = ((("l1d",), "l2"), (("l1d",), "llc"), (("l1d", "l1i"), "memory"), (("itlb", "dtlb"), "l2tlb"))


# classes that no instruction of the other ISA is of
ONLY_AARCH64 = frozenset((
    "ALU_LSL", "ALU_SHIFTED", "BIT_REVERSE", "EXCLUSIVE", "EXTEND", "FP_MUL_ADD", "FP_REDUCE", "LOGIC_SHIFTED",
    "MUL_ADD32", "MUL_ADD64", "SHA1", "SHA256", "SHA_SCHEDULE", "VECTOR_ACCUMULATE", "VECTOR_CONSTANT",
    "VECTOR_CONVERT_4", "VECTOR_COUNT", "VECTOR_DOT", "VECTOR_MUL_ADD", "VECTOR_MUL_ADD_LONG", "VECTOR_MUL_POLYNOMIAL",
    "VECTOR_REDUCE_16", "VECTOR_REDUCE_8", "VECTOR_SHIFT_COMPLEX", "VECTOR_TABLE_LONG", "VECTOR_TABLE_PAIR",
))  # fmt: skip
ONLY_X86_64 = frozenset((
    "AES_KEY", "BIT_LOWEST", "BIT_SCAN", "BIT_TEST", "BRANCH_COUNT", "DIV_SIGNED64", "EXCHANGE", "FP_DOT", "LEA",
    "LEA_COMPLEX", "LEA_SCALED", "PARALLEL_BITS", "PAUSE", "ROTATE_CARRY", "SELECT_TWO_FLAGS", "SHIFT_BY_COUNT",
    "STRING", "VECTOR_COMPARE64", "VECTOR_STRING", "VECTOR_TEST", "X87_ADD", "X87_COMPARE", "X87_CONTROL",
    "X87_CONVERT", "X87_DIV", "X87_MOVE", "X87_MUL", "X87_SELECT", "X87_SPECIAL",
))  # fmt: skip
WITHOUT_ROW = frozenset(("NONE", "NOP"))  # nothing to compute
_ALSO = re.compile(r"([^*@|]+(?:\|[^*@|]+)*)(?:\*[1-9]\d{0,2})?(?:@[1-9]\d{0,5})?")  # PORT|PORT*times@cycles


OF_FEATURES = {"VECTOR_DOT": "asimddp"}  # classes of instructions that not every core has


def classes_of(isa: str) -> list[str]:
    """The classes that instructions of an ISA are of."""
    never = WITHOUT_ROW | (ONLY_X86_64 if isa == "aarch64" else ONLY_AARCH64)
    return [each.name for each in OpClass if each.name not in never]


@dataclass(frozen=True, slots=True)
class Problem:
    path: Path
    right: str


def problems(data: Data) -> Iterator[Problem]:
    """All that is wrong, the first things first."""
    for check in _CHECKS:
        yield from check(data)


def _table(data: Data, *path: str) -> Mapping[str, object] | None:
    found: object = data
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _number(table: Mapping[str, object], name: str) -> int:
    value = table.get(name, 0)
    return value if isinstance(value, int) else 0


def _texts(table: Mapping[str, object], name: str) -> list[str]:
    value = table.get(name)
    return [str(text) for text in value] if isinstance(value, list) else []


def _required_tables(data: Data) -> Iterator[Problem]:
    for name in TOP_TABLES:
        if name not in data:
            yield Problem((name,), "missing table")
    if not _texts(data, "isas"):
        yield Problem(("isas",), f"want one or several of {', '.join(ISAS)}")


def _pmus(data: Data) -> Iterator[Problem]:
    pmu, isas = _table(data, "pmu") or {}, _texts(data, "isas")
    for isa in isas:
        if isa not in pmu:
            yield Problem(("pmu", isa), "missing; want a PMU model for each of isas")
    for isa in pmu:
        if isa not in isas:
            yield Problem(("pmu", isa), f"the core executes only {', '.join(isas)}: drop it, or add {isa} to isas")


HALF_PRECISION = {"fphp", "asimdhp"}


def _identity(data: Data) -> Iterator[Problem]:
    features = set(_texts(_table(data, "identity") or {}, "features"))
    if features and "aarch64" not in _texts(data, "isas"):
        yield Problem(("identity", "features"), "only an AArch64 core has such")
    if len(features & HALF_PRECISION) == 1:
        yield Problem(("identity", "features"), "want both of fphp and asimdhp, or none: they are one feature")
    brand = (_table(data, "identity") or {}).get("brand")
    if isinstance(brand, str) and not (brand.isascii() and len(brand) <= MOST_BRAND):
        yield Problem(("identity", "brand"), f"want up to {MOST_BRAND} ASCII characters")


def _sets(path: Path, size: int, unit: str, ways: int, of: str) -> Iterator[Problem]:
    """`size` in `unit`s makes sets of `ways` each."""
    sets, rest = divmod(size, ways)
    if rest or not sets:
        yield Problem(path, f"{size} {unit} do not fill sets of {ways}: want a multiple of {of}")
    elif sets & (sets - 1):
        lower = 1 << sets.bit_length() - 1
        per_set = of.partition(" ")[0]
        near = " or ".join(str(each * int(per_set)) for each in (lower, lower * 2))
        yield Problem(path, f"makes {sets} sets, and sets must be a power of two: want {near}")


def _cache_sets(data: Data) -> Iterator[Problem]:
    for name in CACHES:
        if (cache := _table(data, name)) is None:
            continue
        size, ways, line = (_number(cache, key) for key in ("size", "ways", "line"))
        if size % line:
            yield Problem((name, "size"), f"want a multiple of the line's {line} bytes")
            continue
        yield from _sets((name, "size"), size // line, "lines", ways, f"{ways * line} bytes ({ways} ways of {line})")


def _tlb_sets(data: Data) -> Iterator[Problem]:
    for name in TLBS:
        tlb = _table(data, name)
        if tlb is not None and (ways := _number(tlb, "ways")):
            yield from _sets((name, "entries"), _number(tlb, "entries"), "entries", ways, f"{ways} (its ways)")


def _btb_sets(data: Data) -> Iterator[Problem]:
    branch = _table(data, "branch") or {}
    for prefix in ("", "first_"):
        ways = _number(branch, f"{prefix}btb_ways") or BTB_WAYS
        if entries := _number(branch, f"{prefix}btb_entries"):
            of = f"{ways} ({prefix}btb_ways)"
            yield from _sets(("branch", f"{prefix}btb_entries"), entries, "entries", ways, of)


def _lines(data: Data) -> Iterator[Problem]:
    there = [name for name in CACHES if name in data]
    for name in there[1:]:
        first, other = (_number(_table(data, each) or {}, "line") for each in (there[0], name))
        if first != other:
            yield Problem((name, "line"), f"lines are of one size: {there[0]}.line is {first}")


def _levels(data: Data) -> Iterator[Problem]:
    for inner, outer in _BEHIND:
        if outer in data and not any(name in data for name in inner):
            yield Problem((outer,), f"there is no {' or '.join(inner)} before it")
    if any(name in data for name in CACHES) and "memory" not in data:
        yield Problem(("memory", "latency"), "missing; behind caches there is memory")
    if any(name in data for name in TLBS) and "page_walk" not in data:
        yield Problem(("page_walk", "latency"), "missing; behind TLBs there are page tables")
    walk = _table(data, "page_walk")
    if walk is not None and "latency" not in walk and not walk.get("reads_entries"):
        yield Problem(("page_walk", "latency"), "missing; want cycles, or reads_entries = true")
    if walk is not None and walk.get("reads_entries") and "l2" not in data and "llc" not in data:
        yield Problem(("page_walk", "reads_entries"), "there is no l2 or llc to read through")
    if [(_table(data, name) or {}).get("scope") for name in ("l2", "llc")] == ["shared", "private"]:
        yield Problem(("llc", "scope"), "the l2 before it is shared: want shared, too")


def _latencies(data: Data) -> Iterator[Problem]:
    """Totals from the first level upward: never less than an inner level's."""
    for chain in (("l1i", "l2", "llc", "memory"), ("l1d", "l2", "llc", "memory")):
        there = [name for name in chain if name in data]
        for inner, outer in itertools.pairwise(there):
            least, latency = (_number(_table(data, name) or {}, "latency") for name in (inner, outer))
            if latency < least:
                right = f"below {inner}.latency = {least}: latencies count from the access on, so want {least} or more"
                yield Problem((outer, "latency"), right)


def _inclusion(data: Data) -> Iterator[Problem]:
    for outer, inners in (("l2", ("l1i", "l1d")), ("llc", ("l2", "l1d", "l1i"))):
        cache = _table(data, outer)
        if cache is None or cache.get("inclusion") != "inclusive":
            continue
        for inner in inners:
            least = _number(_table(data, inner) or {}, "size")
            if _number(cache, "size") < least:
                yield Problem((outer, "size"), f"inclusive, but smaller than {inner}.size = {least}")


def _schedulers(data: Data) -> Iterator[Problem]:
    pipeline = _table(data, "pipeline") or {}
    schedulers = _table(pipeline, "schedulers")
    if schedulers is None:
        return
    owner: dict[str, str] = {}
    for name in schedulers:
        for port in _texts(_table(schedulers, name) or {}, "ports"):
            if port in owner:
                right = f"{port} is {owner[port]}'s already: a port has one scheduler"
                yield Problem(("pipeline", "schedulers", name, "ports"), right)
            owner[port] = name
    if "scheduler_entries" in pipeline:
        yield Problem(("pipeline", "scheduler_entries"), "contradicts [pipeline.schedulers]: want one of the two")


def _ports(data: Data) -> Iterator[Problem]:
    pipeline = _table(data, "pipeline") or {}
    ports = _texts(pipeline, "ports")
    if len(ports) > MOST_PORTS:
        yield Problem(("pipeline", "ports"), f"{len(ports)} ports: want at most {MOST_PORTS}")
    for key in ("ports", "load_ports", "store_address_ports"):
        if key in pipeline and not _texts(pipeline, key):
            yield Problem(("pipeline", key), "want at least one port")
    for port in ports:
        if not re.fullmatch(r"\w+", port):
            yield Problem(("pipeline", "ports"), f"{port}: want names of letters, digits and _")


def _operations(data: Data) -> Iterator[Problem]:
    if (_table(data, "pipeline") or {}).get("model") == "ideal":
        return
    operations = _table(data, "ops") or {}
    features = _texts(_table(data, "identity") or {}, "features")
    for isa in _texts(data, "isas"):
        missing = [
            name
            for name in classes_of(isa)
            if name not in operations and (name not in OF_FEATURES or OF_FEATURES[name] in features)
        ]
        if missing:
            more = f"; so are {', '.join(missing[1:4])} ..." if len(missing) > 1 else ""
            right = f"missing; want a row such as {{ latency = 1, ports = [...] }} for each class of {isa}{more}"
            yield Problem(("ops", missing[0]), right)


def _monitors(data: Data) -> Iterator[Problem]:
    if _table(data, "activity_monitors") is not None and "aarch64" not in _texts(data, "isas"):
        yield Problem(("activity_monitors",), "only for cores that execute aarch64")


def _pairs(data: Data) -> Iterator[Problem]:
    pipeline = _table(data, "pipeline") or {}
    if pipeline.get("model") != "out_of_order" and "move_computation" in _texts(pipeline, "fuses"):
        yield Problem(("pipeline", "fuses"), "move_computation: only out_of_order has it")


def _rows(data: Data) -> Iterator[Problem]:
    ports = _texts(_table(data, "pipeline") or {}, "ports")
    operations = _table(data, "ops") or {}
    if (_table(data, "pipeline") or {}).get("model") == "ideal":
        return  # has no ports and reads no rows
    for name in operations:
        row = _table(operations, name) or {}
        widths = _table(row, "width") or {}
        paths = [("ops", name), *(("ops", name, "width", width) for width in widths)]
        for path in paths:
            merged = {**row, **(_table(data, *path) or {})}
            for shorter in ("accumulate_latency", "chain_latency"):
                if _number(merged, shorter) > _number(merged, "latency"):
                    right = f"above the latency, {_number(merged, 'latency')}: want that or less"
                    yield Problem((*path, shorter), right)
            for item in _texts(_table(data, *path) or {}, "also"):
                matched = _ALSO.fullmatch(item)
                if matched is None:
                    right = f'{item}: want "PORT", "PORT|PORT", "PORT*times", "PORT@cycles"'
                    yield Problem((*path, "also"), right)
                    continue
                for port in matched[1].split("|"):
                    if port not in ports:
                        yield Problem((*path, "also"), f"{port} is none of the ports {', '.join(ports)}")


_CHECKS: tuple[Callable[[Data], Iterator[Problem]], ...] = (
    _required_tables,
    _pmus,
    _identity,
    _monitors,
    _cache_sets,
    _tlb_sets,
    _btb_sets,
    _pairs,
    _lines,
    _levels,
    _latencies,
    _inclusion,
    _ports,
    _schedulers,
    _operations,
    _rows,
)
