"""pmuv3p5: PMUv3 for Armv8.5: event counters of 64 bits.

Common events: all that the core's probes can tell.
"""

from __future__ import annotations

from pmu.arm.core_pmu import pmu_of_version
from pmu.arm.version import Version

MODEL = pmu_of_version("pmuv3p5", Version.V3P5)
