"""The unmodified perf in Debian's unmodified kernel, which programs the board's PMU, and the modelled Linux: user mode
counts the same, and samples fall on the same instructions.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

import debian_kernel
import perfemu
import require
from debian import TRIXIE
from guests import guest
from on_a_board import Board
from perfemu.initramfs import program
from pmu.model import model
from real_perf import RealPerf

PROGRAMS = ("instructions_million", "recursion", "sort", "page_crossing")
EVENTS = ("instructions:u", "r21:u", "r3ff:u")  # BR_RETIRED; a code that no PMU has counts nothing
LONG = 4  # events of 64 bits at once
PERIOD = 10007
BEGIN, END = "-- begin --", "-- end --"
# Each program's counts behind its name, then the recording.
COUNT = f"perf stat -x, -o /tmp/s -e {','.join(EVENTS)}"
SCRIPT = (
    "dmesg | sed -n 's/.*] \\(.*perfevents\\)/\\1/p'\n"
    + "".join(f"echo {name}; {COUNT} /{name} > /dev/null; cat /tmp/s\n" for name in PROGRAMS)
    + "p=$(basename /sys/bus/event_source/devices/armv8_pmuv3*)\n"
    + f"e=$(for n in {' '.join(map(str, range(LONG)))}; do echo -n ,$p/event=0x8,long=1/u; done)\n"
    + "perf stat -x, -o /tmp/s -e ${e#,} /sort > /dev/null; echo long; cat /tmp/s\n"
    + "echo sysfs; cd /sys/bus/event_source/devices/$p; grep . caps/* format/* 2>/dev/null; cd /\n"
    + "rm /tmp/s; t=$p/event=0x8,threshold\n"
    + "perf stat -x, -o /tmp/s -e $t=1,threshold_compare=2,threshold_count=1/u"
    + " -e $t=1,threshold_compare=3,threshold_count=1/u -e $t=2,threshold_compare=2/u /sort > /dev/null 2>&1\n"
    + "echo thresholds; cat /tmp/s\n"
    + f"perf record -q -e instructions:u -c {PERIOD} -o /tmp/d /sort > /dev/null\n"
    + f"echo '{BEGIN}'; base64 /tmp/d; echo '{END}'\n"
)


@dataclass(frozen=True)
class Driven:
    """A PMU, and the release whose kernel drives it: "" is the core's, and the host's."""

    pmu: str
    release: str
    counters: int  # that the kernel finds
    pairs: bool  # whether events of 64 bits take two of them: six are three, for LONG


SLOW = pytest.mark.skipif("KERNELS" not in os.environ, reason="the other two show the same: make kernels")
DRIVEN = [
    pytest.param(Driven("", "", 7, True), id="default"),
    pytest.param(Driven("pmuv3p5", "", 7, False), id="pmuv3p5", marks=SLOW),
    pytest.param(Driven("pmuv3p9", TRIXIE, 8, False), id="pmuv3p9"),
]


@pytest.fixture(scope="module", params=DRIVEN)
def driven(request: pytest.FixtureRequest) -> Driven:
    found = request.param
    assert isinstance(found, Driven)
    return found


@pytest.fixture(scope="module")
def said(driven: Driven, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    files = debian_kernel.with_libraries(require.debian_arm64("linux-perf"), "usr/bin/perf")
    files += [program(name, guest(name, "aarch64").path.read_bytes()) for name in PROGRAMS]
    script = "PATH=/bin:/usr/bin\n" + SCRIPT
    board = Board(release=driven.release, pmu=driven.pmu)
    return board.run(script, tmp_path_factory.mktemp("board"), files)


def test_the_kernel_finds_its_counters(driven: Driven, said: list[str]) -> None:
    """The instruction counter is one of 6.12's, where there is one."""
    (line,) = (line for line in said if "perfevents" in line)
    assert f" {driven.counters} " in line


def test_counters_of_64_bits_need_no_pairs(driven: Driven, said: list[str]) -> None:
    begin = said.index("long") + 1
    rows = [line.split(",") for line in said[begin : said.index("sysfs")] if line.count(",") > 3]
    all_the_time = [row[0] for row in rows if row[-3] == "100.00"]
    assert len(rows) == LONG
    assert (len(all_the_time) < LONG) == driven.pairs
    retired = perfemu.stat(perfemu.Guest([guest("sort", "aarch64").path], core="ideal"), ["instructions:u"])
    assert set(all_the_time) <= {str(retired["instructions:u"])}


def test_thresholds_are_the_kernels(driven: Driven, said: list[str]) -> None:
    """With an instruction a cycle, as many cycles have one as there are instructions, and none has less or two."""
    behind = said[said.index("thresholds") + 1 : said.index(BEGIN)]
    counts = [line.split(",")[0] for line in behind if line.count(",") > 3]
    retired = perfemu.stat(perfemu.Guest([guest("sort", "aarch64").path], core="ideal"), ["instructions:u"])
    assert counts == ([str(retired["instructions:u"]), "0", "0"] if driven.release == TRIXIE else [])


def test_sysfs_is_6_12s(driven: Driven, said: list[str]) -> None:
    theirs = dict(line.split(":", 1) for line in said[said.index("sysfs") + 1 : said.index("thresholds")])
    if driven.release == TRIXIE:
        caps = {"bus_slots": "0x00000000", "bus_width": "0x00000000", "slots": "0x00000000"}
        ours = {f"caps/{name}": text for name, text in {**caps, "threshold_max": "0x00000fff"}.items()}
        assert theirs == ours | {f"format/{name}": text for name, text in model(driven.pmu).sysfs_format().items()}
    else:
        assert theirs.keys() >= {"caps/slots", "format/long"}


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
