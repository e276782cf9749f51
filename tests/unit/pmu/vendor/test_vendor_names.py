"""Every event row has the vendor's code and the vendor's spelling.

Checked against small extracts beside this file, and, where PERFEMU_VENDOR_EVENTS names a folder that holds the vendors'
whole lists (arm-*.json of ARM-software/data, intel-skylake_core.json of intel/perfmon), against those too.
"""

import json
import os
from pathlib import Path

import pytest

from pmu.event import Event
from pmu.model import model, models

HERE = Path(__file__).parent
WHOLE_LISTS = os.environ.get("PERFEMU_VENDOR_EVENTS")


def extract(name: str) -> set[tuple[int, str]]:
    lines = (HERE / name).read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {(int(code, 16), event) for code, event in rows}


def arm_lists(folder: Path) -> set[tuple[int, str]]:
    rows = [row for path in sorted(folder.glob("arm-*.json")) for row in json.loads(path.read_text())["events"]]
    return {(row["code"], row["name"]) for row in rows if "name" in row}


def intel_list(folder: Path) -> set[tuple[int, str]]:
    rows = json.loads((folder / "intel-skylake_core.json").read_text())["Events"]
    plain = [
        row
        for row in rows
        if "," not in row["EventCode"] and all(int(row[key], 0) == 0 for key in ("CounterMask", "Invert", "EdgeDetect"))
    ]
    return {(int(row["EventCode"], 16) | int(row["UMask"], 16) << 8, row["EventName"]) for row in plain}


KNOWN = {
    "armv8_pmuv3": [extract("arm.txt")],
    "intel_arch_perfmon": [extract("intel-skylake.txt")],
}
if WHOLE_LISTS is not None:
    KNOWN["armv8_pmuv3"].append(arm_lists(Path(WHOLE_LISTS)))
    KNOWN["intel_arch_perfmon"].append(intel_list(Path(WHOLE_LISTS)))


def test_every_model_is_checked() -> None:
    assert set(KNOWN) == set(models())


@pytest.mark.parametrize(
    ("name", "event"), [pytest.param(name, event, id=event.name) for name in models() for event in model(name).events]
)
def test_code_and_name_are_the_vendors(name: str, event: Event) -> None:
    for known in KNOWN[name]:
        assert (event.code, event.name) in known
