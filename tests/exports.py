"""Recordings for the tests of `perfemu report --format` and its readers, and what report itself says of them."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import perfemu
from guests import guest
from perfemu.cli.main import main

EVENTS = ("instructions", "branches")


def sampled(directory: Path, isa: str, events: Sequence[str] = EVENTS) -> Path:
    """Call chains of a quicksort, which is recursive."""
    output = directory / "sampled.data"
    argv = [guest("sort", isa).path, "5000"]
    perfemu.record(perfemu.Guest(argv, core="ideal"), events, period=1009, callchains=True, output=output, capture=True)
    return output


def exact(directory: Path, isa: str, program: str = "sort", *arguments: str) -> Path:
    """How often each instruction made each event."""
    output = directory / "exact.data"
    argv = [guest(program, isa).path, *arguments]
    perfemu.record(perfemu.Guest(argv, core="ideal"), EVENTS, exact=True, output=output, capture=True)
    return output


def weights(path: Path, *, children: bool = False) -> dict[str, Counter[str]]:
    """Event -> function -> its period, by perfemu.report; with `children`, with that of what it called."""
    report = perfemu.report(path, sort=["symbol"], children=children)
    found = {event.name: Counter[str]() for event in report.events}
    for event in report.events:
        for row in event:
            found[event.name][row.symbol] += row.children_period if children else row.period
    return {name: +counter for name, counter in found.items()}


def exported(monkeypatch: pytest.MonkeyPatch, path: Path, style: str, *options: str) -> bytes:
    """What `report --format` writes on standard output."""
    binary = io.BytesIO()
    text = io.TextIOWrapper(binary, encoding="utf-8", errors="surrogateescape", write_through=True)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", text)
        assert main(["report", "-i", str(path), "--format", style, *options]) == 0
    return binary.getvalue()
