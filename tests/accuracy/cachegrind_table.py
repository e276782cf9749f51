"""The table of docs/accuracy.md: every program's misses here and under cachegrind.

usage: PYTHONPATH=tests python -m tests.accuracy.cachegrind_table
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.accuracy import cachegrind
from tests.accuracy import cachegrind_programs as programs
from tests.accuracy.cachegrind import MIDDLE, MISSES, SMALL, USUAL, Geometry

PROGRAMS = (
    *((programs.of_ours, name) for name in programs.OURS),
    *((programs.with_library, name) for name in programs.LIBRARIES),
    *((programs.of_busybox, name) for name in programs.BUSYBOX),
)


LONG = tuple((programs.long_with_library, name) for name in programs.LONG_SIZES)


def main() -> None:
    for geometry, runs in ((USUAL, PROGRAMS), (SMALL, PROGRAMS), (MIDDLE, LONG)):
        print(f"`{' '.join(geometry.options)}`\n")
        print(f"| program | {' | '.join(('Dr', 'Dw', *MISSES))} | farthest |")
        print("|---" * (len(MISSES) + 4) + "|")
        for make, name in runs:
            with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
                run = make(name, Path(folder))
                shown = f"busybox {name}" if make is programs.of_busybox else name
                print(row(shown, run, geometry, Path(folder), monkeypatch), flush=True)
        print()


def row(name: str, run: cachegrind.Run, geometry: Geometry, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Cachegrind's figure, and how much more ours is where it differs."""
    _, theirs = cachegrind.theirs(run, geometry)
    ours = cachegrind.ours(run, geometry, folder, monkeypatch)
    found = ours.references | ours.misses
    cells = []
    for event, count in found.items():
        cells.append(f"{theirs[event]:,}" + (f" {count - theirs[event]:+,}" if count != theirs[event] else ""))
    farthest = max(abs(count - theirs[event]) / max(theirs[event], 1) for event, count in found.items())
    return f"| {name} | {' | '.join(cells)} | {farthest:.3%} |"


if __name__ == "__main__":
    main()
