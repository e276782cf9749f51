"""The unmodified perf 6.12 has the vendors' lists of what CPUs share: it encodes each event of ours as we do.

SYSFS_PATH is where perf looks for PMUs, PERF_CPUID which part it believes to be on.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pmu.event_source import EventSource
from pmu.model import model
from real_perf import trixies_perf

CPUIDS = {  # family in decimal for AMD, else in hex; model and stepping in hex
    "skylake": "GenuineIntel-6-5E-3",
    "redwood_cove": "GenuineIntel-6-AD-1",
    "zen4": "AuthenticAMD-25-11-1",
    "zen5": "AuthenticAMD-26-2-1",
}
TIMEOUT_S = 300


def sysfs(sources: list[EventSource], folder: Path) -> Path:
    """Without our ``events/``: the names are to come from perf."""
    devices = folder / "bus/event_source/devices"
    (devices / "cpu").mkdir(parents=True)
    (devices / "cpu/type").write_text("4\n")
    for number, source in enumerate(sources):
        (devices / source.name / "format").mkdir(parents=True)
        for name, text in source.sysfs_format().items():
            (devices / source.name / "format" / name).write_text(f"{text}\n")
        (devices / source.name / "type").write_text(f"{8 + number}\n")
        (devices / source.name / "cpumask").write_text("0\n")
    return folder


def encoded(source: EventSource, encoding: str) -> int:
    """Of ``amd_l3/event=0x4,umask=0xff/``, by our format."""
    terms = dict(term.split("=") for term in encoding.partition("/")[2].removesuffix("/").split(","))
    return sum(bits.insert(int(terms.pop(bits.name), 0)) for bits in source.format if bits.name in terms)


@pytest.mark.parametrize("name", CPUIDS)
def test_perf_has_our_shared_events_under_our_codes(name: str, tmp_path: Path) -> None:
    sources = [source for source in model(name).sources if source.system_wide]
    done = subprocess.run(
        [*trixies_perf("x86_64"), "list", "--json"],
        env={**os.environ, "SYSFS_PATH": str(sysfs(sources, tmp_path)), "PERF_CPUID": CPUIDS[name]},
        capture_output=True, timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    rows = [row for row in json.loads(done.stdout) if row.get("EventType") == "Kernel PMU event"]
    for source in sources:
        listed = {
            row["EventName"].removeprefix(f"{source.name}/").removesuffix("/"): encoded(source, row["Encoding"])
            for row in rows
            if row.get("Encoding", "").startswith(f"{source.name.removesuffix('_0')}/")
        }
        ours = {event.name: event.code for event in source.events if event.name not in (source.sysfs_aliases or ())}
        if source.sysfs_aliases is None:  # of Linux's own, no vendor's
            assert not ours.keys() & listed.keys()
            continue
        assert ours.items() <= listed.items()
        # all that it lists is counted or refused by name
        assert [event for event in listed if source.find(event) is None and source.why_not(event) is None] == []
