"""Cores: what --core can name, and the PMU that each has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfemu.errors import UsageError
from pmu.model import PmuModel, model


@dataclass(frozen=True, slots=True)
class CoreChoice:
    """One core: how it keeps time, and its PMU model for each ISA that it executes."""

    name: str
    summary: str
    pmu_models: Mapping[str, str]

    def pmu(self, isa: str) -> PmuModel:
        if isa not in self.pmu_models:
            raise UsageError(f"--core {self.name}: executes {' and '.join(self.pmu_models)}, not {isa}")
        return model(self.pmu_models[isa])


CORES = (
    CoreChoice(
        "ideal",
        "every instruction takes one cycle at 1 GHz; no caches, TLBs or predictors",
        {"aarch64": "armv8_pmuv3", "x86_64": "intel_arch_perfmon"},
    ),
)
DEFAULT_CORE = "ideal"


def core(name: str) -> CoreChoice:
    """The core of this name; UsageError names those that exist."""
    for choice in CORES:
        if choice.name == name:
            return choice
    raise UsageError(f"--core {name}: no such core; there is {', '.join(choice.name for choice in CORES)}")
