"""The documentation's examples on the command line print what they show, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from guests import DIRECTORY

ROOT = DIRECTORY.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_NOT_HERE = "arm64-root"  # an example that needs a foreign system


def sessions(page: Path) -> list[tuple[str, list[str]]]:
    """(command, lines that it is shown to print) of every ``    $ perfemu ...``."""
    found: list[tuple[str, list[str]]] = []
    open_session = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("    $ "):
            open_session = line.startswith("    $ perfemu ")
            if open_session:
                found.append((line.removeprefix("    $ "), []))
        elif open_session and line.startswith("    "):
            found[-1][1].append(line.removeprefix("    "))
        elif line.strip():
            open_session = False
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    """The lines that are shown, in this order; what is left out between them is left out."""
    (tmp_path / "guest_programs").symlink_to(DIRECTORY)
    for command, shown in sessions(page):
        if _NOT_HERE in command:
            continue
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}, check=True,
        )  # fmt: skip
        printed = iter([line.rstrip() for line in done.stdout.splitlines()])
        for line in filter(None, shown):
            assert any(line.rstrip() == other for other in printed), f"{command}: no line {line!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)  # [](...) is C++ in the others
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (page.parent / target).exists(), target


def test_there_are_examples() -> None:
    commands = [command for page in PAGES for command, _ in sessions(page)]
    assert len(commands) >= 4, commands
