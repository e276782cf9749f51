"""intel_arch_perfmon_v3: architectural perfmon version 3 with Skylake's names for what every core's probes can tell.

As version 2, with ANY in the select registers, which on cores of one thread changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from pmu.models.intel_arch_perfmon import MODEL as VERSION_4

MODEL = replace(VERSION_4, name="intel_arch_perfmon_v3", version=3)
