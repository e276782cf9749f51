"""C programs that tests run as guests: static, built for both ISAs with the compilers of Debian."""

from __future__ import annotations

import subprocess
from pathlib import Path

import require

COMPILERS = {"x86_64": ("gcc", "gcc"), "aarch64": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")}  # and packages
FLAGS = ("-O1", "-static", "-pthread")


def build(source: Path, isa: str, program: Path, *flags: str) -> Path:
    """Compile `source` into the file `program`."""
    command = require.command(*COMPILERS[isa])
    subprocess.run([command, *FLAGS, *flags, "-o", program, source, "-lm"], check=True)
    return program
