"""Units: what observes execution besides a core's PMU, by the names of core files: branch records, traces, samplers."""

from __future__ import annotations

from collections.abc import Mapping

UNITS: Mapping[str, str] = {  # name -> the ISA whose cores can have it
    "ibs": "x86_64",
    "spe": "aarch64",
    "pt": "x86_64",
    "bts": "x86_64",
    "pebs": "x86_64",  # of format 3, or with perfmon 5 adaptive
    "lbr": "x86_64",  # Skylake's last branch records
    "arch_lbr": "x86_64",  # architectural last branch records
    "amd_lbr": "x86_64",  # AMD's last branch stack, version 2
    "brs": "x86_64",  # AMD's branch sampling
    "brbe": "aarch64",  # Arm's branch record buffer
}
INSTEAD_OF = {"brs": "amd_lbr"}  # a core that is lent the one has not the other, whose registers they were
BRANCH_RECORDS = 32  # of brbe, where a core file does not say how many: our choice
