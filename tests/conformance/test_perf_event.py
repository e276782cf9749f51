"""perf_event's behaviours, a small program in C for each: on the host's kernel, on Debian's on the board, and on ours.

A program (perf_event/AREA/NAME.c) checks its behaviour by itself. All are linked with a driver, which runs each in a
process of its own and prints one line of it: NAME ok, NAME skip WHY, NAME FAIL WHY. What differs is a row of
differences.toml.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from c_programs import build
from debian import TRIXIE
from end_to_end.command import ENVIRONMENT, PERFEMU
from on_a_board import Board
from perfemu.initramfs import program

FOLDER = Path(__file__).with_name("perf_event")
BEHAVIOURS = {path.stem: path for path in sorted(FOLDER.glob("*/*.c"))}
DIFFERENCES: dict[str, dict[str, str]] = tomllib.loads((FOLDER / "differences.toml").read_text())
WARNINGS = ("-Wall", "-Werror", "-Wno-unused-function", "-Wno-unused-result")
CPUS = 2
BOARD_ISAS = {"virt": "aarch64", "pc": "x86_64"}
TIMEOUT_S = 300
TRIES = 3  # of what fails on the host: a busy one may be late
KERNELS = {"6.12": TRIXIE, "6.1": ""}  # of Debian 13 and of the host's, 12


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All programs as one, by ISA."""
    folder = tmp_path_factory.mktemp("perf_event")
    source = folder / "suite.c"
    source.write_text("".join(f'#include "{path}"\n' for path in (*BEHAVIOURS.values(), FOLDER / "driver.c")))
    return {isa: build(source, isa, folder / isa, *WARNINGS) for isa in ("x86_64", "aarch64")}


def verdicts(lines: list[str], names: Iterable[str] = BEHAVIOURS) -> dict[str, str]:
    """What was printed of each behaviour, behind its name."""
    told = dict(line.partition(" ")[::2] for line in lines)
    assert set(told) == set(names), "a program said nothing, or something else"
    assert len(lines) == len(told), "a program said more than one thing"
    return told


def failures(told: dict[str, str]) -> dict[str, str]:
    return {name: verdict for name, verdict in told.items() if verdict.startswith("FAIL")}


def check(told: dict[str, str], places: Iterable[str]) -> None:
    """Whether all is as it is elsewhere, but for the rows of these places."""
    rows = {
        name for place in places for name in DIFFERENCES.get(place, {}) if not told.get(name, "skip").startswith("skip")
    }
    failed = failures(told)
    assert {name: verdict for name, verdict in failed.items() if name not in rows} == {}
    assert rows - set(failed) == set(), "rows of what is no difference"


def of_linux(release: str) -> Iterator[str]:
    """The places that a real kernel is."""
    number = _version(release)
    yield "linux"
    for place in DIFFERENCES:
        relation, _, than = place.partition(" ")
        if (relation == "since" and number >= _version(than)) or (relation == "until" and number <= _version(than)):
            yield place


def _version(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release)[:2])


def test_each_is_a_program_of_its_own() -> None:
    assert len(BEHAVIOURS) == len(list(FOLDER.glob("*/*.c"))) >= 150
    for name, path in BEHAVIOURS.items():
        assert f"BEHAVIOUR({name}, " in path.read_text(), path
        assert path.read_text().startswith("// "), f"{path} does not say what is so"
    assert {name for rows in DIFFERENCES.values() for name in rows} <= set(BEHAVIOURS)


def test_each_rule_of_the_manual_page_has_a_program() -> None:
    """manual.toml: by its sections; of the rules without one it says why."""
    sections = tomllib.loads((FOLDER / "manual.toml").read_text())
    without = sections.pop("not")
    assert all(isinstance(why, str) and why for why in without.values())
    rules = {rule: programs for rows in sections.values() for rule, programs in rows.items()}
    assert all(rules.values())
    assert {name for programs in rules.values() for name in programs} <= set(BEHAVIOURS)


@pytest.mark.parametrize("isa", ["x86_64", "aarch64"])
def test_ours(isa: str, suites: dict[str, Path]) -> None:
    done = subprocess.run(
        [PERFEMU, "run", "--core", "ideal", "--cpus", str(CPUS), suites[isa], "--all"],
        capture_output=True, text=True, check=True, env=ENVIRONMENT, timeout=TIMEOUT_S,
    )  # fmt: skip
    told = verdicts(done.stdout.splitlines())
    check(told, ("perfemu", f"perfemu {isa}"))
    assert [name for name, verdict in told.items() if verdict.startswith("skip")] == []


def test_the_hosts(suites: dict[str, Path]) -> None:
    """What needs no PMU, and changes nothing of the host."""
    suite = suites.get(platform.machine())
    if suite is None:
        pytest.skip(f"the programs are not built for {platform.machine()}")
    names = [name for name, path in BEHAVIOURS.items() if not re.search(rf"BEHAVIOUR\({name}, .*PMU", path.read_text())]
    told: dict[str, str] = {}
    for _ in range(TRIES):
        left = list(failures(told)) if told else names
        if left:
            done = subprocess.run([suite, *left], capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
            told |= verdicts(done.stdout.splitlines(), left)
    if told["opens"].startswith("FAIL"):
        pytest.skip("the host's kernel lets nobody open events: " + told["opens"])
    check(told, of_linux(platform.release()))
    assert sum(verdict == "ok" for verdict in told.values()) > len(BEHAVIOURS) // 2


@pytest.mark.skipif(os.environ.get("KERNELS") != "all", reason="`make kernels` boots Debian's")
@pytest.mark.parametrize(("board", "release"), [("virt", "6.12"), ("virt", "6.1"), ("pc", "6.12")])
def test_debians(board: str, release: str, suites: dict[str, Path], tmp_path: Path) -> None:
    """With all counters: the board's."""
    script = "mount -t tracefs tracefs /sys/kernel/tracing\nmount -t tmpfs tmpfs /tmp\n/suite --all\n"
    files = [program("suite", suites[BOARD_ISAS[board]].read_bytes())]
    lines = Board(board, release=KERNELS[release], cpus=CPUS).run(script, tmp_path, files)
    check(verdicts(lines), of_linux(release))
