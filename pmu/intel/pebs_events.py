"""What PEBS adds to the PMU of a core that has it: events that only records tell of, and a threshold of latency."""

from __future__ import annotations

from dataclasses import replace

from emulator.probes import Probe
from pmu.event import Event, EventList, Support
from pmu.format_field import FormatField, Role
from pmu.intel.pebs import LOAD_LATENCY, STORE_SAMPLE, is_adaptive
from pmu.model import PmuModel

LDLAT = FormatField("ldlat", 0, 15, Role.OPTION, config="config1")
_LOADS = "MEM_TRANS_RETIRED.LOAD_LATENCY"
_STORES = "MEM_TRANS_RETIRED.STORE_SAMPLE"
_ALL_STORES = "MEM_INST_RETIRED.ALL_STORES"
_LATENCY = Event(
    LOAD_LATENCY,
    _LOADS,
    (Probe.LOAD,),
    Support.APPROXIMATE,
    "sampled with precise_ip alone: of the loads of a period one is looked at, and kept if it took more than ldlat",
)
_STORE = Event(STORE_SAMPLE, _STORES, (Probe.STORE,), Support.APPROXIMATE, "sampled with precise_ip alone")


def with_pebs(model: PmuModel) -> PmuModel:
    """The PMU of a core that has PEBS, too."""
    samples_stores = is_adaptive(model.version)
    rows = [_LATENCY, _STORE] if samples_stores else [_LATENCY]
    there = {row.code for row in rows}
    return replace(
        model,
        events=EventList([*model.events, *rows]),
        format=(*model.format, LDLAT),
        sysfs_aliases=dict(model.sysfs_aliases)
        | {"mem-loads": _LOADS, "mem-stores": _STORES if samples_stores else _ALL_STORES},
        alias_terms={"mem-loads": "ldlat=3"},
        not_modelled={code: name for code, name in model.not_modelled.items() if code not in there},
    )
