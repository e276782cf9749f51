"""UnitPmu: the PMU of a unit that traces or samples by itself, as data: its name in Linux, and the format of its attr.

Which unit has which stands in `_PMUS`; the data are in the file of the unit's registers, and loaded where there is one.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from pmu.event import Event, UnknownEvent
from pmu.event_source import EventSource

_PMUS: dict[str, str] = {  # unit -> the module whose PMUS are its PMUs; in the order in which Linux finds them
    "ibs": "pmu.amd.ibs",
    "spe": "pmu.arm.spe_pmu",
    "pt": "pmu.intel.pt_pmu",
    "bts": "pmu.intel.bts",
}


@dataclass(frozen=True, slots=True)
class UnitPmu(EventSource):
    """It has no list of events: its config is whatever its driver accepts of its format."""

    unit: str = ""  # of emulator.core_file.units
    has_aux: bool = True  # whether it writes into an AUX area
    goes_into_samples: bool = False  # perf can take parts of its trace into samples of other events
    address_filters: bool = False  # it traces where --filter says
    tells_of_memory: bool = False  # whether its trace says which data were accessed, and where they were
    default_period: int = 0  # of what samples, if nobody says another one; 0: it traces all
    version: str = ""  # of the core's, where there are several
    default_config: int = 0  # what perf's record asks for where the user says nothing else
    record_bytes: int = 1  # of what it writes there: nothing smaller is read
    trailer: bytes = b""  # behind each stretch of that in a file, for the sake of its decoders
    note: str = ""  # for lists of events
    caps: Mapping[str, str] = field(default_factory=dict)  # the files of sysfs ``caps/``: name -> contents

    def event_of(self, config: int, config1: int = 0, config2: int = 0) -> Event:
        """What an attr's words ask for, under the PMU's name. UnknownEvent for bits that are in no field."""
        words = {"config": config, "config1": config1, "config2": config2}
        for word, value in words.items():
            if stray := value & ~sum(bits.mask for bits in self.format if bits.config == word):
                raise UnknownEvent(f"bits {stray:#x} of {word} {value:#x} are not in the format of {self.name}")
        return Event(config, self.name, (), note=self.note or "its unit")


def unit_pmus(units: Collection[str], versions: Mapping[str, str]) -> tuple[UnitPmu, ...]:
    """Those of a core's units, in the versions that it has of them."""
    return tuple(
        replace(pmu, version=versions.get(unit, ""))
        for unit, module in _PMUS.items()
        if unit in units
        for pmu in importlib.import_module(module).PMUS
    )
