"""Branch records on the board pc: Debian's kernels find them, their own drivers program them, and Debian's perf has in
its samples the branches that the same program takes in the modelled Linux."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import debian_kernel
import require
from debian import TRIXIE
from end_to_end.command import perfemu
from guests import guest
from on_a_board import Board
from perfemu.initramfs import directory, program

pytestmark = pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="a minute each: make kernels")

SORT = guest("sort", "x86_64").path
ARGUMENTS = ("2000",)
PERIOD = 211
KERNEL = range(1 << 63, 1 << 64)
SAMPLE = re.compile(r"0x([0-9a-f]+)/0x([0-9a-f]+)/")


@dataclass(frozen=True)
class Unit:
    entries: int
    found: str  # what the kernel says
    event: str  # that ends periods: branches that are taken
    stacks: bool  # of calls
    parameters: str = ""  # of the kernel


UNITS = {
    "skylake": Unit(32, "32-deep LBR", "cpu/event=0xc4,umask=0x20/u", True),
    "redwood-cove": Unit(32, "Architectural LBR", "cpu/event=0xc4,umask=0x20/u", True),
    "zen4": Unit(16, "16-deep LBR", "cpu/event=0xc4/u", False, "mitigations=off"),
}
SCRIPT = """
dmesg | sed -n 's/.*Performance Events: /found: /p'
echo branches: $(cat /sys/bus/event_source/devices/cpu/caps/branches)
export LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:/usr/lib:/lib
cd /tmp
perf=/usr/bin/perf
$perf record -q -j any,u -o user -e EVENT -c PERIOD /sort 2000
$perf script -i user -F ip,brstack | sed '/./s/^/user: /'
$perf record -q -j any,k -o kernel -e instructions:k -c 5003 /sort 2000
$perf script -i kernel -F ip,brstack | sed '/./s/^/kernel: /'
"""
CALLS = """
$perf record -q --call-graph lbr -o calls -e instructions:u -c 10007 /sort 2000
$perf script -i calls -F ip,sym | sed 's/^ */calls: /'
"""


def branches(lines: list[str], name: str) -> list[list[tuple[int, int]]]:
    """Of each sample of that recording, newest first."""
    rows = (line for line in lines if line.startswith(f"{name}: "))
    return [[(int(source, 16), int(target, 16)) for source, target in SAMPLE.findall(row)] for row in rows]


def expected(core: str, folder: Path) -> list[list[tuple[int, int]]]:
    """The same program's, without that kernel."""
    command = ("record", "-q", "--core", core, "--untimed", "-j", "any,u", "-e", UNITS[core].event, "-c", PERIOD)
    assert perfemu(*map(str, command), "-o", "data", SORT, *ARGUMENTS, cwd=folder).returncode == 0
    shown = perfemu("script", "-i", "data", "-F", "ip,brstack", cwd=folder).stdout.decode()
    return branches([f"user: {line}" for line in shown.splitlines() if line], "user")


@pytest.mark.parametrize("release", ["", TRIXIE])
@pytest.mark.parametrize("core", UNITS)
def test_its_kernels_own_driver_has_the_branches(core: str, release: str, tmp_path: Path) -> None:
    unit = UNITS[core]
    perf = debian_kernel.with_libraries(require.debian_tree("amd64", "linux-perf", release=release), "usr/bin/perf")
    folders = sorted({str(parent) for entry in perf for parent in Path(entry.path).parents} - {".", "bin"})
    files = [*map(directory, folders), *perf, program("sort", SORT.read_bytes())]
    script = SCRIPT.replace("EVENT", unit.event).replace("PERIOD", str(PERIOD)) + (CALLS if unit.stacks else "")
    board = Board("pc", core, release=release, parameters=unit.parameters, options=("--untimed",))
    lines = board.run(script, tmp_path, files)

    assert any(line.startswith("found: ") and unit.found in line for line in lines), lines
    assert f"branches: {unit.entries}" in lines
    # A switch from one task to another empties the records: what there is before them is not known then.
    with_returns, whole = branches(lines, "user"), expected(core, tmp_path)
    of_user = [[each for each in stack if each[0] not in KERNEL] for stack in with_returns]
    assert len(of_user) == len(whole) > 100
    assert [stack == other[: len(stack)] for stack, other in zip(of_user, whole, strict=True)] == [True] * len(whole)
    assert sum(len(stack) == unit.entries for stack in of_user) > 9 * len(whole) // 10
    # Each goes on from where the one before it led, in the kernel.
    of_kernel = branches(lines, "kernel")
    assert len(of_kernel) > 20
    assert all(target in KERNEL for stack in of_kernel for _, target in stack)
    if unit.stacks:
        calls = [line.split()[-1] for line in lines if line.startswith("calls: ")]
        assert "_start" in calls
