"""Are the bytes right, and the same every time? `make golden` rewrites the files beside this one; read the diff.

The guest programs lie in a directory whose name has always the same length, and is replaced in what is compared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from guests import guests

HERE = Path(__file__).parent
PREFIX = "perfemu-golden-"
NAMED = b"/" + PREFIX.encode() + b"00000000"  # as mkdtemp's names
COMMANDS: dict[str, list[str]] = tomllib.loads((HERE / "commands.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """Where the commands run, with the guest programs in it."""
    path = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))
    for guest in guests():
        shutil.copy(guest.path, path / f"{guest.name}.{guest.isa}")
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("name", COMMANDS)
def test_output_is_as_it_was(name: str, directory: Path) -> None:
    (directory / "perf.data").unlink(missing_ok=True)
    if COMMANDS[name][0] == "report":
        run(directory, COMMANDS[name.replace("report", "record")])
    output = run(directory, COMMANDS[name]).replace(f"/{directory.name}".encode(), NAMED)
    text = output.decode()
    if COMMANDS[name][0] == "record":
        data = (directory / "perf.data").read_bytes().replace(f"/{directory.name}".encode(), NAMED)
        text += "\nperf.data:\n" + hexadecimal(data)
    golden = HERE / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert golden.exists(), f"{golden.name} is missing: make golden writes it"
    assert text == golden.read_text(encoding="utf-8")


def run(directory: Path, arguments: list[str]) -> bytes:
    """The command's stdout and stderr, with its exit status."""
    command = [sys.executable, "-m", "perfemu", *arguments]
    done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return f"$ perfemu {' '.join(arguments)}\n".encode() + done.stdout + f"exit status {done.returncode}\n".encode()


def hexadecimal(data: bytes) -> str:
    """Offset, 16 bytes, their characters; as `hexdump -C`, with equal lines left out."""
    lines = []
    previous = None
    for offset in range(0, len(data), 16):
        chunk = data[offset : offset + 16]
        if chunk == previous:
            if lines[-1] != "*":
                lines.append("*")
            continue
        previous = chunk
        characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in chunk)
        lines.append(f"{offset:06x}  {chunk.hex(' ', 8):<33}  |{characters}|")
    return "\n".join([*lines, f"{len(data):06x}"]) + "\n"
