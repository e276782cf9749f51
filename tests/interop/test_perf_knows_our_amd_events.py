"""The unmodified perf 6.12 has AMD's lists built in: given our sysfs, it encodes every event of ours as we do.

SYSFS_PATH is where perf looks for PMUs, PERF_CPUID which part it believes to be on.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pmu.amd.event_rows import EARLIER
from pmu.model import PmuModel, model
from real_perf import trixies_perf

CPUIDS = {"zen4": "AuthenticAMD-25-11-1", "zen5": "AuthenticAMD-26-2-1"}  # family in decimal, model in hex
TIMEOUT_S = 300


def sysfs(found: PmuModel, folder: Path) -> Path:
    """Without our ``events/``: the names are to come from perf."""
    device = folder / "bus/event_source/devices/cpu"
    (device / "format").mkdir(parents=True)
    for name, text in found.sysfs_format().items():
        (device / "format" / name).write_text(f"{text}\n")
    (device / "type").write_text("4\n")
    return folder


def encoded(found: PmuModel, encoding: str) -> int:
    """Of ``cpu/event=0x8e,umask=0x7/``, by our format."""
    terms = dict(term.split("=") for term in encoding.removeprefix("cpu/").removesuffix("/").split(","))
    return sum(bits.insert(int(terms.pop(bits.name), 0)) for bits in found.format if bits.name in terms)


@pytest.mark.parametrize("name", CPUIDS)
def test_perf_has_our_events_under_our_codes(name: str, tmp_path: Path) -> None:
    found = model(name)
    done = subprocess.run(
        [*trixies_perf("x86_64"), "list", "--json"],
        env={**os.environ, "SYSFS_PATH": str(sysfs(found, tmp_path)), "PERF_CPUID": CPUIDS[name]},
        capture_output=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    theirs = {
        row["EventName"]: encoded(found, row["Encoding"])
        for row in json.loads(done.stdout)
        if row.get("EventType") == "Kernel PMU event" and row.get("Encoding", "").startswith("cpu/")
    }
    own = {event.name for event in found.events if "perfemu's own" in event.note or EARLIER in event.note}
    ours = {event.name: event.code for event in found.events if event.name not in own}
    assert ours.items() <= theirs.items()
    assert not own & set(theirs)
    # all that it lists is counted or refused by name
    assert [event for event, code in theirs.items() if not (found.counted_by(code) or found.cannot_know(code))] == []
