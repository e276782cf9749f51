"""pmuv3p0: PMUv3 of Armv8.0: event numbers of 10 bits.

Common events: all that the core's probes can tell.
"""

from __future__ import annotations

from pmu.arm.core_pmu import pmu_of_version
from pmu.arm.version import Version

MODEL = pmu_of_version("pmuv3p0", Version.V3P0)
