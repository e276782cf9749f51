"""intel_arch_perfmon_v5: architectural perfmon version 5 with Skylake's names for what every core's probes can tell.

Which fixed counters there are, by a bit each; no ANY.
"""

from __future__ import annotations

from dataclasses import replace

from pmu.models.intel_arch_perfmon import MODEL as VERSION_4

MODEL = replace(VERSION_4, name="intel_arch_perfmon_v5", version=5)
