"""Intel PT of whole programs, as perf 6.1 and 6.12 read it: each instruction that has retired, in that order.

As test_traces_of_programs.py, which has libipt; perf knows of address spaces and of the vDSO by itself, and reads code
from files alone: what makes its own it cannot follow.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import require
from emulator.linux.mm.vdso import vdso_image
from perfemu.build_id_cache import keep_vdso
from perfemu.symbols.finder import build_id_of
from real_perf import trixies_perf
from scale import runs
from scale.programs import COMMANDS, Command, prepare

SOURCE = Path(__file__).with_name("perf_compares.c")
AUX_PAGES = 16384  # 64 MiB for each CPU
CPUS = 4
RUNS = [
    pytest.param(
        command,
        id=command.name,
        marks=pytest.mark.skipif(os.environ.get("UNITS") != "all", reason="minutes each: make units"),
    )
    for command in COMMANDS
    if command.name != "generated"
]


@pytest.fixture(scope="module")
def compare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("perf") / "compare"
    subprocess.run([require.command("gcc", package="gcc"), "-O2", "-o", program, SOURCE], check=True)
    return program


@pytest.mark.parametrize("command", RUNS)
def test_intel_pt(command: Command, tmp_path: Path, compare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, truth, home, file = (tmp_path / name for name in ("place", "truth", "home", "perf.data"))
    prepare(command, place)
    truth.mkdir()
    home.mkdir()
    image = vdso_image("x86_64")
    with monkeypatch.context() as patched:
        patched.setenv("HOME", str(home))
        assert keep_vdso(image, build_id_of(str(image))) is None
    run = runs.session(command, "skylake", CPUS, place)
    retired = runs.recorded(run, "intel_pt//u", file, AUX_PAGES, build_ids=True)
    runs.write_truth(runs.session(command, "skylake", CPUS, place), runs.instructions, truth)
    host = [require.command("perf", package="linux-perf")]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C"}
    for perf in (host, [str(word) for word in trixies_perf("x86_64")]):
        words = [*perf, "script", "-i", str(file), "--itrace=i1ie", "-F", "cpu,ip"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as listing:
            done = subprocess.run(
                [compare, *(truth / str(cpu) for cpu in range(CPUS))],
                stdin=listing.stdout, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert listing.stdout is not None
            listing.stdout.close()
            assert listing.stderr is not None
            assert (done.stderr, listing.stderr.read()) == ("", b"")
        compared, repeated = map(int, done.stdout.split())
        print(f"{command.name}: {compared:,} instructions, {repeated:,} REPs listed once more")
        assert compared == retired
        assert compared > 1_000_000
