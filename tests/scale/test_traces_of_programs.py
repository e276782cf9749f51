"""Intel PT of whole programs: libipt finds in what `record` writes, instruction for instruction, what has retired.

The trace is of a run that nobody else watches. What has retired is told of each instruction in another run of the same,
in which the core goes step by step. `make units` runs all, which are hundreds of millions of instructions, and prints
how many there were.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import require
from pmu.intel.pt import BUS_HZ, CAPABILITIES
from scale import runs
from scale.address_spaces import read_recording
from scale.programs import COMMANDS, Command, prepare

EVERYTHING = os.environ.get("UNITS") == "all"
SOURCE = Path(__file__).with_name("libipt_compares.c")
MTC_PERIOD = 3  # of intel_pt//u
AUX_PAGES = 16384  # 64 MiB for each CPU
RUNS = [
    pytest.param(
        command,
        core,
        cpus,
        id=f"{command.name}-{core}-{cpus}",
        marks=pytest.mark.skipif(not EVERYTHING, reason="minutes each: make units"),
    )
    for core, cpus in (("skylake", 4), ("ideal", 1), ("skylake", 1))
    for command in COMMANDS
    if (core, cpus) != ("skylake", 1) or command.is_ours
]


@pytest.fixture(scope="module")
def compare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.uname().machine != "x86_64":
        require.missing("an x86-64 host is needed for Debian's libipt of amd64")
    tree = require.debian_tree("amd64", "libipt-dev")
    program = tmp_path_factory.mktemp("libipt") / "compare"
    library = next(tree.glob("usr/lib/*/libipt.so"))
    compiler = require.command("gcc", package="gcc")
    words = [compiler, "-O2", f"-I{tree}/usr/include", SOURCE, library, f"-Wl,-rpath,{library.parent}", "-o", program]
    subprocess.run(words, check=True)
    return program


@pytest.mark.parametrize(("command", "core", "cpus"), RUNS)
def test_intel_pt(command: Command, core: str, cpus: int, tmp_path: Path, compare: Path) -> None:
    place, traces, truth = tmp_path / "place", tmp_path / "traces", tmp_path / "truth"
    prepare(command, place)
    traces.mkdir()
    truth.mkdir()
    units = () if core == "skylake" else ("pt",)
    retired = runs.recorded(
        runs.session(command, core, cpus, place, units), "intel_pt//u", tmp_path / "perf.data", AUX_PAGES
    )
    told = read_recording(tmp_path / "perf.data", traces)
    assert not told.truncated
    runs.write_truth(run := runs.session(command, core, cpus, place, units), runs.instructions, truth)
    hz = run.machine.clock.frequency_hz
    spaces, switches = tmp_path / "spaces", tmp_path / "switches"
    told.write_spaces(spaces)
    compared = repeated = 0
    for cpu in range(cpus):
        told.write_switches(switches, cpu, hz)
        ratio = CAPABILITIES.tsc_per_crystal(hz)
        (traces / str(cpu)).touch()
        words = [compare, traces / str(cpu), truth / str(cpu), spaces, switches]
        numbers = MTC_PERIOD, hz // BUS_HZ, ratio.denominator, ratio.numerator
        done = subprocess.run([*words, *map(str, numbers)], capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.returncode == 0
        here, again = map(int, done.stdout.split())
        compared, repeated = compared + here, repeated + again
    print(f"{command.name} on {core}, CPUs: {cpus}: {compared:,} instructions, {repeated:,} REPs listed once more")
    assert compared == retired
    assert compared > 1_000_000
