"""The unmodified perf 6.12 has the vendors' metrics built in: where ours are by their formulae, these are perf's."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from perfemu.vendor_metrics.tables import metrics_of
from pmu.model import model
from real_perf import trixies_perf

CPUIDS = {
    "zen4": "AuthenticAMD-25-11-1",
    "zen5": "AuthenticAMD-26-2-1",
    "skylake": "GenuineIntel-6-5E-3",
    "neoverse_n1": "0x00000000410fd0c0",
}
# Ours by the model's own events: see the tables.
BY_SLOTS = {
    "zen4": re.compile(r"bad_speculation.*|(frontend|backend)_bound_\w+"),
    "zen5": re.compile(r"bad_speculation.*|(frontend|backend)_bound_\w+"),
    "skylake": re.compile(
        r"tma_(backend_bound|bad_speculation|branch_mispredicts|fetch_latency|memory_bound|info_thread_slots)"
    ),
    "neoverse_n1": re.compile(r"(frontend|backend)_bound|bad_speculation|retiring"),
}
TIMEOUT_S = 120


def listed(name: str, folder: Path) -> dict[str, dict[str, str]]:
    device = folder / "bus/event_source/devices/cpu"
    (device / "format").mkdir(parents=True)
    (device / "type").write_text("4\n")
    command: Sequence[str | Path] = (*trixies_perf(model(name).isa), "list", "--json", "metrics")
    environment = {**os.environ, "SYSFS_PATH": str(folder), "PERF_CPUID": CPUIDS[name]}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=TIMEOUT_S, check=True)
    found: dict[str, dict[str, str]] = {}
    for row in json.loads(done.stdout):
        if "MetricName" in row:
            found.setdefault(row["MetricName"], row)
            found[row["MetricName"]].setdefault("groups", "")
            found[row["MetricName"]]["groups"] += f" {row['MetricGroup']}"
    return found


@pytest.mark.parametrize("name", CPUIDS)
def test_perf_has_the_same(name: str, tmp_path: Path) -> None:
    theirs = listed(name, tmp_path)
    compared = 0
    for metric in metrics_of(model(name)).values():
        by_slots = BY_SLOTS[name].fullmatch(metric.name)
        if by_slots and model(name).isa == "aarch64":
            continue  # which the part has not: of PMUs with slots
        row = theirs[metric.name]
        assert row.get("ScaleUnit", "") == metric.scale_unit, metric.name
        assert {*metric.groups} <= {*row["groups"].split()}, metric.name
        if by_slots is None:
            assert row["MetricExpr"].replace(" ", "") == metric.formula.replace(" ", ""), metric.name
            compared += 1
    assert compared >= 17
