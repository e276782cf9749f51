"""intel_arch_perfmon: architectural perfmon version 4 with Skylake's names for what every core's probes can tell.

Counters as Skylake with Hyper-Threading: four and three fixed, of 48 bits.
"""

from __future__ import annotations

from pmu.event import EventList
from pmu.intel.core_pmu import CLOCK_AND_RETIRED, FIXED_COUNTERS, FORMAT, RETIRED_CACHE_EVENTS, sysfs_aliases
from pmu.intel.event_rows import FIXED, RETIRED, SKYLAKE
from pmu.intel.not_modelled import NOT_MODELLED
from pmu.model import PmuModel

MODEL = PmuModel(
    name="intel_arch_perfmon",
    isa="x86_64",
    sysfs_name="cpu",
    driver="intel_core",
    version=4,
    identification=1 << 13,  # IA32_PERF_CAPABILITIES.FW_WRITE
    counters=4,
    most_counters=32,
    counter_width_bits=48,
    fixed_counters=FIXED_COUNTERS,
    events=EventList([*FIXED, *RETIRED]),
    format=FORMAT,
    generic_events=CLOCK_AND_RETIRED,
    generic_cache_events=RETIRED_CACHE_EVENTS,
    sysfs_aliases=sysfs_aliases(CLOCK_AND_RETIRED),
    not_modelled=NOT_MODELLED | {event.code: event.name for event in SKYLAKE if event not in (*FIXED, *RETIRED)},
)
