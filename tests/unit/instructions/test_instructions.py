"""Each C file here prints what instructions of x86-64 do: as on this host's own processor."""

from __future__ import annotations

from pathlib import Path

import pytest

import processor
import same_as_linux

SOURCES = sorted(Path(__file__).parent.glob("*.c"), key=lambda source: source.name)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_instructions_do_what_the_processor_does(source: Path, tmp_path: Path) -> None:
    with processor.as_reference():
        expected = same_as_linux.native(source, tmp_path)
        assert len(expected) > 20
        printed, messages = same_as_linux.ours(source, tmp_path, "x86_64")
        assert printed == expected
        assert messages == []
