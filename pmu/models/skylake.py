"""skylake: the PMU of Intel's Skylake: architectural perfmon, version 4, with the events of its list.

Eight general-purpose counters, or four with Hyper-Threading: four here. What later parts have and Skylake has not are
the events of top-down analysis (`pmu/intel/event_rows.py: TOP_DOWN`).
"""

from __future__ import annotations

from pmu.intel.core_pmu import core_pmu

MODEL = core_pmu("skylake", counters=4)
