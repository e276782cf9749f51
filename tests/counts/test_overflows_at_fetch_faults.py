"""A counter that wraps just before the first fetch from a page interrupts, though the fetch faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from c_programs import build
from end_to_end.command import perfemu
from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import open_perf_data
from perfemu import api

SOURCE = "int main(void) { volatile int sum = 0; for (int i = 0; i < 3000; i++) sum += i; return sum != 4498500; }\n"
CORES = {"skylake": "x86_64", "neoverse-n1": "aarch64", "ideal": "x86_64"}
MOST_FAULTS = 6


def cycles_at_fetch_faults(folder: Path, program: Path, core: str) -> list[int]:
    """Of user mode, until each page fault of a fetch: that of the address at which the program is."""
    event = "{page-faults,cycles:u}:S"
    arguments = ("record", "-q", "--core", core, "-d", "-c", "1", "-e", event, "-o", folder / "faults", program)
    assert perfemu(*arguments, cwd=folder).returncode == 0
    with open_perf_data(str(folder / "faults")) as file:
        taken = [file.decode_sample(each, 0) for each in file.records() if each.type == RecordType.SAMPLE]
    return [sample.read[1].value for sample in taken if sample.ip == sample.addr and sample.read[1].value]


@pytest.mark.parametrize("core", CORES)
def test_the_sample_before_a_fetch_that_faults(core: str, tmp_path: Path) -> None:
    """Periods that end in the last cycles before it: the first of them gives a sample in each run."""
    (tmp_path / "program.c").write_text(SOURCE)
    program = build(tmp_path / "program.c", CORES[core], tmp_path / "program")
    faults = cycles_at_fetch_faults(tmp_path, program, core)
    assert len(faults) >= 3
    whole = api.stat(api.Guest([program], core=core), ["cycles:u"], capture=True)["cycles"]
    assert whole is not None
    for before in faults[-MOST_FAULTS:]:
        for period in range(before - 2, before + 1):
            guest, output = api.Guest([program], core=core), tmp_path / "perf.data"
            found = api.record(guest, ["cycles:u"], output=output, period=period, capture=True)
            assert found.sample_count == whole // period, (before, period)
