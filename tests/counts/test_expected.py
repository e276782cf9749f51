"""Is the number exact? Every guest program on every ISA: expected.toml has the arithmetic.

Counted twice over: by the core's own totals, and by the events that a user would ask for.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import perfemu
from emulator.probes import Probe
from guests import Guest, guests
from perfemu.session import Session

# The events that fire with a probe, by their names at the vendor's.
EVENTS = {
    "aarch64": {
        "INST_RETIRED": "inst_retired",
        "BR_RETIRED": "br_retired",
        "LOAD": "ld_retired",
        "STORE": "st_retired",
    },
    "x86_64": {
        "INST_RETIRED": "inst_retired.any",
        "BR_RETIRED": "br_inst_retired.all_branches",
        "BR_COND": "br_inst_retired.conditional",
        "LOAD": "mem_inst_retired.all_loads",
        "STORE": "mem_inst_retired.all_stores",
    },
}
AMD_EVENTS = {
    "INST_RETIRED": "ex_ret_instr",
    "BR_RETIRED": "ex_ret_brn",
    "BR_COND": "ex_ret_cond",
    "BR_RETURN": "ex_ret_near_ret",
    "LOAD": "ls_dispatch.ld_dispatch",
    "STORE": "ls_dispatch.store_dispatch",
}


@pytest.mark.parametrize("guest", guests(), ids=str)
def test_the_core_counts_as_derived(guest: Guest, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("wb") as stdout:
        session = Session(perfemu.Guest((str(guest.path),), stdout=stdout.fileno(), core="ideal"))
        core = session.machine.cpus[0].core
        core.follow_branches()
        ending = session.run()
    assert (ending.exit_status, out.read_text()) == (guest.exit_status, guest.stdout)
    assert {probe: core.total(Probe[probe]) for probe in guest.counts} == guest.counts


@pytest.mark.parametrize("guest", guests(), ids=str)
def test_events_count_as_derived(guest: Guest) -> None:
    compare(guest, EVENTS[guest.isa])


@pytest.mark.parametrize("guest", [guest for guest in guests() if guest.isa == "x86_64"], ids=str)
def test_amds_events_count_as_derived(guest: Guest) -> None:
    compare(guest, AMD_EVENTS, "identity.vendor=AuthenticAMD", "pmu.x86_64=zen4")


def compare(guest: Guest, events: dict[str, str], *changes: str) -> None:
    events = {probe: name for probe, name in events.items() if probe in guest.counts}
    run = perfemu.Guest([guest.path], core="ideal", core_changes=changes)
    result = perfemu.stat(run, ["instructions", "branches", *events.values()], capture=True)
    assert (result.exit_status, result.stdout) == (guest.exit_status, guest.stdout.encode())
    assert result["instructions"] == guest.counts["INST_RETIRED"]
    assert result["branches"] == guest.counts["BR_RETIRED"]
    expected = {probe: guest.counts[probe] for probe in events}
    if guest.isa == "x86_64":  # mem_inst_retired.all_loads is with software prefetches
        expected["LOAD"] += guest.counts.get("SOFTWARE_PREFETCH", 0)
    assert {probe: result[name] for probe, name in events.items()} == expected
