"""Random system calls under perfemu trace: whatever an argument is, it is shown, and being watched changes nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fuzz.campaign import ISAS
from fuzz.run import make_directory, make_program
from perfemu.session import Session
from perfemu.tracing.selection import Selection
from perfemu.tracing.summary import Summary
from perfemu.tracing.tracer import Style, Tracer

SEEDS = range(1000, 1012)


def run(isa: str, seed: int, root: Path, lines: list[str] | None) -> tuple[int, int, int]:
    """Status, instructions and nanoseconds of a program; with `lines` it is traced."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    inside = make_directory(root)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        session = Session(make_program(isa, seed, inside, null))
        kernel = session.machine.kernel
        kernel.messages = lambda message: None
        if lines is not None:
            style = Style(names_files=True, durations=True, numbers=True, longest=100)
            first = session.program.path, tuple(session.program.argv), 4
            tracer = Tracer(kernel, lines.append, Selection(), style, first, summary=Summary())
            tracer.listen(kernel.tracepoints)
        ending = session.run()
        if lines is not None:
            tracer.finish()
        return ending.wait_status, session.instructions(), kernel.clock.elapsed_ns()
    finally:
        os.close(null)


@pytest.mark.parametrize("isa", ISAS)
def test_random_calls_are_shown_and_do_not_notice(isa: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        lines: list[str] = []
        assert run(isa, seed, tmp_path / "r", lines) == run(isa, seed, tmp_path / "r", None), seed
        text = "".join(lines)
        assert text.replace("\n", "").isprintable(), seed
        assert text.endswith("\n")
        assert text.count("resumed>") <= text.count("<unfinished ...>"), seed
