"""pmuv3p9: PMUv3 for Armv8.9: EL0's access counter by counter, and the instruction counter of Armv9.4.

Common events: all that the core's probes can tell.
"""

from __future__ import annotations

from pmu.arm.core_pmu import pmu_of_version
from pmu.arm.version import EDGES, INSTRUCTION_COUNTER, LINKS, SNAPSHOTS, THRESHOLDS, Version

MODEL = pmu_of_version("pmuv3p9", Version.V3P9, {INSTRUCTION_COUNTER, SNAPSHOTS, THRESHOLDS, EDGES, LINKS})
