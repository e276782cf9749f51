"""Probes of a core: those that its tables make it fire. A count of what it does not have would be nobody's."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.probes import Probe, Source

KERNEL_WORK = ("syscall", "fault", "exception", "switch")  # what [kernel] gives cycles to

_PREDICTORS = {probe.part for probe in Probe if probe.source is Source.BRANCH_UNIT and probe.part}


def _memory_fires(tables: Mapping[str, object], part: str) -> bool:
    return part in tables


def _branch_unit_fires(tables: Mapping[str, object], part: str) -> bool:
    """Without a predictor, its part of the branches is never wrong."""
    branch = tables.get("branch")
    return isinstance(branch, dict) and not branch.keys().isdisjoint({part} if part else _PREDICTORS)


def _pipeline_fires(tables: Mapping[str, object], part: str) -> bool:
    pipeline = tables.get("pipeline")
    model = pipeline.get("model", "ideal") if isinstance(pipeline, dict) else "ideal"
    return bool(model == part if part else model != "ideal")


_FIRES = {
    Source.INSTRUCTION: lambda tables, part: True,
    Source.CLOCK: lambda tables, part: True,
    Source.MEMORY: _memory_fires,
    Source.BRANCH_UNIT: _branch_unit_fires,
    Source.PIPELINE: _pipeline_fires,
}


def fires(tables: Mapping[str, object], probe: Probe) -> bool:
    """Whether a core of these tables (those of a core file) can fire the probe."""
    return _FIRES[probe.source](tables, probe.part)


def kernel_takes_time(tables: Mapping[str, object]) -> bool:
    """Whether there are cycles of the kernel's."""
    costs = tables.get("kernel")
    return isinstance(costs, dict) and any(costs.get(f"{work}_cycles") for work in KERNEL_WORK)
