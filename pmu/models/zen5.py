"""zen5: the PMU of AMD's Zen 5, family 1Ah. Six core counters, PerfMonV2; what cores share: pmu/amd/uncore.py."""

from __future__ import annotations

from pmu.amd.core_pmu import core_pmu
from pmu.amd.event_rows import ZEN5
from pmu.amd.not_modelled import ZEN5 as NOT_MODELLED

MODEL = core_pmu("zen5", ZEN5, NOT_MODELLED)
