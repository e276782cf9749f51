"""How a board's run ends that the guest does not end: by a signal to perfemu, and by the limit of what it prints."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from end_to_end.command import ENOUGH_S, killed_by, perfemu, start
from end_to_end.test_interrupted import interrupt
from unit.board.booted import START
from unit.board.pc.images import assembled
from unit.native.bare import assemble

SPIN = {"virt": "b .", "pc": "main: jmp .\n"}
PRINT = {  # for ever
    "virt": f"{START}mov w0, #'x'\n1: strb w0, [x20]\nb 1b\n",
    "pc": "main: mov $0x3f8, %edx\nmov $'x', %al\n1: out %al, (%dx)\njmp 1b\n",
}
BOARDS = tuple(SPIN)
LIMIT = 10_000


def image(board: str, sources: dict[str, str], folder: Path) -> Path:
    path = folder / "image"
    path.write_bytes(assembled(sources[board]) if board == "pc" else assemble("aarch64", sources[board], folder))
    return path


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["run", "stat", "record"])
def test_a_signal_ends_it_as_it_ends_perf(command: str, number: signal.Signals, board: str, tmp_path: Path) -> None:
    options = {"record": ["-o", tmp_path / "data", "-e", "instructions", "-c", "1000000"]}.get(command, [])
    process = start([command, *options, "--board", board, image(board, SPIN, tmp_path)], tmp_path)
    seconds, err = interrupt(process, number, echoes=False)
    assert (killed_by(process.returncode), seconds < ENOUGH_S) == (number, True)
    assert err.count(b"\n") == 0 if command == "run" else err
    if command == "stat":
        rows = [line.split() for line in err.decode().splitlines()]
        (counted,) = (row[0] for row in rows if row[1:2] == ["instructions"])
        assert int(counted.replace(",", "")) > 1_000_000
    if command == "record":
        report = perfemu("report", "-i", tmp_path / "data")
        assert (report.returncode, report.stderr, b"Samples" in report.stdout) == (0, b"", True)


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("command", ["run", "stat"])
def test_what_the_serial_port_prints_ends_at_the_limit_exactly(command: str, board: str, tmp_path: Path) -> None:
    options = ["--board", board, "--max-output", str(LIMIT), image(board, PRINT, tmp_path)]
    done = perfemu(command, *options)
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (124, b"x" * LIMIT)
    told = f"perfemu: the guest has written {LIMIT} bytes to the host, and may not write more (ENOSPC; --max-output)"
    assert said.splitlines()[:2] == [told, "perfemu: stopped: a limit is reached"]
    assert ("instructions" in said) == (command == "stat")  # what has been counted until then
