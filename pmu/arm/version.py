"""Version: the versions of PMUv3, and what a version and its options have. Arm ARM DDI 0487, "ID_AA64DFR0_EL1"."""

from __future__ import annotations

from enum import IntEnum

from pmu.model import PmuModel

INSTRUCTION_COUNTER = "FEAT_PMUv3_ICNTR"  # options of a model, by the architecture's names
SNAPSHOTS = "FEAT_PMUv3_SS"
THRESHOLDS = "FEAT_PMUv3_TH"
EDGES = "FEAT_PMUv3_EDGE"
LINKS = "FEAT_PMUv3_TH2"
_NEEDS = {EDGES: THRESHOLDS, LINKS: EDGES}  # an option without which there is not the other


class Version(IntEnum):
    """ID_AA64DFR0_EL1.PMUVer. Each has all that those before it have."""

    V3P0 = 1
    V3P1 = 4  # event numbers of 16 bits, and 0x4000 to 0x403F in PMCEID0 and 1; MDCR_EL2.HPMD
    V3P4 = 5  # PMMIR_EL1
    V3P5 = 6  # event counters of 64 bits, PMCR_EL0.LP; MDCR_EL2.HLP and HCCD, MDCR_EL3.SCCD
    V3P7 = 7  # freezing by PMCR_EL0.FZO, whose IMP reads as zero; MDCR_EL2.HPMFZO, MDCR_EL3.MPMX and MCCD
    V3P8 = 8  # what an event number counts that nobody has is nothing, and no longer UNPREDICTABLE: here it never was
    V3P9 = 9  # PMUSERENR_EL0.UEN and TID with PMUACR_EL1; PMZR_EL0; MDCR_EL3.EnPM2

    @property
    def title(self) -> str:
        """As the manual writes it: PMUv3p5."""
        return "PMUv3" if self is Version.V3P0 else f"PMUv3p{self.name[3:]}"


def needed_for(option: str) -> Version:
    """The least version that may have the option. ValueError: there is no such option here."""
    least = {
        INSTRUCTION_COUNTER: Version.V3P9,
        SNAPSHOTS: Version.V3P9,
        THRESHOLDS: Version.V3P8,
        EDGES: Version.V3P8,
        LINKS: Version.V3P9,
    }
    if option not in least:
        raise ValueError(f"{option}: PMUv3 here has the options {', '.join(least)}")
    return least[option]


def checked_version(model: PmuModel) -> Version:
    """ValueError: an option that the version cannot have or that needs another, or counters of another width."""
    version = Version(model.version)
    for option in sorted(model.options):
        if version < needed_for(option):
            raise ValueError(f"{model.name}: {version.title} has no {option}; {needed_for(option).title} has")
        if _NEEDS.get(option, option) not in model.options:
            raise ValueError(f"{model.name}: {option} needs {_NEEDS[option]}, too")
    bits = 64 if version >= Version.V3P5 else 32
    if model.counter_width_bits != bits:
        raise ValueError(f"{model.name}: event counters of {version.title} have {bits} bits")
    return version
