"""No event is listed that nothing fires: a count of zero would be a number that nobody counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pmu.model import model, models

NATIVE = Path(__file__).resolve().parents[3] / "emulator" / "native"
FIRED = set(re.findall(r"Probe::([A-Z_]+)", "".join(path.read_text() for path in NATIVE.glob("*.cpp"))))


@pytest.mark.parametrize("name", models())
def test_the_core_fires_what_the_events_count(name: str) -> None:
    counted = {probe.name for event in model(name).events if not event.in_kernel for probe in event.probes}
    assert "INST_RETIRED" in counted
    assert counted - FIRED == set()
