"""Cores: what --core and --set can say, for the user: core files with their PMU models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from emulator.core_file.core_file import CoreFile, load_core
from emulator.core_file.layers import CoreFileError, names
from emulator.core_file.probes import fires, kernel_takes_time
from emulator.core_file.units import UNITS
from perfemu.errors import UsageError
from pmu.model import PmuModel, model
from pmu.unit_pmu import unit_pmus

DEFAULT_CORES = {"aarch64": "neoverse-n1", "x86_64": "zen5"}  # by ISA


def default_cores() -> str:
    """For help texts: `ideal`, or `neoverse-n1 or zen5`."""
    return " or ".join(dict.fromkeys(DEFAULT_CORES.values()))


def core(name: str, changes: Sequence[str] = ()) -> CoreFile:
    """The core of this name or in this file, with --set's changes. UsageError says what is wrong with it."""
    try:
        loaded = load_core(name, changes)
    except CoreFileError as problem:
        raise UsageError(str(problem)) from None
    for isa, pmu in loaded.pmu_models.items():
        try:
            model(pmu).on(isa)
        except ValueError as problem:
            raise UsageError(f"core {loaded.name}: pmu.{isa} = {pmu}: {problem}") from None
    return loaded


def core_for(
    name: str | None, isa: str, changes: Sequence[str] = (), *, units: Sequence[str] = (), untimed: bool = False
) -> CoreFile:
    """What `name` names, and None the default for the ISA, with `units` lent. UsageError if it does not execute that,
    or cannot have those."""
    loaded = core(DEFAULT_CORES[isa] if name is None else name, changes).with_units(units)
    for unit in units:
        if UNITS.get(unit) != isa:
            there = ", ".join(name for name, owner in UNITS.items() if owner == isa) or "none"
            raise UsageError(f"--unit {unit}: there is no such unit of {isa} cores; there is {there}")
    loaded = loaded.untimed() if untimed else loaded
    pmu_of(loaded, isa)
    return loaded


def pmu_of(loaded: CoreFile, isa: str, *, on_a_board: bool = False) -> PmuModel:
    """The model of the core's PMU, with the events that the core can fire, for programs of the modelled Linux.

    `on_a_board`: for guests with a kernel of their own, whose PMUs are counted from outside without PEBS.
    """
    if isa not in loaded.isas:
        raise UsageError(f"--core {loaded.name}: executes {' and '.join(loaded.isas)}, not {isa}")
    limited = (
        model(loaded.pmu_models[isa])
        .on(isa)
        .limited_to(partial(fires, loaded.fired_by), kernel_takes_time=kernel_takes_time(loaded.fired_by))
    )
    units = frozenset((*loaded.units, *loaded.lent))
    if limited.driver != "intel_core" and "pebs" not in loaded.lent:  # with another PMU (--pmu) it is not there
        units -= {"pebs"}
    sources = *limited.sources, *unit_pmus(units, loaded.unit_versions)
    if "brs" in units:
        aliases = {**limited.sysfs_aliases, "branch-brs": "ex_ret_brn_tkn"}
        limited = replace(limited, sysfs_aliases=aliases)
    found = replace(limited, slots=_slots(loaded), units=units, sources=sources, branch_records=loaded.branch_records)
    found = replace(found, interrupt_cycles=loaded.interrupt_cycles)
    has_pebs = "pebs" in units and found.driver == "intel_core" and not on_a_board
    if not has_pebs:
        return found

    # only cores that have it need Intel's modules
    from pmu.intel.pebs_events import with_pebs

    return with_pebs(found)


def isa_of_pmu(name: str) -> str:
    """ANY_ISA: any core's CPUs can have it. UsageError: there is no such PMU."""
    try:
        return model(name).isa
    except ValueError as problem:
        raise UsageError(f"--pmu: {problem}") from None


def with_pmu(changes: Sequence[str], pmu: str | None, isa: str) -> tuple[str, ...]:
    """--set's changes, and --pmu's."""
    return tuple(changes) if pmu is None else (*changes, f"pmu.{isa}={pmu}")


def _slots(loaded: CoreFile) -> int:
    """Micro-operations that it can begin in a cycle; 0 where none are modelled."""
    pipeline = loaded.fired_by["pipeline"]
    assert isinstance(pipeline, dict)
    width = pipeline.get("dispatch_width", 0)
    return width if isinstance(width, int) else 0


def cores() -> Iterator[CoreFile]:
    """Those that come with perfemu."""
    return (core(name) for name in names())
