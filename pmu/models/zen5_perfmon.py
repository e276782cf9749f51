"""zen5_perfmon: what the Zen 5 core carries until AMD's PMU is modelled: Intel's, which no Zen 5 has.

Architectural perfmon, version 4, with six general-purpose counters as Zen 5 has. Its architectural events (cycles,
instructions, branches and their mispredicts, references and misses of the last-level cache) mean the same on every x86;
the others go by Skylake's codes and names, and count what this core's model does.
"""

from __future__ import annotations

from pmu.generic_events import HardwareId
from pmu.intel.core_pmu import core_pmu

MODEL = core_pmu(
    "zen5_perfmon",
    counters=6,
    generic_events={  # which Linux has on AMD's cores, and not on Skylake
        HardwareId.STALLED_CYCLES_FRONTEND: "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE",
        HardwareId.STALLED_CYCLES_BACKEND: "RESOURCE_STALLS.ANY",
    },
)
