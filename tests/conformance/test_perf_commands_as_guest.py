"""Commands of Debian's perf 6.1 and 6.12 as guests, by perf_commands.toml; and more events than counters."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import require
from corpus.debian_machine import BASE, machine
from debian import ARCHITECTURES, TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import DIRECTORY, guest

ROWS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("perf_commands.toml").read_text())["command"]
PACKAGES = ("binutils", "linux-perf")  # as test_perf_test_as_guest
PERIOD = 10007
TIMEOUT_S = 1800
HEAD = "===== "
TAIL = "===== status "
TOLD = re.compile(rf"^{HEAD}(\d+)\n(.*?)\n?^{TAIL}(\d+)$", re.MULTILINE | re.DOTALL)
FREQUENCY_HZ = (
    20_000_000  # at which counters change hands 40 times while the program runs: every 4 ms (PERF_CPU_HRTIMER)
)


@dataclass(frozen=True)
class Perf:
    isa: str
    version: str

    @property
    def root(self) -> Path:
        if self.version == "6.1":  # the host's Debian's
            return machine(self.isa, PACKAGES)
        return require.debian_tree(ARCHITECTURES[self.isa], *BASE, *PACKAGES, release=TRIXIE)

    def run(self, options: tuple[str, ...], script: str, folder: Path) -> str:
        """What a shell's script prints with what it says on standard error."""
        shutil.copy(DIRECTORY / "sort" / f"{self.isa}.elf", folder / "sort")
        environment = ("--env", "PATH=/usr/bin:/bin", "--env", f"HOME={folder}", "--env", "PAGER=cat")
        done = subprocess.run(
            [PERFEMU, "run", *options, "--sysroot", self.root, *environment, "--", "sh", "-c", script],
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, env=ENVIRONMENT,
            check=False, errors="replace",
        )  # fmt: skip
        assert "internal error" not in done.stderr
        assert done.returncode == 0, done.stderr
        return done.stdout

    def has(self, row: dict[str, Any]) -> bool:
        return not row.get("where") or not {self.isa, self.version, f"{self.version} {self.isa}"}.isdisjoint(
            row["where"]
        )

    def filled(self, text: str) -> str:
        """A row's text with the numbers that follow from the program's counts."""
        counts = guest("sort", self.isa).counts
        instructions = counts["INST_RETIRED"]
        numbers = {
            "instructions": instructions,
            "branches": counts["BR_RETIRED"],
            "period": PERIOD,
            "samples": instructions // PERIOD,
        }
        for name, number in numbers.items():
            text = text.replace(f"{{{name}}}", str(number))
        return text


def script_of(perf: Perf, rows: list[dict[str, Any]]) -> str:
    lines = []
    for number, row in enumerate(rows):
        lines.append(f"echo '{HEAD}{number}'\n(\n{perf.filled(row['run'])}\n) </dev/null 2>&1\nstatus=$?")
        lines.append(f'echo; echo "{TAIL}$status"')
    return "\n".join(lines)


def wrong(perf: Perf, row: dict[str, Any], told: str, status: int) -> list[str]:
    """What is not as its row says."""
    expected = row.get("status", 0)
    if isinstance(expected, dict):
        expected = expected[perf.version]
    missing = [each for each in row["says"] if not re.search(perf.filled(each), told, re.MULTILINE)]
    found = [f"status {status}"] * (status != expected) + [f"no {each}" for each in missing]
    if "lacks" in row and re.search(perf.filled(row["lacks"]), told, re.MULTILINE):
        found.append(f"there is {row['lacks']}")
    return [f"{perf.filled(row['run'])}: {what}" for what in found] + ([told] if found else [])


def check(perf: Perf, rows: list[dict[str, Any]], folder: Path) -> None:
    told = TOLD.findall(perf.run(("--core", "ideal"), script_of(perf, rows), folder))
    assert [int(number) for number, _, _ in told] == list(range(len(rows)))
    problems = [
        line for row, (_, text, status) in zip(rows, told, strict=True) for line in wrong(perf, row, text, int(status))
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("perf", [Perf("x86_64", "6.1")], ids=str)  # the others: make kernels, with all commands
def test_commands_that_are_typed_most(perf: Perf, tmp_path: Path) -> None:
    rows = [row for row in ROWS if perf.has(row) and not row.get("slow")]
    assert len(rows) > 20
    check(perf, rows, tmp_path)


@pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="takes minutes: make kernels")
@pytest.mark.parametrize("version", ["6.1", "6.12"])
@pytest.mark.parametrize("isa", ["x86_64", "aarch64"])
def test_all_commands(isa: str, version: str, tmp_path: Path) -> None:
    perf = Perf(isa, version)
    check(perf, [row for row in ROWS if perf.has(row)], tmp_path)


SLOW_BENCHMARKS = {  # those that take whole seconds, at 2 MHz
    "futex hash -r 1 -t 2 -f 16": "Averaged [1-9]\\d* operations/sec",
    "futex lock-pi -r 1 -t 2": "Averaged [1-9]\\d* operations/sec",
    "epoll wait -r 1 -t 2 -f 4": "Averaged [1-9]\\d* operations/sec",
    "epoll ctl -r 1 -t 2 -f 4": "Averaged [1-9]\\d* ADD operations",
}


@pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="takes a minute: make kernels")
@pytest.mark.parametrize("perf", [Perf("x86_64", "6.1"), Perf("aarch64", "6.12")], ids=str)
def test_benchmarks_that_take_seconds(perf: Perf, tmp_path: Path) -> None:
    script = "\n".join(f"perf bench {each} 2>&1; echo {HEAD}" for each in SLOW_BENCHMARKS)
    told = perf.run(("--core", "ideal", "--set", "frequency_hz=2000000"), script, tmp_path).split(HEAD)
    for text, expected in zip(told, SLOW_BENCHMARKS.values(), strict=False):
        assert re.search(expected, text), text


@pytest.mark.parametrize(
    ("isa", "core"),
    [
        ("aarch64", "neoverse-n1"),
        ("aarch64", "cortex-a72"),
        ("x86_64", "zen5"),
        ("x86_64", "redwood-cove"),
        ("x86_64", "skylake"),
    ],
)
def test_more_events_than_counters_take_turns(isa: str, core: str, tmp_path: Path) -> None:
    """A cycle each, so that each event has counted what its share of the time says: scaled, that is all, exactly."""
    events = ",".join(["instructions:u"] * 20)
    options = ("--core", core, "--untimed", "--set", f"frequency_hz={FREQUENCY_HZ}")
    told = Perf(isa, "6.12").run(options, f"perf stat -x, -o counted -e {events} ./sort; cat counted", tmp_path)
    rows = [line.split(",") for line in told.splitlines() if ",instructions:u," in line]
    expected = guest("sort", isa).counts["INST_RETIRED"]
    assert [int(row[0]) for row in rows] == [expected] * 20
    shares = [float(row[4]) for row in rows]
    assert max(shares) < 60
    assert sum(shares) > 100 * 4  # counters: at least four, each of which somebody has had nearly always
