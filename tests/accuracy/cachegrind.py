"""What cachegrind counts of a program, and what our caches of the same geometry count."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from elftools.elf.elffile import ELFFile

from emulator.core_file.core_file import CoreFile, load_core
from emulator.linux.machine import LinuxMachine
from emulator.machine import MachineConfig
from emulator.probes import Probe
from tests.accuracy import lru, valgrind_start
from tests.accuracy.valgrind_start import Run

CORE = Path(__file__).parent / "cores" / "cachegrind.toml"
# Else two comparisons that decide one branch (`a && b`) are made at once, and cachegrind counts instructions and reads
# that the program does not execute. Callgrind switches it off itself.
NO_CHASE = "--vex-guest-chase=no"
EVENTS = ("Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")
MISSES = {
    "I1mr": Probe.L1I_REFILL,
    "ILmr": Probe.LL_REFILL_FETCH,
    "D1mr": Probe.L1D_REFILL_LOAD,
    "DLmr": Probe.LL_REFILL_LOAD,
    "D1mw": Probe.L1D_REFILL_STORE,
    "DLmw": Probe.LL_REFILL_STORE,
}


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes in bytes and ways of L1I, L1D and LL; lines are of 64 bytes."""

    name: str
    i1: tuple[int, int]
    d1: tuple[int, int]
    ll: tuple[int, int]

    @property
    def options(self) -> list[str]:
        shapes = {"I1": self.i1, "D1": self.d1, "LL": self.ll}
        return [f"--{level}={size},{ways},64" for level, (size, ways) in shapes.items()]

    @property
    def core(self) -> CoreFile:
        shapes = {"l1i": self.i1, "l1d": self.d1, "llc": self.ll}
        changes = [
            f"{table}.{key}={value}"
            for table, shape in shapes.items()
            for key, value in zip(("size", "ways"), shape, strict=True)
        ]
        return load_core(str(CORE), changes)


USUAL = Geometry("usual", i1=(32 << 10, 8), d1=(32 << 10, 8), ll=(1 << 20, 16))
MIDDLE = Geometry("middle", i1=(16 << 10, 4), d1=(8 << 10, 4), ll=(128 << 10, 8))
SMALL = Geometry("small", i1=(1 << 10, 2), d1=(4 << 10, 2), ll=(16 << 10, 4))  # so that there is much to compare


def theirs(run: Run, geometry: Geometry) -> tuple[bytes, dict[str, int]]:
    """The output under cachegrind, and its totals."""
    with NamedTemporaryFile() as file:
        tool = [
            "--tool=cachegrind",
            NO_CHASE,
            "--cache-sim=yes",
            f"--cachegrind-out-file={file.name}",
            *geometry.options,
        ]
        output = valgrind_start.valgrind(run, tool)
        lines = dict(line.split(": ", 1) for line in Path(file.name).read_text().splitlines() if ": " in line)
    assert tuple(lines["events"].split()) == EVENTS
    return output, dict(zip(EVENTS, map(int, lines["summary"].split()), strict=True))


@dataclass(frozen=True, slots=True)
class Ours:
    """Our account of a run. `references` as cachegrind has them."""

    output: bytes
    misses: dict[str, int]
    references: dict[str, int]


def ours(run: Run, geometry: Geometry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ours:
    """A run on our machine."""
    machine = LinuxMachine(MachineConfig("x86_64", core=geometry.core))
    core = machine.cpus[0].core
    core.start_trace()
    file = tmp_path / "output"
    with file.open("wb") as stdout:
        valgrind_start.start(machine, run, tmp_path / "processor", stdout.fileno(), monkeypatch)
        assert machine.run() == 0
    accesses = core.take_trace()
    # An instruction that stores where it has just loaded makes one reference, a read; but XCHG, which valgrind runs as
    # a load and a compare-and-swap, makes two.
    modifies = Counter(
        load[0] for load, store in pairwise(accesses) if load[:3] == store[:3] and not load[4] and store[4]
    )
    exchanges = exchanges_in(run.path)
    references = {
        "Dr": core.total(Probe.LOAD) + sum(count for pc, count in modifies.items() if pc in exchanges),
        "Dw": core.total(Probe.STORE) - sum(modifies.values()),
    }
    return Ours(file.read_bytes(), {event: core.total(probe) for event, probe in MISSES.items()}, references)


def exchanges_in(path: Path) -> set[int]:
    """The addresses of a static program's XCHG instructions, also of some bytes that are none."""
    with path.open("rb") as stream:
        segments = [(each["p_vaddr"], each.data()) for each in ELFFile(stream).iter_segments("PT_LOAD")]
    # Opcodes 86 and 87, perhaps behind a 66, and a REX prefix
    return {start + at.start() for start, code in segments for at in re.finditer(rb"(?=f?[@-O]?[\x86\x87])", code)}


def trace(run: Run, tmp_path: Path) -> list[lru.Reference]:
    """Everything that the program fetches and accesses, as valgrind's lackey tells it."""
    log = tmp_path / "lackey"
    tool = ["--tool=lackey", "--trace-mem=yes", "--basic-counts=no", NO_CHASE, f"--log-file={log}"]
    valgrind_start.valgrind(run, tool)
    references = []
    for line in log.read_text().splitlines():
        if line[:3] in ("I  ", " L ", " S ", " M "):
            address, size = line[3:].split(",")
            references.append((line[:3].strip(), int(address, 16), int(size)))
    return references
