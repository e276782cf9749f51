"""The unmodified perf in Debian's unmodified amd64 kernel, on the board pc, whose PMU interrupts by NMIs, and the
modelled Linux: user mode counts the same, and samples fall on the same instructions.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
from pathlib import Path

import pytest

import debian_kernel
import perfemu
import require
from debian import TRIXIE
from guests import guest
from perfemu.initramfs import program
from real_perf import RealPerf
from tests.end_to_end.command import ENVIRONMENT, PERFEMU

PROGRAMS = ("instructions_million", "recursion", "sort", "page_crossing")
EVENTS = ("instructions:u", "rc4:u")  # BR_INST_RETIRED.ALL_BRANCHES
PERIOD = 10007
BEGIN, END = "-- begin --", "-- end --"
COUNT = f"perf stat -x, -o /tmp/s -e {','.join(EVENTS)}"
SCRIPT = (
    "PATH=/bin:/usr/bin\ndmesg | grep 'Performance Events'\n"
    + "".join(f"echo {name}; {COUNT} /{name} > /dev/null; cat /tmp/s\n" for name in PROGRAMS)
    + f"perf record -q -e instructions:u -c {PERIOD} -o /tmp/d /sort > /dev/null\n"
    + f"echo '{BEGIN}'; base64 /tmp/d; echo '{END}'; grep NMI /proc/interrupts\n"
)
TIMEOUT_S = 600
RELEASES = [
    "",
    pytest.param(TRIXIE, marks=pytest.mark.skipif("KERNELS" not in os.environ, reason="takes a minute: make kernels")),
]


@pytest.fixture(scope="module", params=RELEASES)
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The console's lines."""
    files = debian_kernel.with_libraries(require.debian_tree("amd64", "linux-perf"), "usr/bin/perf")
    files += [program(name, guest(name, "x86_64").path.read_bytes()) for name in PROGRAMS]
    initrd = tmp_path_factory.mktemp("pc") / "initrd"
    initrd.write_bytes(debian_kernel.initramfs(SCRIPT, *files, architecture="amd64"))
    done = subprocess.run(
        [PERFEMU, "run", "--board", "pc", "--core", "ideal", "--memory", "1G", "--initrd", initrd]
        + ["--cmdline", "console=ttyS0 quiet", debian_kernel.kernel(request.param, "amd64")],
        capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def retired(name: str) -> dict[str, int | None]:
    """By the modelled Linux."""
    counts = perfemu.stat(perfemu.Guest([guest(name, "x86_64").path], core="ideal"), list(EVENTS))
    return {event: counts[event] for event in EVENTS}


def test_the_kernel_has_a_driver_for_the_pmu(said: list[str]) -> None:
    (line,) = [line for line in said if "Performance Events" in line]
    assert re.search(r"Architected|Skylake|Icelake|Broadwell|Haswell|Intel PMU driver", line)


@pytest.mark.parametrize("name", PROGRAMS)
def test_user_mode_counts_are_the_same(name: str, said: list[str]) -> None:
    behind = said[said.index(name) + 1 :]
    counts = [line.split(",") for line in behind if line.count(",") > 3][: len(EVENTS)]
    ours = retired(name)
    assert {row[2]: int(row[0]) for row in counts} == ours
    assert (ours["instructions:u"] or 0) > 500


def test_every_sample_is_at_the_same_instruction(said: list[str], tmp_path: Path) -> None:
    theirs, ours = tmp_path / "board.data", tmp_path / "modelled.data"
    theirs.write_bytes(base64.b64decode("".join(said[said.index(BEGIN) + 1 : said.index(END)])))
    sort = guest("sort", "x86_64").path
    perfemu.record(perfemu.Guest([sort], core="ideal"), ["instructions:u"], period=PERIOD, output=ours)
    perf = RealPerf(tmp_path)
    addresses = [perf.run("script", "-F", "ip", "-i", file).split() for file in (theirs, ours)]
    assert addresses[0] == addresses[1]
    assert len(addresses[0]) == (retired("sort")["instructions:u"] or 0) // PERIOD


def test_each_sample_is_an_nmi(said: list[str]) -> None:
    (line,) = [line for line in said if line.strip().startswith("NMI:")]
    assert int(line.split()[1]) >= (retired("sort")["instructions:u"] or 0) // PERIOD
