"""The unmodified perf in Debian's unmodified kernel, which programs the board's PMU, and the modelled Linux: user mode
counts the same, and samples fall on the same instructions.
"""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

import debian_kernel
import perfemu
import require
from guests import guest
from on_a_board import Board
from perfemu.initramfs import program
from real_perf import RealPerf

PROGRAMS = ("instructions_million", "recursion", "sort", "page_crossing")
EVENTS = ("instructions:u", "r21:u", "r3c:u")  # BR_RETIRED; a code that no PMU has counts nothing
PERIOD = 10007
BEGIN, END = "-- begin --", "-- end --"
# Each program's counts behind its name, then the recording.
COUNT = f"perf stat -x, -o /tmp/s -e {','.join(EVENTS)}"
SCRIPT = (
    "".join(f"echo {name}; {COUNT} /{name} > /dev/null; cat /tmp/s\n" for name in PROGRAMS)
    + f"perf record -q -e instructions:u -c {PERIOD} -o /tmp/d /sort > /dev/null\n"
    + f"echo '{BEGIN}'; base64 /tmp/d; echo '{END}'\n"
)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    files = debian_kernel.with_libraries(require.debian_arm64("linux-perf"), "usr/bin/perf")
    files += [program(name, guest(name, "aarch64").path.read_bytes()) for name in PROGRAMS]
    script = "PATH=/bin:/usr/bin\n" + SCRIPT
    return Board().run(script, tmp_path_factory.mktemp("board"), files)


@pytest.mark.parametrize("name", PROGRAMS)
def test_user_mode_counts_are_the_same(name: str, said: list[str]) -> None:
    behind = said[said.index(name) + 1 :]
    counts = [line.split(",") for line in behind if line.count(",") > 3][: len(EVENTS)]
    ours = perfemu.stat(perfemu.Guest([guest(name, "aarch64").path], core="ideal"), list(EVENTS[:2]))
    assert {row[2]: int(row[0]) for row in counts} == {
        **{event: ours[event] for event in EVENTS[:2]},
        EVENTS[2]: 0,
    }
    assert ours["instructions:u"] > 500


def test_every_sample_is_at_the_same_instruction(said: list[str], tmp_path: Path) -> None:
    theirs, ours = tmp_path / "board.data", tmp_path / "modelled.data"
    theirs.write_bytes(base64.b64decode("".join(said[said.index(BEGIN) + 1 : said.index(END)])))
    sort = guest("sort", "aarch64").path
    perfemu.record(perfemu.Guest([sort], core="ideal"), ["instructions:u"], period=PERIOD, output=ours)
    perf = RealPerf(tmp_path)
    addresses = [perf.run("script", "-F", "ip", "-i", file).split() for file in (theirs, ours)]
    assert addresses[0] == addresses[1]
    retired = perfemu.stat(perfemu.Guest([sort], core="ideal"), ["instructions:u"])["instructions:u"]
    assert len(addresses[0]) == retired // PERIOD
