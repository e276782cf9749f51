"""Intel's BTS and PEBS on the board pc: Debian's kernels find them, their own drivers give them buffers and take their
records, and Debian's perf has the branches and the instructions that the same program has in the modelled Linux."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import debian_kernel
import require
from branch_truth import taken_branches
from debian import TRIXIE
from end_to_end.command import perfemu
from guests import guest
from on_a_board import Board
from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import open_perf_data
from perfemu.initramfs import directory, program

pytestmark = pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="half a minute each: make kernels")

SORT = guest("sort", "x86_64").path
SIZE = "2000"
PERIOD = 1009
SCRIPT = f"""
dmesg | sed -n 's/.*Performance Events: /found: /p'
export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:/usr/lib:/lib
cd /tmp
perf=/usr/bin/perf
$perf record -q -o user -e instructions:upp -c {PERIOD} /sort {SIZE}
$perf script -i user -F ip | sed 's/^ */user: /'
$perf record -q -o both -e instructions:pp -c {PERIOD} /sort {SIZE}
$perf script -i both -F ip | sed 's/^ */both: /'
"""
TRACE = f"""
$perf record -q --per-thread -m 64,1024 -o trace -e intel_bts//u /sort {SIZE}
$perf script -i trace --itrace=b -F ip,addr | sed 's/^ */trace: /'
"""


def precise_samples(core: str, folder: Path) -> list[int]:
    """The instructions that make the last of so many, in a run of the same program without that kernel."""
    arguments = ("record", "-q", "--core", core, "--untimed", "-e", "instructions:upp", "-c", str(PERIOD))
    assert perfemu(*arguments, "-o", "precise", SORT, SIZE, cwd=folder).returncode == 0
    with open_perf_data(str(folder / "precise")) as file:
        return [file.decode_sample(record, 0).ip for record in file.records() if record.type == RecordType.SAMPLE]


def is_part_of(found: list[tuple[int, int]], whole: list[tuple[int, int]]) -> bool:
    """In that order, with others between them."""
    rest = iter(whole)
    return all(any(each == other for other in rest) for each in found)


@pytest.mark.parametrize(
    ("core", "release", "records"),
    [("skylake", "", "PEBS fmt3+"), ("skylake", TRIXIE, "PEBS fmt3+"), ("redwood-cove", TRIXIE, "PEBS fmt4+-baseline")],
)
def test_its_kernels_own_driver_has_their_records(core: str, release: str, records: str, tmp_path: Path) -> None:
    perf = debian_kernel.with_libraries(require.debian_tree("amd64", "linux-perf", release=release), "usr/bin/perf")
    folders = sorted({str(parent) for entry in perf for parent in Path(entry.path).parents} - {".", "bin"})
    files = [*map(directory, folders), *perf, program("sort", SORT.read_bytes())]
    script = SCRIPT + (TRACE if core == "skylake" else "")
    lines = Board("pc", core, release=release, options=("--untimed",)).run(script, tmp_path, files)
    assert any(line.startswith("found: ") and records in line for line in lines), lines

    found = {name: [line.split()[1:] for line in lines if line.startswith(f"{name}: ")] for name in ("user", "both")}
    assert [int(words[0], 16) for words in found["user"]] == precise_samples(core, tmp_path)
    levels = {int(words[0], 16) >> 63 for words in found["both"]}
    assert levels == {0, 1}
    if core != "skylake":  # which has no BTS
        return
    rows = [line.split()[1:] for line in lines if line.startswith("trace: ")]
    traced = [(int(source, 16), int(target, 16)) for source, _, target in rows]
    truth = taken_branches(SORT, "ideal", [SIZE])
    near = [(source, target) for source, target in traced if not target >> 63]
    assert len(traced) > len(near)  # system calls, faults and interrupts, which lead to the kernel
    assert is_part_of(near, truth)
    assert len(truth) - len(near) < 30  # perf leaves out the last record of each stretch between two interrupts
