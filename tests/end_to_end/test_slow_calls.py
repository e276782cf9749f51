"""However long a single call takes, or code that changes: the user's signal and the limits come through soon."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.command import ENOUGH_S, killed_by, perfemu, start

SOURCE = Path(__file__).with_name("slow_calls.c")
NAMES = (
    "reads", "reads_vectors", "writes", "draws", "sends", "copies", "copies_memory", "populates", "changes_itself",
    "changes_its_page",
)  # fmt: skip
AFTER_S = 0.3  # from the first call's begin: amid one


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, "x86_64", tmp_path_factory.mktemp("slow") / "calls", "-w")


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_a_signal_comes_through(number: int, guest: Path, tmp_path: Path) -> None:
    process = start(["run", guest, str(number)], tmp_path)
    assert process.stderr is not None
    assert process.stderr.readline() == b"begun\n"
    time.sleep(AFTER_S)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=300)
    finally:
        process.kill()
    assert time.monotonic() - begun < ENOUGH_S
    assert killed_by(process.returncode) == signal.SIGINT


@pytest.mark.parametrize("number", [NAMES.index(name) for name in ("reads_vectors", "copies", "draws")])
def test_simulated_time_goes_on_within_a_call(number: int, guest: Path, tmp_path: Path) -> None:
    """8 bytes a cycle: 5 ms of the ideal core are 40 MB, which is a part of the first call."""
    done = perfemu("run", "--timeout", "0.005", guest, str(number), cwd=tmp_path)
    assert done.returncode == 124
    assert done.stderr.decode() == f"begun\n{guest}: stopped: 0.005 s of simulated time are over (--timeout)\n"
