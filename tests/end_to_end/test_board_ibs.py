"""AMD's IBS on the board pc: Debian's kernels find it, set up the local APIC for it, and their perf samples with it."""

from __future__ import annotations

import os
import re
import subprocess
from math import sqrt
from pathlib import Path

import pytest

import debian_kernel
import perfemu
import require
from debian import TRIXIE
from guests import guest
from on_a_board import Board
from perfemu.initramfs import directory, program

pytestmark = pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="half a minute each: make kernels")

CORE = "zen4"
SORT = guest("sort", "x86_64").path
SIZE = "20000"
PERIOD = 4096
MEAN = PERIOD - 63  # Linux writes the period; the count begins at one of 0 to 127 behind a sample
SCRIPT = f"""
dmesg | grep -E "IBS|Firmware Bug" | sed 's/.*] /dmesg: /'
cat /sys/bus/event_source/devices/ibs_op/caps/zen4_ibs_extensions | sed 's/^/zen4: /'
export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:/usr/lib:/lib
cd /tmp
echo 10000000 > /proc/sys/kernel/perf_event_max_sample_rate
echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent # which leaves that
perf=/usr/bin/perf
$perf record -q -a -R -o op -e ibs_op/cnt_ctl=1/ -c {PERIOD} /sort {SIZE}
$perf script -i op -F comm,ip | sed 's/^/op: /'
$perf record -q -a -o fetch -e ibs_fetch// -c {PERIOD} /sort {SIZE}
$perf script -i fetch -F comm,ip | sed 's/^/fetch: /'
$perf record -q -a -o precise -e cycles:pp -c 10007 /sort {SIZE}
$perf script -i precise -F comm,ip | sed 's/^/precise: /'
"""


def addresses(lines: list[str], name: str, comm: str) -> list[int]:
    rows = (re.fullmatch(rf"{name}: +{comm} +([0-9a-f]+) ?", line) for line in lines)
    return [int(row[1], 16) for row in rows if row is not None]


def instructions() -> set[int]:
    """Where the program has one."""
    shown = subprocess.run(
        [require.command("objdump", package="binutils"), "-d", SORT], capture_output=True, text=True, check=True
    ).stdout
    return {int(row[1], 16) for row in re.finditer(r"^ *([0-9a-f]+):\t", shown, re.MULTILINE)}


@pytest.mark.parametrize("release", ["", TRIXIE])
def test_its_kernels_own_driver_samples_the_program_and_the_kernel(release: str, tmp_path: Path) -> None:
    perf = debian_kernel.with_libraries(require.debian_tree("amd64", "linux-perf", release=release), "usr/bin/perf")
    folders = sorted({str(parent) for entry in perf for parent in Path(entry.path).parents} - {".", "bin"})
    files = [*map(directory, folders), *perf, program("sort", SORT.read_bytes())]
    board = Board("pc", CORE, release=release, parameters="mitigations=off", options=("--untimed",))
    lines = board.run(SCRIPT, tmp_path, files)
    assert [line for line in lines if line.startswith("dmesg: ")] == ["dmesg: perf: AMD IBS detected (0x00000bff)"]
    assert "zen4: 1" in lines

    there = instructions()
    retired = perfemu.stat(perfemu.Guest([SORT, SIZE], core=CORE, untimed=True), ["instructions:u"])["instructions:u"]
    for name, expected in (("op", retired / MEAN), ("fetch", None), ("precise", None)):
        found = addresses(lines, name, "sort")
        of_user = [address for address in found if not address >> 63]
        assert set(of_user) <= there, name
        assert len(of_user) > 10, name
        assert len(found) > len(of_user), name  # the kernel's, too
        if expected is not None:
            assert abs(len(of_user) - expected) < 5 * sqrt(expected) + 1
