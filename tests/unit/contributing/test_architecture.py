"""ARCHITECTURE.md is true: what it names exists, and the ways of two samples are those that it tells."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest

import perfemu
import require
from guests import guest

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
_FILE_OR_NAME = re.compile(r"`([\w/]+\.(?:py|cpp|hpp))`|`([A-Z_]\w*(?:\.|::)\w+)`")


@dataclass(frozen=True)
class Walk:
    """A section of the text, the recording that it is about, and what ends the way in it."""

    section: str
    end: str
    event: str
    program: str
    core: str

    def steps(self) -> list[tuple[str, str]]:
        """(file, name), in the order of the text. A name belongs to the file that was named last."""
        text = TEXT.partition(self.section)[2].partition(self.end)[0]
        found = []
        file = ""
        for match in _FILE_OR_NAME.finditer(text):
            file = match[1] or file
            if match[2]:
                found.append((file, match[2]))
        return found

    def native(self) -> list[tuple[str, str]]:
        return [(file, name) for file, name in self.steps() if "::" in name]

    def python(self) -> list[tuple[str, str]]:
        return [(file, name) for file, name in self.steps() if "." in name and name != "Machine.run_to_the_end"]

    def command(self, output: Path) -> list[str]:
        program = str(guest(self.program, "aarch64").path)
        return ["record", "-e", self.event, "-c", "1000", "--core", self.core, "-o", str(output), program]


# 2,004 instructions, and about 1,100 misses: a sample every 1,000.
COUNTED = Walk(
    "## One retired instruction, to a byte on disk", "Counting ends at step 2", "instructions", "loop_1k", "ideal"
)
MODELLED = Walk(
    "## One cache miss of the default core", "## Adding things", "cache-misses", "scan_and_reuse", "neoverse-n1"
)
WALKS = pytest.mark.parametrize("walk", [COUNTED, MODELLED], ids=lambda walk: walk.core)


def test_every_file_that_is_named_exists() -> None:
    for file in re.findall(r"`([a-z_]+/[\w/]+\.(?:py|cpp|hpp|pyi|md|toml))", TEXT):
        assert (ROOT / file).is_file(), file


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_folder_of_tests_is_in_the_table(page: str) -> None:
    """Of those with tests in them."""
    folders = {file.relative_to(ROOT).parts[1] for file in (ROOT / "tests").glob("*/**/test_*.py")}
    rows = re.findall(r"^\| `tests/(\w+)/` \|", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(folders) >= 10
    assert folders <= set(rows) <= {path.name for path in (ROOT / "tests").iterdir()}


@WALKS
def test_the_native_half_has_these_functions(walk: Walk) -> None:
    assert len(walk.native()) >= 8
    for file, name in walk.native():
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^\S.*\b{re.escape(name)}\(", source, re.MULTILINE), f"{file}: {name}"


@WALKS
def test_the_native_half_calls_them_in_this_order(walk: Walk, tmp_path: Path) -> None:
    """A debugger stops at the first call of each that comes behind the one before; what is inlined has no such call."""
    gdb = require.command("gdb", package="gdb")
    names = [name for _, name in walk.native() if name != "Core::run"]  # which is told to return
    script = ["set breakpoint pending on", "set debuginfod enabled off"]
    for number, name in enumerate(names):
        script += [f"tbreak {name}", "continue" if number else "run"]
    (tmp_path / "walk.gdb").write_text("\n".join([*script, "kill"]) + "\n", encoding="utf-8")
    done = subprocess.run(
        [gdb, "-nx", "-q", "-batch", "-x", tmp_path / "walk.gdb", "--args", sys.executable, "-m", "perfemu"]
        + walk.command(tmp_path / "perf.data"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    stop = r"^Temporary breakpoint [\d.]+, 0x\w+ in (?:void )?(?:\w+::)*(\w+::\w+)(?:<\w+>)?\("  # of a template, too
    stops = re.findall(stop, done.stdout, re.MULTILINE)
    assert stops == names, done.stdout


@WALKS
def test_a_sample_takes_the_way_that_is_told(walk: Walk, tmp_path: Path) -> None:
    """The calls of the last overflow and of what follows, in this order: the same, whatever counted."""
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        perfemu.record(
            perfemu.Guest([guest(walk.program, "aarch64").path], core=walk.core),
            [walk.event],
            period=1000,
            output=tmp_path / "perf.data",
        )
    finally:
        sys.setprofile(None)
    first = next(i for i, (_, name) in enumerate(calls) if name == "Kernel.handle_overflow")
    told = COUNTED.python()
    assert len(told) >= 12
    position = first
    for file, name in told:
        later = (i for i in range(position, len(calls)) if calls[i] == (str(ROOT / file), name))
        position = next(later, -1)
        assert position >= 0, f"{file}: {name} is not called in this order"


def test_files_of_the_tool_and_of_perfcore_are_one_noun_each() -> None:
    """A screenful of headings is where nouns hide. Tables may be long."""
    tables = {"perfemu/tracing/structures.py"}
    longer = {
        str(path.relative_to(ROOT))
        for room in ("perfemu", "perfcore", "pmu")
        for path in (ROOT / room).rglob("*.py")
        if len(path.read_text(encoding="utf-8").splitlines()) > 420
    }
    assert longer == tables
