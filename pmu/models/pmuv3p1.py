"""pmuv3p1: PMUv3 for Armv8.1: event numbers of 16 bits, the high halves of PMCEID0 and 1.

Common events: all that the core's probes can tell.
"""

from __future__ import annotations

from pmu.arm.core_pmu import pmu_of_version
from pmu.arm.version import Version

MODEL = pmu_of_version("pmuv3p1", Version.V3P1)
