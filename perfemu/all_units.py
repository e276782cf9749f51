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
_PRECISE = 2  # precise_ip of its samples


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a unit sees a run."""

    events: tuple[str, ...] = ()  # its own, as -e; (): those of the CPUs' PMU that are recorded
    branches: int = 0  # that are recorded with each sample
    precise: int = 0  # at least


KINDS = {  # by the names of emulator.core_file.units
    "ibs": _Kind(("ibs_fetch//u", "ibs_op//u")),
    "spe": _Kind(("arm_spe_0/ts_enable=1,pa_enable=1/u",)),
    "pt": _Kind(("intel_pt//u",)),
    "bts": _Kind(("intel_bts//u",)),
    "pebs": _Kind(precise=_PRECISE),
    "lbr": _Kind(branches=ANY_BRANCH),
    "arch_lbr": _Kind(branches=ANY_BRANCH),
    "amd_lbr": _Kind(branches=ANY_BRANCH),
    "brbe": _Kind(branches=ANY_BRANCH),
}
ALONE = {  # units that others would disturb -> why
    "brs": "each interrupt of another event makes it begin anew: record it by -b -e r0c4:u alone",
}


def unit_views(run: RecordedRun, model: PmuModel, specs: Sequence[EventSpec], sampling: Sampling) -> list[View]:
    """Of the units of `model`'s core, beside a recording of `specs`. UsageError where it has none."""
    for unit in sorted(model.units & ALONE.keys()):
        raise UsageError(f"record --all-units: {unit}: {ALONE[unit]}")
    views = [view for unit in sorted(model.units) for view in _views(run, unit, specs, sampling)]
    if not views:
        raise UsageError(f"record --all-units: core {run.core.title} has none: --unit NAME lends it one")
    counted = [spec for spec in specs if spec.is_hardware and not spec.counts_nothing]
    if counted:
        views.append(View(EXACT, tuple(_alone(counted)), Sampling(inherit=sampling.inherit), ExactSamples))
    return views


def _views(run: RecordedRun, unit: str, specs: Sequence[EventSpec], sampling: Sampling) -> Iterable[View]:
    kind = KINDS[unit]
    if kind.events:
        own = [run.opened_as(spec) for spec in run.parse(kind.events)]
        yield View(unit, tuple(own), replace(sampling, callchains=False, exact_callchains=False, stack_bytes=0))
        return
    counted = [_at_least(spec, kind.precise) for spec in specs if spec.is_hardware and not spec.counts_nothing]
    if counted:
        yield View(unit, tuple(_alone(counted)), replace(sampling, branches=kind.branches))


def _at_least(spec: EventSpec, precise: int) -> EventSpec:
    if spec.modifiers.precise >= precise:
        return spec
    return replace(spec, modifiers=parse_modifiers(spec.modifiers.text.replace("p", "") + "p" * precise))


def _alone(specs: Iterable[EventSpec]) -> Iterable[EventSpec]:
    """In no groups, some of whose members may be left out."""
    return (replace(spec, group=number, leads=True, group_size=1) for number, spec in enumerate(specs))
