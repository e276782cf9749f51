"""The tasks in docs/tasks are done as they say: files are written, commands typed, and they print what is shown.

Numbers may be others than on the page, for compilers differ: of each shown line the words and signs must be printed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import require
from guests import DIRECTORY

PAGES = sorted((DIRECTORY.parent / "docs" / "tasks").glob("*.md"))
TOOLS = {  # and their packages
    "g++": "g++",
    "gcc": "gcc",
    "go": "golang-go",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
}
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d[\d,.]*%?")
_STATUS = re.compile(r"\[status (\d+)\]")


def steps(console: str) -> list[tuple[str, list[str], int]]:
    """(command, lines that it is shown to print, its exit status)."""
    found: list[tuple[str, list[str], int]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], [], 0))
        elif status := _STATUS.fullmatch(line):
            found[-1] = (*found[-1][:2], int(status[1]))
        else:
            found[-1][1].append(line)
    return found


def words(line: str) -> list[str]:
    """A line without its numbers."""
    return _NUMBER.sub("#", line).split()


def do(command: str, directory: Path) -> tuple[str, int]:
    tool = command.split()[0]
    if tool in TOOLS:
        require.command(tool, package=TOOLS[tool])
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {"PATH": path, "HOME": str(directory), "GOFLAGS": "-mod=mod", "GO111MODULE": "off", "LANG": "C.UTF-8"}
    done = subprocess.run(
        command, shell=True, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    return done.stdout, done.returncode


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_task_is_done_as_its_page_says(page: Path, tmp_path: Path) -> None:
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    assert any(kind == "console" for kind, _, _ in blocks)
    for kind, name, text in blocks:
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
        if kind != "console":
            continue
        for command, shown, status in steps(text):
            printed, returned = do(command, tmp_path)
            assert returned == status, f"{command}\n{printed}"
            lines = iter([words(line) for line in printed.splitlines()])
            for line in filter(None, map(str.strip, shown)):
                assert any(words(line) == other for other in lines), f"{command}: no line {line!r} in\n{printed}"


def test_there_are_six() -> None:
    assert len(PAGES) == 6
