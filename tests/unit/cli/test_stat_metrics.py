"""perfemu stat -M and --metric-only, at the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOOP = "guest_programs/loop_1k/aarch64.elf"


def stat(*arguments: str, program: str = LOOP, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "perfemu", "stat", *arguments, program],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stderr


def objects(*arguments: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in stat("-j", *arguments).splitlines()]


def test_a_metric_is_beside_the_first_of_its_events() -> None:
    """On the ideal core an instruction is a cycle."""
    lines = [line for line in stat("--core", "ideal", "-M", "ipc").splitlines() if ":u" in line]
    assert [line.split("#")[-1].split() for line in lines] == [["1.0", "per", "cycle", "ipc"], lines[1].split()]


def test_it_is_what_its_events_come_to() -> None:
    rows = objects("--core", "neoverse-n1", "-M", "l1d_cache_mpki,branch_misprediction_ratio")
    counts = {row["event"].removesuffix(":u"): float(row["counter-value"]) for row in rows}
    metrics = {row["metric-unit"]: float(row["metric-value"]) for row in rows if row["metric-unit"]}
    assert metrics == {
        "MPKI  l1d_cache_mpki": pytest.approx(1e3 * counts["L1D_CACHE_REFILL"] / counts["INST_RETIRED"], abs=1e-6),
        "per branch  branch_misprediction_ratio": pytest.approx(
            counts["BR_MIS_PRED_RETIRED"] / counts["BR_RETIRED"], abs=1e-6
        ),
    }


def test_it_is_of_all_control_groups_beside_events_of_one() -> None:
    """-G is of the -e before it. On the ideal core an instruction is a cycle, the root has all tasks."""
    rows = objects("--core", "ideal", "-a", "-e", "instructions", "-G", "/", "-M", "ipc")
    assert [(row["cgroup"], row["metric-unit"]) for row in rows] == [("/", ""), ("", "per cycle  ipc"), ("", "")]
    assert float(rows[1]["metric-value"]) == 1.0
    assert {float(row["counter-value"]) for row in rows} == {float(rows[0]["counter-value"])}


def test_the_shares_of_top_down_are_all_there_is() -> None:
    rows = objects("--core", "neoverse-n1", "--pmu", "pmuv3p9", "-M", "TopdownL1")
    shares = [float(row["metric-value"]) for row in rows if "percent of slots" in row["metric-unit"]]
    assert len(shares) == 4
    assert sum(shares) == pytest.approx(100, abs=1e-3)


def test_a_weak_group_that_does_not_fit_is_none() -> None:
    """With one counter two events are counted in turn; a group of them is not counted."""
    core = ("--core", "neoverse-n1", "--counters", "1", "-j", "-e")
    program = "guest_programs/sort/aarch64.elf"
    strong = [json.loads(line) for line in stat(*core, "{l1d_cache,l1d_cache_refill}", program=program).splitlines()]
    weak = [json.loads(line) for line in stat(*core, "{l1d_cache,l1d_cache_refill}:W", program=program).splitlines()]
    assert [row["event"] for row in weak] == ["l1d_cache:u", "l1d_cache_refill:u"]
    assert strong[0]["pcnt-running"] == 100.0
    assert strong[1]["counter-value"] == "<not counted>"
    assert weak[0]["pcnt-running"] + weak[1]["pcnt-running"] == pytest.approx(100, abs=0.1)


def test_metrics_alone() -> None:
    text = stat("--core", "ideal", "-M", "ipc", "--metric-only")
    assert text.splitlines()[3:6] == [f"{'per cycle  ipc':>20} ", f"{'1.0':>20} ", ""]
    assert stat("--core", "ideal", "-M", "ipc", "--metric-only", "-x", ";") == "per cycle  ipc;\n1.0;\n"
    assert objects("--core", "ideal", "-M", "ipc", "--metric-only") == [{"per cycle  ipc": "1.0"}]


def test_metrics_alone_of_the_default_events() -> None:
    header = stat("--core", "neoverse-n1", "--metric-only", "-x", ",").splitlines()[0]
    assert header.split(",")[:1] == ["GHz"]
    assert "insn per cycle" in header
    assert "/sec" not in header


def test_each_cpu_has_a_line() -> None:
    text = stat("--core", "ideal", "--cpus", "2", "-a", "-A", "-M", "ipc", "--metric-only", "-x", ",")
    assert text.splitlines() == ["cpu,per cycle  ipc,", "CPU0,1.0,", "CPU1,nan,"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-M", "ipx"), "stat -M ipx: no such metric or group; did you mean ipc?"),
        (("-M", "l2_cache_mpki", "--core", "ideal"), "this core cannot count L2D_CACHE_REFILL"),
        (("-M", "ipc", "-n"), "stat: -n and -M exclude each other"),
    ],
)
def test_what_cannot_be_is_said(arguments: tuple[str, ...], message: str) -> None:
    assert message in stat(*arguments, status=129)
