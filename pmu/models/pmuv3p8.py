"""pmuv3p8: PMUv3 for Armv8.8: numbers that no event has count nothing; thresholds.

Common events: all that the core's probes can tell.
"""

from __future__ import annotations

from pmu.arm.core_pmu import pmu_of_version
from pmu.arm.version import THRESHOLDS, Version

MODEL = pmu_of_version("pmuv3p8", Version.V3P8, {THRESHOLDS})
