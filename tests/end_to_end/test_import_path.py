"""The tool imports what is installed: nothing from a guest's directory, nor from other programs' PYTHONPATH."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import DIRECTORY

GOOD = str(DIRECTORY / "loop_1k" / "x86_64.elf")
# What Python itself imports before any module of ours, as far as it takes it from such directories. docs/commands.md
BEFORE_US = frozenset(
    (
        *("__future__", "collections", "contextlib", "copyreg", "encodings", "enum", "functools", "importlib"),
        *("keyword", "operator", "re", "reprlib", "types", "warnings"),
    )
)
PACKAGES = ("capstone", "elftools", "emulator", "perfcore", "pmu", "unicorn", "usercustomize")


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A directory with a module of every name."""
    names = {name for name in sys.stdlib_module_names if not name.startswith("_")} - BEFORE_US
    for name in (*names, *PACKAGES):
        (tmp_path / f"{name}.py").write_text("import os\nos._exit(66)\n")
    return tmp_path


def test_a_python_path_of_other_programs(evil: Path) -> None:
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{evil}:/nonexistent"}
    done = subprocess.run([PERFEMU, "stat", "--core", "ideal", GOOD], cwd="/", env=environment, capture_output=True)
    assert done.returncode == 0, done
    assert b"2,004" in done.stderr


def test_a_directory_in_which_guests_write(evil: Path) -> None:
    for command in ([PERFEMU], [sys.executable, "-m", "perfemu"]):
        done = subprocess.run(
            [*command, "record", "-q", "--core", "ideal", GOOD], cwd=evil, env=ENVIRONMENT, capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_report_does_not_load_the_machine() -> None:
    """Its start-up time is counted in milliseconds; the machine's libraries take tens of them."""
    code = "import sys, perfemu.cli.main, perfemu.cli.report; sys.exit('emulator' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd="/", env=ENVIRONMENT, check=False).returncode == 0
