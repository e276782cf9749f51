"""all_units: what record --all-units makes: one recording for each of the core's units, of one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfemu.attributing import ExactSamples
from perfemu.errors import UsageError
from perfemu.events.attributes import Sampling
from perfemu.events.branch_filters import ANY_BRANCH
from perfemu.events.spec import EventSpec, parse_modifiers
from perfemu.recorder import RecordedRun
from perfemu.recording import View
from pmu.model import PmuModel

EXACT = "exact"  # the view that no unit has: how often each instruction made each event
_OWN_EVENTS = {  # unit with PMUs of its own -> what is recorded of these
    "ibs": ("ibs_fetch//u", "ibs_op//u"),
    "spe": ("arm_spe_0/ts_enable=1,pa_enable=1/u",),
    "pt": ("intel_pt//u",),
    "bts": ("intel_bts//u",),
}
_BRANCH_RECORDS = ("lbr", "arch_lbr", "amd_lbr", "brbe")  # come with samples of the CPUs' PMU
_PRECISE = 2  # precise_ip of its samples


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a unit sees what the CPUs' PMU counts."""

    branches: int = 0
    precise: int = 0


_OF_COUNTERS = {unit: _Kind(branches=ANY_BRANCH) for unit in _BRANCH_RECORDS} | {"pebs": _Kind(precise=_PRECISE)}


def unit_views(run: RecordedRun, model: PmuModel, specs: Sequence[EventSpec], sampling: Sampling) -> list[View]:
    """Of the units of `model`'s core, beside a recording of `specs`. UsageError where it has none."""
    views = [view for unit in sorted(model.units) for view in _views(run, unit, specs, sampling)]
    if not views:
        raise UsageError(f"record --all-units: core {run.core.title} has none: --unit NAME lends it one")
    counted = [spec for spec in specs if spec.is_hardware and not spec.counts_nothing]
    if counted:
        views.append(View(EXACT, tuple(_alone(counted)), Sampling(inherit=sampling.inherit), ExactSamples))
    return views


def _views(run: RecordedRun, unit: str, specs: Sequence[EventSpec], sampling: Sampling) -> Iterable[View]:
    if unit in _OWN_EVENTS:
        own = [run.opened_as(spec) for spec in run.parse(_OWN_EVENTS[unit])]
        yield View(unit, tuple(own), replace(sampling, callchains=False, exact_callchains=False, stack_bytes=0))
    elif unit in _OF_COUNTERS:
        kind = _OF_COUNTERS[unit]
        hardware = [_at_least(spec, kind.precise) for spec in specs if spec.is_hardware and not spec.counts_nothing]
        if hardware:
            yield View(unit, tuple(_alone(hardware)), replace(sampling, branches=kind.branches))


def _at_least(spec: EventSpec, precise: int) -> EventSpec:
    if spec.modifiers.precise >= precise:
        return spec
    return replace(spec, modifiers=parse_modifiers(spec.modifiers.text.replace("p", "") + "p" * precise))


def _alone(specs: Iterable[EventSpec]) -> Iterable[EventSpec]:
    """In no groups, some of whose members may be left out."""
    return (replace(spec, group=number, leads=True, group_size=1) for number, spec in enumerate(specs))
