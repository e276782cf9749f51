"""BTS of whole programs: the records of each CPU are the branches that were taken there, in order, and no others.

What was taken is told of another run of the same programs, which is not traced. `make units` runs all.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from scale import runs
from scale.address_spaces import read_recording
from scale.programs import COMMANDS, Command, prepare

AUX_PAGES = 4096  # 16 MiB for each CPU
STORED = np.dtype([("from", "<u8"), ("to", "<u8"), ("predicted", "<u8")])
TAKEN = np.dtype([("from", "<u8"), ("to", "<u8")])
SLOW = pytest.mark.skipif(os.environ.get("UNITS") != "all", reason="half a minute each: make units")


@SLOW
@pytest.mark.parametrize("cpus", [1, 4])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_intel_bts(command: Command, cpus: int, tmp_path: Path) -> None:
    place, traces, truth = tmp_path / "place", tmp_path / "traces", tmp_path / "truth"
    prepare(command, place)
    traces.mkdir()
    truth.mkdir()
    file = tmp_path / "perf.data"
    runs.recorded(runs.session(command, "skylake", cpus, place), "intel_bts//u", file, AUX_PAGES)
    assert not read_recording(file, traces, STORED.itemsize).truncated
    file.unlink()
    runs.write_truth(runs.session(command, "skylake", cpus, place), runs.branches, truth)
    compared = 0
    for cpu in range(cpus):
        (traces / str(cpu)).touch()
        stored, taken = np.fromfile(traces / str(cpu), STORED), np.fromfile(truth / str(cpu), TAKEN)
        stored = stored[stored["from"] != 0]  # of zeros: what `record` writes behind each stretch that it reads
        assert len(stored) == len(taken)
        assert np.array_equal(stored["from"], taken["from"])
        assert np.array_equal(stored["to"], taken["to"])
        compared += len(taken)
    for path in (*traces.iterdir(), *truth.iterdir()):
        path.unlink()
    print(f"{command.name} on skylake, CPUs: {cpus}: {compared:,} branches")
    assert compared > 100_000
