"""intel_arch_perfmon: architectural perfmon version 4 with Skylake's names for what every core's probes can tell.

Counters as Skylake with Hyper-Threading: four and three fixed, of 48 bits.
"""

from __future__ import annotations

from pmu.intel.core_pmu import CLOCK_AND_RETIRED, RETIRED_CACHE_EVENTS, perfmon_v4
from pmu.intel.event_rows import FIXED, RETIRED

MODEL = perfmon_v4("intel_arch_perfmon", 4, [*FIXED, *RETIRED], CLOCK_AND_RETIRED, RETIRED_CACHE_EVENTS)
