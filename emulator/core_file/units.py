"""Units: what observes execution besides a core's PMU, by the names of core files: branch records, traces, samplers."""

from __future__ import annotations

from collections.abc import Mapping

UNITS: Mapping[str, str] = {  # name -> the ISA whose cores can have it
    "ibs": "x86_64",
    "spe": "aarch64",
    "pt": "x86_64",
    "bts": "x86_64",
}
