"""Where a machine's memory lies in the host's: guests never see it, but the engine's speed depends on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from guests import ISAS

# Prints where the engine's libraries and its translations begin, and what a program took.
SOURCE = """
import sys
import perfemu
from emulator._native import PAGE_SIZE, PhysicalMemory
from emulator.linux.machine import LinuxMachine
from emulator.machine import MachineConfig
small = [PhysicalMemory(PAGE_SIZE) for _ in range(4)]
machines = [LinuxMachine(MachineConfig("aarch64")) for _ in range(4)]
with open("/proc/self/maps") as maps:
    for line in maps:
        place, rights, *_, name = line.split()
        if "libunicorn" in name or "w" in rights and "x" in rights:
            print(int(place.split("-")[0], 16), end=" ")
counts = perfemu.stat([sys.argv[1], "1000"], ["cycles:u", "instructions:u", "L1-dcache-load-misses:u"], capture=True)
print(dict(counts.items()), counts.stdout)
"""
# The host has nothing left where that memory would lie.
NO_ROOM = """
import ctypes
PROT_NONE, MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_FIXED_NOREPLACE = 0, 2, 0x20, 0x4000, 0x100000
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_size_t
libc.mmap.argtypes = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
assert libc.mmap(1 << 45, 1 << 45, PROT_NONE, flags, -1, 0) == 1 << 45
"""
NEAR = 1 << 31  # as far as a direct call goes
TIMEOUT_S = 300  # in which nobody can try every page of the host's for room
PROGRAM = Path(__file__).resolve().parents[3] / "guest_programs" / "sort"


def places_and_counts(source: str, isa: str) -> tuple[list[int], str]:
    command = [sys.executable, "-c", source, str(PROGRAM / f"{isa}.elf")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    places, counts = done.stdout.split("{")
    return [int(place) for place in places.split()], counts


@pytest.mark.parametrize("isa", ISAS)
def test_translations_lie_next_to_the_libraries_that_they_call(isa: str) -> None:
    places, counts = places_and_counts(SOURCE, isa)
    assert len(places) > 4
    assert max(places) - min(places) < NEAR

    far_places, same_counts = places_and_counts(NO_ROOM + SOURCE, isa)
    assert max(far_places) - min(far_places) > NEAR
    assert same_counts == counts
