"""pmuv3p7: PMUv3 for Armv8.7: counters that an overflow freezes.

Common events: all that the core's probes can tell.
"""

from __future__ import annotations

from pmu.arm.core_pmu import pmu_of_version
from pmu.arm.version import Version

MODEL = pmu_of_version("pmuv3p7", Version.V3P7)
