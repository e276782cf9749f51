"""Debian's unmodified PAPI as a guest: which PMU it finds, and what it counts, of a loop whose counts are known."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import require
from c_programs import COMPILERS
from corpus.debian_machine import machine
from end_to_end.command import ENVIRONMENT, PERFEMU

SOURCE = Path(__file__).with_name("papi.c")
PACKAGES = ("libpapi-dev", "papi-tools")
TIMEOUT_S = 300
TURNS = 1_000_000 - 1_000  # of the loop: two instructions each, of which one is a branch


@dataclass(frozen=True)
class Platform:
    """What PAPI 7.0 calls a core, and events of it: instructions, branches, and more than it has counters for."""

    isa: str
    triplet: str
    core: str
    pmu: str
    counters: str
    fast: str  # whether PAPI reads by user mode's own instruction
    events: tuple[str, ...]


PLATFORMS = [
    Platform(
        "x86_64", "x86_64-linux-gnu", "skylake", "skl", "Number Hardware Counters : 11", "yes",
        (
            "PAPI_TOT_INS", "PAPI_BR_INS", *(f"skl::BR_INST_RETIRED:{mask}" for mask in (
                "CONDITIONAL", "NEAR_CALL", "NEAR_RETURN", "NOT_TAKEN", "NEAR_TAKEN", "FAR_BRANCH",
            )),
            "skl::MEM_INST_RETIRED:ALL_LOADS", "skl::MEM_INST_RETIRED:ALL_STORES",
            "skl::BR_INST_RETIRED:ALL_BRANCHES", "perf::BRANCH-INSTRUCTIONS", "perf::INSTRUCTIONS",
        ),
    ),
    Platform(
        "aarch64", "aarch64-linux-gnu", "neoverse-n1", "arm_n1", "Number Hardware Counters : 6", "no",
        ("arm_n1::INST_RETIRED", "arm_n1::BR_RETIRED", *(f"arm_n1::{name}" for name in (
            "LD_SPEC", "ST_SPEC", "DP_SPEC", "BR_IMMED_SPEC", "BR_RETURN_SPEC", "ASE_SPEC",
        ))),
    ),
]  # fmt: skip


def run(platform: Platform, directory: Path, *command: str) -> str:
    root = machine(platform.isa, PACKAGES)
    done = subprocess.run(
        [
            PERFEMU, "run", "--core", platform.core, "--untimed", "--sysroot", root, "--rw", directory, "--", *command,
        ],
        cwd=directory, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.isa)
def test_papi_knows_the_core(platform: Platform, tmp_path: Path) -> None:
    """libpfm4 by CPUID or /proc/cpuinfo, PAPI by cap_user_rdpmc of the event's page."""
    printed = run(platform, tmp_path, "papi_component_avail")
    supported = next(line for line in printed.splitlines() if "PMUs supported: " in line and "perf_raw" in line)
    assert platform.pmu in supported.partition(": ")[2].split(", ")
    assert platform.counters in printed
    assert f"Fast counter read (rdpmc): {platform.fast}" in printed


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.isa)
def test_papi_counts_exactly(platform: Platform, tmp_path: Path) -> None:
    root = machine(platform.isa, PACKAGES)
    subprocess.run(
        [
            require.command(*COMPILERS[platform.isa]), "-O1", "-w", "-I", root / "usr/include", "-o", tmp_path / "papi",
            SOURCE, "-L", root / "usr/lib" / platform.triplet, "-lpapi",
            "-Wl,--unresolved-symbols=ignore-in-shared-libs",
        ],
        check=True,
    )  # fmt: skip
    longer, overflows, another, multiplexed, passes = run(platform, tmp_path, "./papi", *platform.events).splitlines()
    assert longer == f"longer by: {2 * TURNS} {TURNS}"
    taken, due = (int(part) for part in overflows.removeprefix("overflows: ").replace(" due", "").split(", ")[:2])
    assert taken == due == 20  # 2,000,000 instructions and what comes around them, by 100,000
    assert overflows.endswith("20 in the loop")
    assert another == f"of another: {2 * TURNS}"
    # PAPI takes enabled / running in whole hundredths, rounded down (mpx_get_value's arithmetic)
    for ratio in multiplexed.removeprefix("multiplexed: ").split():
        assert 0.99 <= float(ratio) <= 1.00
    assert passes == "time passes: 1"
