"""Programs that take whatever they can get: each ends, with an errno or a word, and the host does not feel it."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from c_programs import build
from end_to_end.command import ENVIRONMENT, PERFEMU
from guests import ISAS

SOURCE = Path(__file__).with_name("bombs.c")
MEMORY_MEGABYTES = 64
MOST_HOST_MEGABYTES = 350  # the emulator's own 45, the machine's memory, what is kept of files, descriptors, tables
TASKS = 32
CPU_SECONDS = 60
# Runs argv[2:] and writes its largest resident size, in KiB, into the file argv[1]. A process inherits that of what it
# is forked from, so this one is small.
MEASURING = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[2:], check=False)
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(done.returncode % 256)
"""


@dataclass(frozen=True)
class End:
    """What becomes of one."""

    text: str  # in what it prints, or perfemu says
    status: int = 0
    timeout: float = 0.02  # simulated seconds


USED_UP = End("killed: the machine's 64 MiB of memory are used up", 137)
KEPT = End("ENOSPC|ENOBUFS|ENOMEM", timeout=1)  # files, and what is in pipes and sockets
NO_MORE_TASKS = rf"no task more than {TASKS} \(--max-tasks\): EAGAIN"
STOPPED = End(r"stopped: 0\.002 s of simulated time are over \(--timeout\)", 124, 0.002)
BOMBS = {
    "memory": USED_UP,
    "shared": USED_UP,
    "zeros": USED_UP,
    "heap": USED_UP,
    "forked_memory": End("children|used up", -1),
    "mappings": End(r"mappings: 655\d\d: ENOMEM"),
    "stack": End("Segmentation fault|used up", -1),
    "forks": End(NO_MORE_TASKS, 124, 0.002),
    "threads": End(rf"threads: {TASKS - 1}: EAGAIN"),
    "children": End(rf"children: {TASKS - 1}: EAGAIN"),
    "descriptors": End("descriptors: 65533: ENFILE"),
    "duplicates": End("descriptors: 65533: ENFILE"),
    "polls": End("instances: 65532: ENFILE"),
    "timers": End("timers: 31192: EAGAIN"),
    "queued_signals": End("signals: 31192: EAGAIN"),
    "locks": End("locks: 2048: ENOLCK"),
    "files": KEPT,
    "holes": KEPT,
    "names": KEPT,
    "links": KEPT,
    "pipes": KEPT,
    "streams": KEPT,
    "passed_descriptors": KEPT,
    "datagrams": STOPPED,
    "empty_datagrams": STOPPED,
    "fast_timers": STOPPED,
    "alarms": STOPPED,
    "programs": STOPPED,
    "calls": STOPPED,
    "paths": STOPPED,
    "code": End("stopped: ", 124, 0.005),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {isa: build(SOURCE, isa, tmp_path_factory.mktemp(isa) / "bombs") for isa in ISAS}


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


@pytest.mark.parametrize(("name", "isa"), [(name, ISAS[number % 2]) for number, name in enumerate(BOMBS)])
def test_a_bomb_comes_to_an_end(name: str, isa: str, built: dict[str, Path], tmp_path: Path) -> None:
    end = BOMBS[name]
    directory, size = tmp_path / "guest", tmp_path / "size"
    directory.mkdir()
    command = [PERFEMU, "run", "--core", "ideal", "--memory", f"{MEMORY_MEGABYTES}M", "--max-tasks", str(TASKS)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURING, size, *command, "--timeout", str(end.timeout), built[isa], name],
        cwd=directory, env=ENVIRONMENT, preexec_fn=_limits, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    said = done.stdout.decode()
    assert re.search(end.text, said), said[-2000:]
    assert "bug" not in said
    assert end.status in (-1, done.returncode)
    assert 20 < int(size.read_text()) >> 10 < MOST_HOST_MEGABYTES
    assert said.count("\n") <= 1002  # every message once, and no more than a thousand
    assert list(directory.iterdir()) == []
