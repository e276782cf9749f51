"""ARCHITECTURE.md is true: what it names exists, and the way of a sample is the one that it tells."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import perfemu
from guests import guest

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SECTION = "## One retired instruction, to a byte on disk"
WAY = TEXT.partition(SECTION)[2].partition("Counting ends at step 2")[0]
_FILE_OR_NAME = re.compile(r"`([\w/]+\.(?:py|cpp))`|`([A-Z_]\w*(?:\.|::)\w+)`")


def steps() -> list[tuple[str, str]]:
    """(file, name), in the order of the text. A name belongs to the file that was named last."""
    found = []
    file = ""
    for match in _FILE_OR_NAME.finditer(WAY):
        file = match[1] or file
        if match[2]:
            found.append((file, match[2]))
    return found


def test_every_file_that_is_named_exists() -> None:
    for file in re.findall(r"`([a-z_]+/[\w/]+\.(?:py|cpp|hpp|pyi|md|toml))", TEXT):
        assert (ROOT / file).is_file(), file


def test_the_native_half_has_these_functions() -> None:
    native = [(file, name) for file, name in steps() if "::" in name]
    assert len(native) >= 8
    for file, name in native:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^\S.*\b{re.escape(name)}\(", source, re.MULTILINE), f"{file}: {name}"


def test_a_sample_takes_the_way_that_is_told(tmp_path: Path) -> None:
    """2,004 instructions, a sample every 1,000: the calls of the last overflow and of what follows, in this order."""
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        perfemu.record(
            [guest("loop_1k", "aarch64").path],
            ["instructions"],
            period=1000,
            output=tmp_path / "perf.data",
            core="ideal",
        )
    finally:
        sys.setprofile(None)
    first = next(i for i, (_, name) in enumerate(calls) if name == "Kernel.handle_overflow")
    told = [(file, name) for file, name in steps() if "." in name and name != "Machine.run_to_the_end"]
    assert len(told) >= 12
    position = first
    for file, name in told:
        later = (i for i in range(position, len(calls)) if calls[i] == (str(ROOT / file), name))
        position = next(later, -1)
        assert position >= 0, f"{file}: {name} is not called in this order"
