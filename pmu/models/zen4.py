"""zen4: the PMU of AMD's Zen 4, family 19h. Six core counters, PerfMonV2; what cores share: pmu/amd/uncore.py."""

from __future__ import annotations

from pmu.amd.core_pmu import core_pmu
from pmu.amd.event_rows import ZEN4
from pmu.amd.not_modelled import ZEN4 as NOT_MODELLED

MODEL = core_pmu("zen4", ZEN4, NOT_MODELLED)
