"""Guests of these tests that are written in C: built for both ISAs, static, with the compilers of Debian."""

from __future__ import annotations

import subprocess
from pathlib import Path

import require

SOURCES = Path(__file__).parent
COMPILERS = {"x86_64": ("gcc", "gcc"), "aarch64": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")}  # and packages


def build(name: str, isa: str, directory: Path) -> Path:
    """`name`.c as a program in `directory`."""
    compiler, package = COMPILERS[isa]
    path = directory / name
    command = [require.command(compiler, package), "-O1", "-static", "-pthread", SOURCES / f"{name}.c", "-o", path]
    subprocess.run(command, check=True)
    return path
