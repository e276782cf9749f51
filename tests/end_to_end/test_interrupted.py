"""A signal to perfemu ends it at once, with the right status, and what has been recorded can be read."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

import require
from end_to_end.assembled import LONG_REP, SPIN, program
from end_to_end.command import ENOUGH_S, PERFEMU, killed_by, perfemu, start, wait_for_guest

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(process: subprocess.Popen[bytes], number: int, echoes: bool) -> tuple[float, bytes]:
    """Seconds until it ended, and its stderr."""
    wait_for_guest(process, echoes)
    begun = time.monotonic()
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=300)
    finally:
        process.kill()  # if it would go on for ever
    return time.monotonic() - begun, err


def guests(directory: Path) -> dict[str, list[str | Path]]:
    return {
        "x86_64 loop": [program(directory / "spin-x86", "x86_64", SPIN["x86_64"])],
        "aarch64 loop": [program(directory / "spin-arm", "aarch64", SPIN["aarch64"])],
        "long rep": [program(directory / "rep", "x86_64", LONG_REP)],
        "read": [require.command("cat", package="coreutils")],
    }


@pytest.mark.parametrize("guest", ["x86_64 loop", "aarch64 loop", "long rep", "read"])
def test_run_and_stat(guest: str, tmp_path: Path) -> None:
    argv = guests(tmp_path)[guest]
    for command, number in (("run", signal.SIGINT), ("stat", signal.SIGTERM)):
        process = start([command, *argv], tmp_path)
        seconds, err = interrupt(process, number, guest == "read")
        assert killed_by(process.returncode) == number
        assert seconds < ENOUGH_S, command
        assert b"Traceback" not in err
        assert (b"instructions:u" in err) == (command == "stat")


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("guest", ["x86_64 loop", "read"])
def test_record(guest: str, number: signal.Signals, tmp_path: Path) -> None:
    argv = guests(tmp_path)[guest]
    data = tmp_path / "data"
    process = start(["record", "-c", "100000", "-o", data, *argv], tmp_path)
    seconds, err = interrupt(process, number, guest == "read")
    assert killed_by(process.returncode) == number
    assert seconds < ENOUGH_S  # the file is completed, too
    assert b"Captured and wrote" in err
    report = perfemu("report", "-i", data)
    assert (report.returncode, report.stderr) == (0, b"")
    assert b"Samples" in report.stdout
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("data")) == ["data"]


def test_nohup_is_obeyed(tmp_path: Path) -> None:
    argv = guests(tmp_path)["read"]
    process = start(["run", *argv], tmp_path, before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None)
    wait_for_guest(process, echoes=True)
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(b"still there\n", timeout=300)
    assert (process.returncode, out, err) == (0, b"still there\n", b"")


def test_a_guest_whose_reader_goes_away(tmp_path: Path) -> None:
    """The guest dies of SIGPIPE, and the recording is complete."""
    data = tmp_path / "data"
    yes = require.command("yes", package="coreutils")
    text = '"$0" record -o "$1" "$2" 2>/dev/null | head -1; echo ${PIPESTATUS[0]}'
    done = subprocess.run(["bash", "-c", text, PERFEMU, data, yes], capture_output=True, timeout=300, check=False)
    assert done.stdout == b"y\n141\n"
    assert perfemu("report", "-i", data).returncode == 0


def test_hours_of_sleep_pass_at_once(tmp_path: Path) -> None:
    sleep = require.command("sleep", package="coreutils")
    begun = time.monotonic()
    assert perfemu("run", sleep, "36000").returncode == 0
    assert time.monotonic() - begun < 60


def test_while_nothing_runs(tmp_path: Path) -> None:
    """Before the guest runs there is nothing to complete: perfemu just dies."""
    for delay in (0.0, 0.05, 0.1, 0.15):
        process = start(["list"], tmp_path)
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=300)
        assert process.returncode in (0, -signal.SIGTERM)
        assert err == b""
