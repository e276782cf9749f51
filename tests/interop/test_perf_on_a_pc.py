"""The unmodified perf in Debian's unmodified amd64 kernel, on the board pc, whose PMU interrupts by NMIs, and the
modelled Linux: user mode counts the same, and samples fall on the same instructions.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
from dataclasses import dataclass
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
PERIOD = 10007
BEGIN, END = "-- begin --", "-- end --"
AMD_CORE = """
base = "ideal"
name = "ideal-zen4"
summary = "the ideal core with the name and the PMU of a Zen 4"
validated = "not validated: for a test"
[identity]
vendor = "AuthenticAMD"
family = 0x19
model = 0x11
stepping = 1
[pmu]
x86_64 = "zen4"
"""


@dataclass(frozen=True)
class Maker:
    """Of a core whose PMU the kernel is to find. `events`: instructions, and branches by their code."""

    core_file: str  # or nothing: ideal, which is Intel's
    events: tuple[str, ...]
    driver: str
    counters: int

    def core(self, folder: Path) -> str:
        if not self.core_file:
            return "ideal"
        path = folder / "core.toml"
        path.write_text(self.core_file)
        return str(path)


INTEL = Maker(
    "",
    ("instructions:u", "rc4:u"),  # BR_INST_RETIRED.ALL_BRANCHES
    r"Architected|Skylake|Icelake|Broadwell|Haswell|Intel PMU driver",
    4,
)
AMD = Maker(
    AMD_CORE,
    ("instructions:u", "rc2:u", "r1000000c9:u"),  # ex_ret_brn, ex_ret_uncond_brnch_instr
    r"Fam1[79]h\+? core perfctr, AMD PMU driver",
    6,
)


def script(maker: Maker) -> str:
    count = f"perf stat -x, -o /tmp/s -e {','.join(maker.events)}"
    return (
        "PATH=/bin:/usr/bin\ndmesg | grep -E 'Performance Events|generic registers'\n"
        + "".join(f"echo {name}; {count} /{name} > /dev/null; cat /tmp/s\n" for name in PROGRAMS)
        + f"perf record -q -e instructions:u -c {PERIOD} -o /tmp/d /sort > /dev/null\n"
        + f"echo '{BEGIN}'; base64 /tmp/d; echo '{END}'; grep NMI /proc/interrupts\n"
    )


TIMEOUT_S = 600
LONG = pytest.mark.skipif("KERNELS" not in os.environ, reason="takes a minute: make kernels")
MACHINES = [
    pytest.param(("", INTEL), id="intel"),
    pytest.param(("", AMD), id="amd", marks=LONG),
    pytest.param((TRIXIE, INTEL), id="intel-trixie", marks=LONG),
    pytest.param((TRIXIE, AMD), id="amd-trixie", marks=LONG),
]


@pytest.fixture(scope="module", params=MACHINES)
def machine(request: pytest.FixtureRequest) -> tuple[str, Maker]:
    """Debian's release, and whose core it is."""
    found: tuple[str, Maker] = request.param
    return found


@pytest.fixture(scope="module")
def maker(machine: tuple[str, Maker]) -> Maker:
    return machine[1]


@pytest.fixture(scope="module")
def said(machine: tuple[str, Maker], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The console's lines."""
    release, maker = machine
    folder = tmp_path_factory.mktemp("pc")
    files = debian_kernel.with_libraries(require.debian_tree("amd64", "linux-perf"), "usr/bin/perf")
    files += [program(name, guest(name, "x86_64").path.read_bytes()) for name in PROGRAMS]
    initrd = folder / "initrd"
    initrd.write_bytes(debian_kernel.initramfs(script(maker), *files, architecture="amd64"))
    done = subprocess.run(
        [PERFEMU, "run", "--board", "pc", "--core", maker.core(folder), "--memory", "1G", "--initrd", initrd]
        + ["--cmdline", "console=ttyS0 quiet", debian_kernel.vmlinux(release, "amd64")],
        capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def retired(name: str, maker: Maker, folder: Path) -> dict[str, int | None]:
    """By the modelled Linux."""
    counts = perfemu.stat(perfemu.Guest([guest(name, "x86_64").path], core=maker.core(folder)), list(maker.events))
    return {event: counts[event] for event in maker.events}


def test_the_kernel_has_a_driver_for_the_pmu(said: list[str], maker: Maker) -> None:
    (line,) = [line for line in said if "Performance Events" in line]
    assert re.search(maker.driver, line)
    (counters,) = [line.split()[-1] for line in said if "... generic registers:" in line]
    assert int(counters) == maker.counters


@pytest.mark.parametrize("name", PROGRAMS)
def test_user_mode_counts_are_the_same(name: str, said: list[str], maker: Maker, tmp_path: Path) -> None:
    behind = said[said.index(name) + 1 :]
    counts = [line.split(",") for line in behind if line.count(",") > 3][: len(maker.events)]
    ours = retired(name, maker, tmp_path)
    assert {row[2]: int(row[0]) for row in counts} == ours
    assert (ours["instructions:u"] or 0) > 500


def test_every_sample_is_at_the_same_instruction(said: list[str], maker: Maker, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "board.data", tmp_path / "modelled.data"
    theirs.write_bytes(base64.b64decode("".join(said[said.index(BEGIN) + 1 : said.index(END)])))
    sort = guest("sort", "x86_64").path
    perfemu.record(perfemu.Guest([sort], core=maker.core(tmp_path)), ["instructions:u"], period=PERIOD, output=ours)
    perf = RealPerf(tmp_path)
    addresses = [perf.run("script", "-F", "ip", "-i", file).split() for file in (theirs, ours)]
    assert addresses[0] == addresses[1]
    assert len(addresses[0]) == (retired("sort", maker, tmp_path)["instructions:u"] or 0) // PERIOD


def test_each_sample_is_an_nmi(said: list[str], maker: Maker, tmp_path: Path) -> None:
    (line,) = [line for line in said if line.strip().startswith("NMI:")]
    assert int(line.split()[1]) >= (retired("sort", maker, tmp_path)["instructions:u"] or 0) // PERIOD
