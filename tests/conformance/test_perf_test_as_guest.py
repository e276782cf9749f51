"""`perf test` of Debian's unmodified perf 6.1 and 6.12 on the modelled Linux: what does not pass is in perf_test.toml.

Of those that perf has built in: its shell scripts want compilers, symbols and modules.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import require
from corpus.debian_machine import BASE, machine
from debian import ARCHITECTURES, TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU

TABLE: dict[str, dict[str, tuple[str, str]]] = tomllib.loads(Path(__file__).with_name("perf_test.toml").read_text())
PACKAGES = ("binutils", "linux-perf")  # 6.1 is the host's Debian's, 12; 6.12 is Debian 13's
CASES = {  # the numbers of those that are programs
    ("6.1", "x86_64"): (*range(1, 79),),
    ("6.1", "aarch64"): (*range(1, 75),),
    ("6.12", "x86_64"): (*range(1, 75), 127),
    ("6.12", "aarch64"): (*range(1, 71), 123),
}
OF_THE_KERNEL = (  # by parts of their names: what asks most of it, and takes a second or two each
    "mmap interface tests",
    "Test event parsing",
    "Simple expression parser",
    "syscall event",
    "event fields",
    "tracepoints fields",
    "Breakpoint",
    "Watchpoint",
    "dummy software event",
    "Track with sched_switch",
    "Event times",
    "Read backward ring buffer",
    "Convert perf time to TSC",
    "Sigtrap",
)
OUTCOME = re.compile(r" *\d+(?:\.\d+)?: (.*?) *: *(Ok|Skip|FAILED!)")
TIMEOUT_S = 1800


def outcomes(isa: str, version: str, script: str, folder: Path) -> dict[str, str]:
    """By the case's name, or its part's."""
    if version == "6.1":  # whose Debian has sleep in /bin: perf would find the host's in /usr/bin, of another ISA
        root = machine(isa, PACKAGES)
    else:
        root = require.debian_tree(ARCHITECTURES[isa], *BASE, *PACKAGES, release=TRIXIE)
    environment = ("--env", "PATH=/usr/bin:/bin", "--env", f"HOME={folder}")
    done = subprocess.run(
        [PERFEMU, "run", "--core", "ideal", "--sysroot", root, *environment, "--", "sh", "-c", script],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, env=ENVIRONMENT,
        check=False,
    )  # fmt: skip
    assert "internal error" not in done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    return {found[1]: found[2] for line in lines if (found := OUTCOME.match(line))}


def check(found: dict[str, str], isa: str, version: str) -> None:
    """Whether all passes, but for the rows of this perf."""
    places = ("any", isa, version, f"{version} {isa}")
    rows = {name: row[0] for place in places for name, row in TABLE.get(place, {}).items()}
    assert {name: what for name, what in found.items() if what != "Ok"} == {
        name: what for name, what in rows.items() if name in found
    }


@pytest.mark.parametrize(("isa", "version"), [("x86_64", "6.1"), ("aarch64", "6.12")])
def test_cases_about_the_kernel(isa: str, version: str, tmp_path: Path) -> None:
    names = " ".join(f"'{name}'" for name in OF_THE_KERNEL)
    found = outcomes(isa, version, f"perf test {names} 2>&1", tmp_path)
    assert len(found) > len(OF_THE_KERNEL)
    check(found, isa, version)


@pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="takes minutes: make kernels")
@pytest.mark.parametrize(("version", "isa"), CASES)
def test_all_cases(isa: str, version: str, tmp_path: Path) -> None:
    numbers = " ".join(map(str, CASES[version, isa]))
    found = outcomes(isa, version, f"for case in {numbers}; do perf test $case 2>&1; done", tmp_path)
    assert len(found) >= len(CASES[version, isa])
    check(found, isa, version)
    known = {name for place in ("any", isa, version, f"{version} {isa}") for name in TABLE.get(place, {})}
    assert known <= set(found), "rows of no case"
