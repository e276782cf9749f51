"""A trace is whole also where its event stays on the CPU to the end, as with record -a."""

from __future__ import annotations

from pathlib import Path

import pytest

from guests import guest
from perfemu.events.attributes import Sampling
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.scope import PROGRAM, Scope, scope_of_cpus
from perfemu.session import Session
from spe_records import traces_in

UNITS = {"arm_spe_0/ts_enable=1/u": "aarch64", "intel_bts//u": "x86_64", "intel_pt//u": "x86_64"}
INTERVAL = 1024


def recorded(event: str, file: Path, scope: Scope = PROGRAM) -> bytes:
    isa = UNITS[event]
    program = guest("embedded_mix", isa).path
    core = {"aarch64": "neoverse-n1", "x86_64": "skylake"}[isa]
    session = Session(Guest([program, "20"], core=core, stdout=-1))
    record(session, [event], Sampling(period=INTERVAL), str(file), scope=scope)
    return b"".join(trace for _, trace in traces_in(file.read_bytes()))


@pytest.mark.parametrize("event", UNITS)
def test_of_whole_cpus_as_of_the_program(event: str, tmp_path: Path) -> None:
    of_program = recorded(event, tmp_path / "program")
    of_cpus = recorded(event, tmp_path / "cpus", scope_of_cpus(True, None, 1))
    assert len(of_program) > 1000
    assert of_cpus == of_program
