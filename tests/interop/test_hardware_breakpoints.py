"""Debian's kernel on the board uses the debug registers: perf events of type breakpoint, and ptrace's single steps."""

from __future__ import annotations

from pathlib import Path

import c_programs
from perfemu.initramfs import program
from tests.on_a_board import Board

SOURCE = Path(__file__).with_name("watched.c")


def test_debians_kernel_counts_each_access_and_each_call(tmp_path: Path) -> None:
    """Ten each, as the loops say; behind the BRK three instructions."""
    built = c_programs.build(SOURCE, "aarch64", tmp_path / "watched")
    lines = Board().run("/watched\n", tmp_path, [program("watched", built.read_bytes())])
    assert lines == ["stores: 10", "loads: 10", "calls: 10", "steps: 3"]
