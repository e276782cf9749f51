"""No event is listed that nothing fires: a count of zero would be a number that nobody counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pmu.model import model, models

NATIVE = Path(__file__).resolve().parents[3] / "emulator" / "native"
EVERY_FILE = ("**/*.[ch]pp",)
# Without what fires in caches and pipelines, which some cores do not have.
OF_ANY_CORE = ("core/*.cpp", "isa/*.cpp", "ops/*.[ch]pp", "aarch64/*.cpp", "x86_64/*.cpp")
FILES = {"armv8_pmuv3": OF_ANY_CORE, "intel_arch_perfmon": OF_ANY_CORE}


def fired(patterns: tuple[str, ...]) -> set[str]:
    named: set[str] = set()
    for path in sorted(path for pattern in patterns for path in NATIVE.glob(pattern)):
        text = path.read_text()
        bare = "" if "using enum Probe;" in text else "Probe::"
        named.update(re.findall(rf"\b{bare}([A-Z0-9_]+)\b", text))
    return named


@pytest.mark.parametrize("name", models())
def test_the_core_fires_what_the_events_count(name: str) -> None:
    counted = {probe.name for event in model(name).events for probe in event.probes}
    counted |= {probe.name for event in model(name).events for probe in event.less}
    assert "INST_RETIRED" in counted
    assert counted - fired(FILES.get(name, EVERY_FILE)) == set()
