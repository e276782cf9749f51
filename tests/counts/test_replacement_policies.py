"""A scan through lines that are used once, and two lines that are used again and again: who keeps those two?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import guest

FOUR_WAYS = {"size": 256, "ways": 4}  # one set
CACHES = {
    "L1D": {"l1d": {**FOUR_WAYS, "latency": 4}},
    # A first level of one line: all loads of the program are of another line than the one before.
    "L2": {"l1d": {"size": 64, "ways": 1, "latency": 4}, "l2": {**FOUR_WAYS, "latency": 12}},
}
# Misses of the program's 100 rounds. Each reads lines A, B, A, B, and 16 lines that come but once.
MISSES = {
    # The scan is longer than the set has ways: A and B are missed in every round, and hit in it once.
    "lru": (2 + 16) * 100,
    # The second use of A and B makes them near, 0; the scan's lines come as 2. They take each other's place, and
    # whenever none of them is distant, 3, all lines grow older by one: after at most 2 + 2 + 2 + 2 of the scan's lines
    # A and B are distant themselves, and the ninth to sixteenth are more than take their places.
    "rrip": (2 + 16) * 100,
    # The scan's load counts as one whose lines are used again until one is replaced, which the scan's third does: all
    # but the first two come as 3, and the next takes the place of the one before. A and B have grown older once, and
    # become near again in the next round.
    "ship": 2 + 16 * 100,
}


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("policy", MISSES)
def test_signatures_tell_the_scan_from_what_is_used_again(policy: str, cache: str, isa: str) -> None:
    tables = {name: dict(table) for name, table in CACHES[cache].items()}
    tables[cache.lower()]["replacement"] = policy
    core = load_core("ideal")
    core = replace(core, tables={**core.tables, **tables, "memory": {"latency": 200}})
    machine = LinuxMachine(MachineConfig(isa, core=core))
    native = machine.cpus[0].core
    native.follow_branches()
    path = str(guest("scan_and_reuse", isa).path)
    machine.start(Program(path, (path,), stdout=-1))
    assert machine.run() == 0
    assert native.total(Probe[f"{cache}_ACCESS_LOAD"]) == (4 + 16) * 100
    assert native.total(Probe[f"{cache}_REFILL_LOAD"]) == MISSES[policy]
