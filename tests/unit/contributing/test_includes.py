"""ARCHITECTURE.md says which folders of emulator/native each may include: what they do include, and in no circle."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
NATIVE = ROOT / "emulator" / "native"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)/` \|([^|]*)\|[^|]*\|$", re.MULTILINE)
GENERATED = {"probes.hpp", "op_classes.hpp"}


class Include(NamedTuple):
    file: str
    header: str

    @property
    def folders(self) -> tuple[str, str]:
        return _folder(self.file), _folder(self.header)


def _folder(path: str) -> str:
    """Of a path in emulator/native; "" for what lies in no folder, which knows nobody and which all may know."""
    return path.rpartition("/")[0]


def _includes() -> Iterator[Include]:
    for path in sorted(NATIVE.rglob("*.[ch]pp")):
        for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
            yield Include(str(path.relative_to(NATIVE)), header)


def _table() -> dict[str, set[str]]:
    """By folder: which it may include."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return {folder: set(re.findall(r"`(\w+)`", known)) for folder, known in ROW.findall(text)}


def test_headers_are_named_from_the_top_folder() -> None:
    missing = [each for each in _includes() if each.header not in GENERATED and not (NATIVE / each.header).is_file()]
    assert missing == []


def test_a_folder_includes_only_what_the_table_says() -> None:
    table = _table()
    assert set(table) == {path.parent.name for path in NATIVE.glob("*/*.hpp")}
    strays = [
        f"{each.file} includes {each.header}: ARCHITECTURE.md does not let {own}/ know {other or 'the top folder'}/"
        for each in _includes()
        for own, other in [each.folders]
        if own != other and other and other not in table.get(own, ())
    ]
    assert strays == []


def test_the_table_has_no_circle_and_says_nothing_in_vain() -> None:
    table = _table()
    assert len(table) > 10
    TopologicalSorter(table).prepare()  # CycleError shows a circle
    used = {each.folders for each in _includes()}
    assert [(own, other) for own, others in table.items() for other in others if (own, other) not in used] == []
