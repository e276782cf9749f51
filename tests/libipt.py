"""libipt's decoder of instructions, built from our source and Debian's library."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import require

SOURCE = Path(__file__).parent / "interop" / "intel_pt" / "libipt_instructions.c"


def build_decoder(folder: Path) -> Path:
    """TRACE [FILE OFFSET SIZE ADDRESS]..."""
    if os.uname().machine != "x86_64":
        require.missing("an x86-64 host is needed for Debian's libipt of amd64")
    tree = require.debian_tree("amd64", "libipt-dev")
    program = folder / "libipt_instructions"
    library = next(tree.glob("usr/lib/*/libipt.so"))
    compiler = require.command("gcc", package="gcc")
    words = [compiler, "-O1", f"-I{tree}/usr/include", SOURCE, library, f"-Wl,-rpath,{library.parent}", "-o", program]
    subprocess.run(words, check=True)
    return program


def instructions(decoder: Path, trace: bytes, code: Sequence[str | Path], folder: Path) -> tuple[list[int], list[str]]:
    """Their addresses, and what libipt says. `code`: FILE OFFSET SIZE ADDRESS of all that is executed."""
    file = folder / "trace"
    file.write_bytes(trace)
    done = subprocess.run([decoder, file, *code], capture_output=True, timeout=100, check=False)
    return [address for (address,) in struct.iter_unpack("<Q", done.stdout)], done.stderr.decode().splitlines()
