"""What a core attributes, as tests read it."""

from __future__ import annotations

import struct
from collections import Counter

from emulator._native import Core
from emulator.probes import Probe

RETIRED = (1 << Probe.INST_RETIRED,)
_ACCOUNT = 1


def start_attribution(core: Core, columns: tuple[int, ...] = RETIRED) -> None:
    """From now on, from 0."""
    core.attribute(columns)
    core.attribute_to(_ACCOUNT)


def taken(core: Core, columns: int = 1) -> dict[int, tuple[int, ...]]:
    """Address -> a count for each column, since this was asked last."""
    rows = struct.iter_unpack(f"={columns + 1}Q", core.take_attribution(_ACCOUNT))
    return {row[0]: row[1:] for row in rows}


def tally(core: Core) -> Counter[int]:
    """Address -> how often its instruction has retired."""
    return Counter({address: count for address, (count,) in taken(core).items()})
