"""How many events a guest may have open: what they take of the host is in proportion to the machine's memory."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

from c_programs import build
from end_to_end.command import ENVIRONMENT, PERFEMU

SOURCE = Path(__file__).with_name("many_events.c")


def test_there_is_an_event_for_each_8_kib_of_memory(tmp_path: Path) -> None:
    guest = build(SOURCE, "x86_64", tmp_path / "guest", "-w")
    done = subprocess.run(
        [PERFEMU, "run", "--core", "ideal", "--memory", "16M", guest],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"{(16 << 20) // 8192}, then errno {errno.ENOMEM}", "1"]
