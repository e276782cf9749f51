"""One random sequence of accesses to a board's devices, in a process of its own."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fuzz.child import in_child, peak_bytes, resident_bytes
from fuzz.devices.devices import Devices
from fuzz.host_watch import HostWatch, tree
from fuzz.run import make_directory

BASE = Path(tempfile.gettempdir())
ACTS = 400
DISK_BYTES = 64 << 10
MOST_HOST_BYTES = 150 << 20
MOST_ACT_SECONDS = 1.0  # of CPU time


@dataclass(slots=True)
class DevicesOutcome:
    problem: str = ""
    acts: int = 0
    answers: int = 0  # notifications after which no driver must reset its device, and calls that did not fail
    messages: int = 0
    digest: str = ""  # of memory, output and what was told
    host_bytes: int = 0
    slowest_seconds: float = 0.0
    seconds: float = 0.0


def run_seed(seed: int, base: Path = BASE) -> DevicesOutcome:
    root = base / f"fuzz-devices-{seed:08}"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    try:
        share = make_directory(root)
        inside = root / "all"
        inside.mkdir()
        share.rename(inside / "share")
        for path in (inside, *inside.rglob("*")):  # the guest sees when the host's user has changed them
            os.utime(path, (0, 0), follow_symlinks=False)
        before = tree(root / "outside")
        outcome = in_child(DevicesOutcome, lambda outcome: _observe(seed, inside, outcome))
        if not outcome.problem and tree(root / "outside") != before:
            outcome.problem = "files have changed outside of where the guest may write"
        return outcome
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _observe(seed: int, inside: Path, outcome: DevicesOutcome) -> str:
    for number in range(2):
        (inside / f"disk{number}").write_bytes(bytes(DISK_BYTES))
    devices = Devices(seed, inside)
    watch = HostWatch(str(inside))
    watch.begin()
    before = resident_bytes()
    for outcome.acts in range(1, ACTS + 1):
        start = time.process_time()
        act = devices.random.choice(devices.acts)
        act()
        seconds = time.process_time() - start
        outcome.slowest_seconds = max(outcome.slowest_seconds, seconds)
        if seconds > MOST_ACT_SECONDS:
            return f"act {outcome.acts}, {act.__name__}, took {seconds:.1f} s"
    outcome.answers, outcome.messages = devices.answers, len(devices.said)
    outcome.host_bytes = peak_bytes() - before
    memory = devices.hardware.memory
    digest = hashlib.sha256(memory.view(0, memory.size_bytes >> 12))
    digest.update(repr((devices.answers, devices.said)).encode() + devices.output)
    outcome.digest = digest.hexdigest()
    if watch.touched:
        return f"the host was touched: {watch.touched}"
    if any("\n" in line for line in devices.said):
        return f"a message of more than one line: {devices.said}"
    if outcome.host_bytes > MOST_HOST_BYTES:
        return f"{outcome.host_bytes >> 20} MiB of the host's memory"
    return ""
