"""No event is listed that nothing fires: a count of zero would be a number that nobody counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pmu.model import model, models

NATIVE = Path(__file__).resolve().parents[3] / "emulator" / "native"
ENGINE = (
    "armv8_pmuv3",
    "intel_arch_perfmon",
)  # of any core: what its caches or pipeline would have to fire is not here


def fired(pattern: str) -> set[str]:
    return set(re.findall(r"Probe::([A-Z0-9_]+)", "".join(path.read_text() for path in sorted(NATIVE.glob(pattern)))))


@pytest.mark.parametrize("name", models())
def test_the_core_fires_what_the_events_count(name: str) -> None:
    counted = {probe.name for event in model(name).events for probe in (*event.probes, *event.kernel)}
    counted |= {probe.name for event in model(name).events for probe in event.less}
    assert "INST_RETIRED" in counted
    assert counted - fired("*.cpp" if name in ENGINE else "**/*.[ch]pp") == set()
