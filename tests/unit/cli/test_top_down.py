"""Top-down analysis, stall shares, and which events a core's parts allow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from emulator.core_file.probes import fires
from emulator.probes import Probe, Source
from perfemu.counting import TOP_DOWN_EVENTS
from perfemu.events.parser import parse_events
from perfemu.run_times import RunTimes
from perfemu.statistics.counts import Count, Counts, Reading
from perfemu.statistics.metrics import metrics_of
from pmu.generic_events import CacheId, CacheOp, CacheResult, HardwareId
from pmu.model import model

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "guest_programs/loop_1k/aarch64.elf"
MODELLED = ("neoverse_n1", "cortex_a72", "cortex_a55", "skylake", "zen4", "zen5")

# 1000 cycles of a machine four wide
SLOTS = {
    "slots": 4000,
    "topdown-retiring": 2000,
    "topdown-bad-spec": 200,
    "topdown-fe-bound": 600,
    "topdown-be-bound": 1200,
    "topdown-br-mispredict": 200,
    "topdown-fetch-lat": 400,
    "topdown-mem-bound": 900,
}


def counts(pmu: str, values: Mapping[str, int]) -> Counts:
    specs = parse_events(values, model(pmu))
    rows = (Count(spec, (Reading(value, 1000, 1000),)) for spec, value in zip(specs, values.values(), strict=True))
    return Counts("prog", "core", tuple(rows), (RunTimes(1000, 1000),))


def shares(report: Counts) -> dict[str, str]:
    return {metric.unit: metric.format % metric.value for count in report for metric in metrics_of(report, count)}


@pytest.mark.parametrize("pmu", MODELLED)
def test_slots_are_shared_out(pmu: str) -> None:
    # of 4000: 2000 is 50 %, 200 5 %, 600 15 %, 1200 30 %; the rests are 600 - 400 and 1200 - 900
    found = shares(counts(pmu, SLOTS))
    found = {unit: value.strip() for unit, value in found.items() if not unit.endswith("/sec")}
    assert found == {
        "Retiring": "50.0%",
        "Bad Speculation": "5.0%",
        "Frontend Bound": "15.0%",
        "Backend Bound": "30.0%",
        "Branch Mispredict": "5.0%",
        "Machine Clears": "0.0%",
        "Fetch Latency": "10.0%",
        "Fetch Bandwidth": "5.0%",
        "Memory Bound": "22.5%",
        "Core Bound": "7.5%",
    }


def test_an_event_is_known_between_slashes_as_well() -> None:
    found = shares(counts("skylake", {"cpu/slots/": 100, "cpu/topdown-retiring/": 25}))
    assert found["Retiring"].strip() == "25.0%"


def test_without_slots_there_are_no_shares() -> None:
    assert shares(counts("skylake", {"topdown-retiring": 25})) == {}


@pytest.mark.parametrize("pmu", MODELLED)
def test_the_categories_of_level_1_are_all_slots(pmu: str) -> None:
    found = model(pmu)
    slots, *categories = (found.events.find(found.sysfs_aliases[name]) for name in TOP_DOWN_EVENTS[0])
    probes = [probe for event in categories for probe in event.probes]
    assert sorted(probes) == sorted(slots.probes)


def test_stalls_are_shares_of_the_cycles() -> None:
    values = {"cycles": 1000, "stalled-cycles-frontend": 100, "stalled-cycles-backend": 250, "instructions": 500}
    found = {unit: value.strip() for unit, value in shares(counts("neoverse_n1", values)).items()}
    assert found["frontend cycles idle"] == "10.00%"
    assert found["backend cycles idle"] == "25.00%"
    assert found["insn per cycle"] == "0.50"
    assert found["stalled cycles per insn"] == "0.50"


def perfemu(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perfemu", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_ideal_core_has_no_slots_and_no_stalls() -> None:
    refused = perfemu("stat", "--core", "ideal", "--topdown", PROGRAM)
    assert refused.returncode != 0
    assert "core ideal has no pipeline whose slots could be counted" in refused.stderr
    assert "stalled-cycles" not in perfemu("stat", "--core", "ideal", PROGRAM).stderr
    asked = perfemu("stat", "--core", "ideal", "-e", "stalled-cycles-frontend", PROGRAM)
    assert "<not supported>" in asked.stderr


def test_a_level_wants_top_down() -> None:
    assert "stat --td-level: wants --topdown" in perfemu("stat", "--td-level", "2", PROGRAM).stderr


def test_a_core_counts_what_its_parts_fire() -> None:
    tables: dict[str, object] = {"pipeline": {"model": "in_order"}, "l1d": {}, "branch": {"direction": "gshare"}}
    always = (Source.INSTRUCTION, Source.CLOCK)
    assert all(fires({}, probe) == (probe.source in always) for probe in Probe)
    assert fires(tables, Probe.L1D_REFILL_LOAD)
    assert not fires(tables, Probe.L1I_REFILL)
    assert not fires(tables, Probe.DTLB_WALK_LOAD)
    assert fires(tables, Probe.BR_MISPREDICTED)
    assert not fires(tables, Probe.BR_RETURN_MISPREDICTED)
    assert fires(tables, Probe.SLOTS_FRONTEND)
    assert not fires(tables, Probe.STALL_ROB)


def test_a_pmu_lists_what_its_core_fires() -> None:
    whole = model("neoverse_n1")
    assert whole.limited_to(lambda probe: True) is whole
    # without a last-level cache
    limited = whole.limited_to(lambda probe: not probe.name.startswith("LL_"))
    assert limited.events.by_name("LL_CACHE_RD") is None
    assert limited.events.by_name("L1D_CACHE_REFILL_INNER") is None  # LL's refills are taken away from it
    assert (CacheId.LL, CacheOp.READ, CacheResult.ACCESS) not in limited.generic_cache_events
    assert limited.generic_cache_events[CacheId.L1D, CacheOp.READ, CacheResult.MISS] == "L1D_CACHE_REFILL"
    assert "ll_cache_rd" not in limited.sysfs_aliases
    ideal = whole.limited_to(lambda probe: fires({}, probe))
    assert HardwareId.CACHE_MISSES not in ideal.generic_events
    assert {event.name for event in ideal.events} >= {"INST_RETIRED", "CPU_CYCLES", "SW_INCR"}
