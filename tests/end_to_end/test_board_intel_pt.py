"""Intel PT on the board pc: Debian's kernels find it, their own driver gives it tables of regions, and Debian's perf
decodes there what programs have executed, and the kernel itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import debian_kernel
import require
from branch_truth import taken_branches
from debian import TRIXIE
from guests import guest
from on_a_board import Board
from perfemu.initramfs import directory, program

pytestmark = pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="two minutes each: make kernels")

SORT = guest("sort", "x86_64").path
SIZE = "500"
# `small` has an area that is read while it is written, `busy` the kernel, too.
SCRIPT = f"""
sed 's/^/cr3: /' /sys/bus/event_source/devices/intel_pt/caps/cr3_filtering
export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:/usr/lib:/lib
cd /tmp
perf=/usr/bin/perf
$perf record -q -m 64,1024 -o whole -e intel_pt//u /sort {SIZE}
$perf script -i whole --itrace=be -F ip,addr 2>&1 | sed 's/^ */whole: /'
$perf record -q -m 64,4 -o small -e intel_pt/cyc/u /sort 1000
$perf script -i small --itrace=be -F ip,addr > branches 2>&1
grep 'trace error' branches
grep -c . branches | sed 's/^/small: /'
$perf script -i small --show-lost-events --itrace= -D 2>/dev/null | grep -c 'PERF_RECORD_AUX ' | sed 's/^/reads: /'
echo 0 > /proc/sys/kernel/kptr_restrict
$perf record -q --kcore -m 64,1024 -o busy -e intel_pt// /bin/busybox ls -l /
$perf script -i busy --itrace=be -F ip,sym,addr > branches 2>&1
grep 'trace error' branches
grep -c . branches | sed 's/^/busy: /'
grep -E -o 'entry_SYSCALL_64|ksys_write|vfs_statx|schedule' branches | sort -u | sed 's/^/function: /'
"""


@pytest.mark.parametrize(("core", "release"), [("skylake", ""), ("skylake", TRIXIE), ("redwood-cove", TRIXIE)])
def test_its_kernels_own_driver_traces(core: str, release: str, tmp_path: Path) -> None:
    perf = debian_kernel.with_libraries(require.debian_tree("amd64", "linux-perf", release=release), "usr/bin/perf")
    folders = sorted({str(parent) for entry in perf for parent in Path(entry.path).parents} - {".", "bin"})
    files = [*map(directory, folders), *perf, program("sort", SORT.read_bytes())]
    lines = Board("pc", core, release=release, options=("--untimed",)).run(SCRIPT, tmp_path, files)
    found: dict[str, list[str]] = {}
    for line in lines:
        name, _, rest = line.partition(": ")
        found.setdefault(name, []).append(rest)
    assert found["cr3"] == ["1"]
    assert [line for line in lines if "trace error" in line] == []

    rows = [[int(word, 16) for word in line.replace("=>", "").split()] for line in found["whole"]]
    near = [(source, target) for source, target in rows if source and target]
    assert near == taken_branches(SORT, "ideal", [SIZE])
    assert len(rows) > len(near)  # into the kernel, and back

    assert int(found["reads"][0]) > 2
    assert int(found["small"][0]) > len(near) * 2
    assert int(found["busy"][0]) > 20_000
    assert found["function"] == ["entry_SYSCALL_64", "ksys_write", "schedule", "vfs_statx"]
