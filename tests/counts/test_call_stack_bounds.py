"""What is kept of calls is bounded, whatever a guest does, and what is forgotten is missing at the chains' ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import c_programs
from guests import ISAS
from perfemu.api import record
from perfemu.guest import Guest

SOURCE = Path(__file__).with_name("call_stack_bounds.c")
MOST_FRAMES = 1 << 17  # docs/counting.md, "Callchains": one of them is nobody's
LONGEST = 127  # entries of a callchain, where the sample is among them


def functions(path: Path) -> dict[str, range]:
    with path.open("rb") as file:
        symbols = list(ELFFile(file).get_section_by_name(".symtab").iter_symbols())
    return {each.name: range(each["st_value"], each["st_value"] + each["st_size"]) for each in symbols}


@pytest.mark.parametrize("isa", ISAS)
def test_too_deep_a_stack_forgets_its_outer_half(isa: str, tmp_path: Path) -> None:
    path = c_programs.build(SOURCE, isa, tmp_path / "bounds", "-O1", "-fomit-frame-pointer")
    known = functions(path)
    deepest = MOST_FRAMES + 2000  # calls of recurse
    marker = known["marker"].start
    guest = Guest([path, "recurse", str(deepest)], core="ideal")
    found = record(guest, [f"mem:{marker:#x}:x"], period=1, callchains="exact", output=tmp_path / "data", capture=True)
    assert found.exit_status == 0
    chains = [list(sample.callchain)[1:] for _, sample in found.samples()]
    names = [
        [next(name for name in ("marker", "recurse", "main", "") if not name or at in known[name]) for at in chain]
        for chain in chains
    ]
    # Going in: 100 calls below the outermost one; then at the innermost, where the outer half is forgotten already, and
    # a chain is full.
    callers = ["marker", *["recurse"] * 101, "main"]
    assert names[0][: len(callers)] == callers
    assert names[1] == ["marker", *["recurse"] * (LONGEST - 1)]
    # Going out: 1000 calls above the innermost they are still there. Near the outermost they are not, main neither.
    assert names[2] == names[1]
    assert names[3:] == [["marker", "recurse"], ["marker", "main"]]


# In a process of its own: what is measured of a child includes the memory of who has made it.
MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_bytes(path: Path, times: int, output: Path) -> int:
    """Of perfemu's memory."""
    python = [sys.executable, "-c", MEASURE, sys.executable, "-m", "perfemu"]
    command = [
        "record",
        "-q",
        "-g",
        "-e",
        "instructions",
        "-c",
        "100000000",
        "-o",
        output,
        path,
        "alternate",
        str(times),
    ]
    return int(subprocess.run([*python, *command], check=True, capture_output=True, text=True).stdout)


def test_a_stack_that_is_left_and_returned_to_costs_nothing(tmp_path: Path) -> None:
    path = c_programs.build(SOURCE, "x86_64", tmp_path / "bounds", "-O1", "-fomit-frame-pointer")
    few, many = (peak_bytes(path, times, tmp_path / "data") for times in (1000, 4_000_000))
    # A number of 8 bytes for each time would be 32 million.
    assert many - few < 8 * 4_000_000 / 2
