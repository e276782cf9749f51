"""Where a machine's memory lies in the host's: guests never see it, but the engine's speed depends on it."""

from __future__ import annotations

import subprocess
import sys

# Prints where the engine's library and its translations begin, in a process of its own.
SOURCE = """
from emulator.machine import Machine, MachineConfig
machines = [Machine(MachineConfig("aarch64")) for _ in range(4)]
for line in open("/proc/self/maps"):
    place, rights, *_, name = line.split()
    if "libunicorn" in name or "w" in rights and "x" in rights:
        print(int(place.split("-")[0], 16))
"""


def test_translations_lie_next_to_the_libraries_that_they_call() -> None:
    done = subprocess.run([sys.executable, "-c", SOURCE], capture_output=True, text=True, check=True)
    starts = [int(line) for line in done.stdout.split()]
    assert len(starts) > 4
    assert max(starts) - min(starts) < 1 << 31  # as far as a direct call goes
