"""Is the number exact? Every guest program on every ISA, by the core's own totals: expected.toml has the arithmetic."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from emulator.linux.program import Program
from emulator.machine import Machine, MachineConfig
from emulator.probes import Probe
from guests import Guest, guests

NEED_PERF_EVENT_OPEN = {"self_monitoring", "user_counter"}  # test_self_monitoring.py


@pytest.mark.parametrize("guest", [g for g in guests() if g.name not in NEED_PERF_EVENT_OPEN], ids=str)
def test_counts_are_as_derived(guest: Guest, tmp_path: Path) -> None:
    machine = Machine(MachineConfig(guest.isa))
    core = machine.cpus[0].core
    out = tmp_path / "out"
    with out.open("wb") as stdout:
        machine.start(Program(str(guest.path), (guest.path.name,), stdout=stdout.fileno()))
        status = machine.run()
    counts = {probe: core.total(Probe[probe]) for probe in guest.counts}
    assert os.waitstatus_to_exitcode(status) == guest.exit_status
    assert out.read_text() == guest.stdout
    assert counts == guest.counts
