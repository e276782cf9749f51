"""pmuv3p4: PMUv3 for Armv8.4: with PMMIR_EL1.

Common events: all that the core's probes can tell.
"""

from __future__ import annotations

from pmu.arm.core_pmu import pmu_of_version
from pmu.arm.version import Version

MODEL = pmu_of_version("pmuv3p4", Version.V3P4)
