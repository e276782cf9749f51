"""How many events a guest may have open: what they take of the host is in proportion to the machine's memory."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

from c_programs import build
from end_to_end.command import ENVIRONMENT, PERFEMU

SOURCE = Path(__file__).with_name("many_events.c")
MANY_CHILDREN = Path(__file__).with_name("many_children.c")


def test_there_is_an_event_for_each_8_kib_of_memory(tmp_path: Path) -> None:
    guest = build(SOURCE, "x86_64", tmp_path / "guest", "-w")
    done = subprocess.run(
        [PERFEMU, "run", "--core", "ideal", "--memory", "16M", guest],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"{(16 << 20) // 8192}, then errno {errno.ENOMEM}", "1"]


def test_what_is_inherited_counts_and_a_fork_fails_with_enomem(tmp_path: Path) -> None:
    """16 MiB are room for 2048 events. 100 and 19 children's are 2000, and another child's would be 2100.
    With 200 there is room for 1848 of threads, 9 times 200; and then for no child."""
    guest = build(MANY_CHILDREN, "x86_64", tmp_path / "guest", "-w")
    done = subprocess.run(
        [PERFEMU, "run", "--core", "ideal", "--memory", "16M", guest],
        capture_output=True, text=True, check=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "100 events",
        f"19 children, then errno {errno.ENOMEM}",
        f"19 children, then errno {errno.ENOMEM}",
        "100 events of threads",
        f"9 threads, then error {errno.EAGAIN}",  # pthread_create(3) says so for all that the kernel lacks
        f"0 children, then errno {errno.ENOMEM}",
    ]
