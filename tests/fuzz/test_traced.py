"""Random system calls under perfemu trace: whatever an argument is, it is shown, and being watched changes nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fuzz.campaign import ISAS
from fuzz.program import RandomProgram
from fuzz.run import CALLS, MOST_INSTRUCTIONS, MOST_NS, MOST_TASKS, Machine, make_directory
from perfemu.session import GuestSettings, Session
from perfemu.tracing.selection import Selection
from perfemu.tracing.summary import Summary
from perfemu.tracing.tracer import Style, Tracer

SEEDS = range(1000, 1012)


def run(isa: str, seed: int, root: Path, lines: list[str] | None) -> tuple[int, int, int]:
    """Status, instructions and nanoseconds of a program; with `lines` it is traced."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    inside = make_directory(root)
    path = inside / "program"
    path.write_bytes(RandomProgram(isa, seed, CALLS, str(inside), str(path)).elf())
    path.chmod(0o755)
    machine = Machine.of(isa, seed)
    null = os.open(os.devnull, os.O_RDWR)
    settings = GuestSettings(
        (str(path),), core=machine.core, cwd=str(inside), stdin=null, stdout=null, stderr=null,
        cpus=machine.cpus, quantum=machine.quantum, schedule_seed=machine.schedule_seed,
        memory_bytes=64 << 20, most_tasks=MOST_TASKS, most_instructions=MOST_INSTRUCTIONS, most_ns=MOST_NS,
    )  # fmt: skip
    try:
        session = Session(settings)
        kernel = session.machine.kernel
        kernel.messages = lambda message: None
        if lines is not None:
            style = Style(names_files=True, durations=True, numbers=True, longest=100)
            first = session.program.path, tuple(session.program.argv), 4
            tracer = Tracer(kernel, lines.append, Selection(), style, first, summary=Summary())
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
        assert text.isprintable() or set(text) - {"\n"} == {char for char in text if char.isprintable()}, seed
        assert text.endswith("\n")
        assert "resumed>" not in text or "<unfinished ...>" in text
