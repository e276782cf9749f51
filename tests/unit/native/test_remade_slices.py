"""A block whose slice was made again, since a load met a store, and which faults in the middle: nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from c_programs import build
from emulator._native import RetirementRecorder
from emulator.probes import Probe
from perfemu.guest import Guest
from perfemu.session import Session

SOURCE = Path(__file__).with_name("meets_store.c")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, "aarch64", tmp_path_factory.mktemp("remade") / "meets_store")


def counted(program: Path, period: int = 0) -> tuple[int, dict[Probe, int]]:
    """The cycles, and all that happened, while every so many instructions somebody looks at one."""
    session = Session(Guest([program], core="neoverse-n1"))
    core = session.machine.cpus[0].core
    core.follow_branches()
    if period:
        core.select(RetirementRecorder(), 1 << Probe.INST_RETIRED, period)
    assert session.run().wait_status == 0
    return core.cycles, {probe: core.total(probe) for probe in Probe}


@pytest.mark.parametrize("period", [1, 29, 64, 300])
def test_it_goes_on_behind_each_fault(program: Path, period: int) -> None:
    assert counted(program, period) == counted(program)
