"""intel_arch_perfmon_v6: architectural perfmon version 6 with Skylake's names for what every core's probes can tell.

CPUID leaf 23H tells which counters and events there are.
"""

from __future__ import annotations

from dataclasses import replace

from pmu.models.intel_arch_perfmon import MODEL as VERSION_4

MODEL = replace(VERSION_4, name="intel_arch_perfmon_v6", version=6)
