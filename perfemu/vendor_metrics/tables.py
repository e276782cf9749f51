"""tables: which metrics a PMU has."""

from __future__ import annotations

from perfemu.vendor_metrics import amd, arm, intel
from perfemu.vendor_metrics.metric import VendorMetric
from pmu.model import PmuModel

_OF_MODEL = {
    "zen4": amd.ZEN4,
    "zen5": amd.ZEN5,
    "redwood_cove": (*intel.COMMON, *intel.BY_TOP_DOWN_EVENTS),
    "skylake": (*intel.COMMON, *intel.BY_SKYLAKES_EVENTS),
    "intel_arch_perfmon": intel.COMMON,
}


def metrics_of(model: PmuModel) -> dict[str, VendorMetric]:
    """By name, in the order of the list. Some may have events that the PMU, or its core, has not."""
    rows = _OF_MODEL.get(model.name, ())
    if model.driver == "arm_pmuv3":
        rows = (*arm.ARM, *(arm.SLOTS if model.slots else ()))
    return {row.name: row for row in rows}


def literals_of(model: PmuModel) -> dict[str, float]:
    """What formulae may ask besides: no core here has more than one thread."""
    return {"#slots": float(model.slots), "#smt_on": 0.0, "#SMT_on": 0.0}
