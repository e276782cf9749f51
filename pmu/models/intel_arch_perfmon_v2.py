"""intel_arch_perfmon_v2: architectural perfmon version 2 with Skylake's names for what every core's probes can tell.

Global control and status, fixed counters; a freeze clears IA32_PERF_GLOBAL_CTRL.
"""

from __future__ import annotations

from dataclasses import replace

from pmu.models.intel_arch_perfmon import MODEL as VERSION_4

MODEL = replace(VERSION_4, name="intel_arch_perfmon_v2", version=2)
