"""Recordings of intel_pt, what has retired meanwhile, and what perf makes of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import require
from emulator._native import RetirementRecorder
from emulator.probes import Probe
from perfemu.events.attributes import Sampling
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.session import Session
from real_perf import RealPerf, trixies_perf

SOURCES = Path(__file__).parent / "interop" / "intel_pt"
_BYTES = 8  # of an address
THREADS, WRITES = 4, 500  # intel_pt/ptwrites.c; the first thread is the program's


def built(source: str, folder: Path, *options: str) -> Path:
    """A program in C of `SOURCES`."""
    program = folder / source
    compiler = require.command("gcc", package="gcc")
    words = [compiler, "-O1", *options, "-o", program, SOURCES / f"{source}.c", "-lpthread", "-ldl"]
    subprocess.run(words, check=True)
    return program


def session_of(command: Sequence[str | Path], core: str, cpus: int = 1) -> Session:
    """Of a unit that `core` has or is lent."""
    units = () if core in ("skylake", "redwood-cove") else ("pt",)
    return Session(Guest([*map(str, command)], core=core, cpus=cpus, units=units, stdout=-1))


def retired(session: Session) -> list[RetirementRecorder]:
    """By CPU, who hears of each instruction that retires."""
    recorders = [RetirementRecorder(keep=True) for _ in session.machine.cpus]
    for cpu, recorder in zip(session.machine.cpus, recorders, strict=True):
        cpu.core.select(recorder, 1 << Probe.INST_RETIRED, 1)
    return recorders


def recorded(
    command: Sequence[str | Path],
    file: Path,
    event: str,
    core: str,
    cpus: int = 1,
    sampling: Sampling | None = None,
) -> list[list[int]]:
    """Record it. By CPU: each instruction that has retired."""
    session = session_of(command, core, cpus)
    recorders = retired(session)
    record(session, [event], sampling or Sampling(), str(file))
    return [[op[0] for op in recorder.take_selected()] for recorder in recorders]


class Branch(NamedTuple):
    """One that has retired."""

    source: int
    target: int
    cycle: int
    kind: int  # by `RetirementRecorder.take_branches`
    taken: bool


class Truth(NamedTuple):
    """A recording, and what has retired meanwhile."""

    file: Path
    instructions: list[int]
    branches: list[Branch]

    def steps(self) -> Iterator[tuple[int, Branch | None]]:
        """Each instruction's address, and the branch that it is."""
        left = iter(self.branches)
        branch = next(left, None)
        for address in self.instructions:
            if branch and branch.source == address:
                yield address, branch
                branch = next(left, None)
            else:
                yield address, None
        assert branch is None


def traced(program: Path, file: Path, event: str = "intel_pt//u", core: str = "skylake") -> Truth:
    """Record a program on one CPU."""
    session = session_of([program], core)
    recorder = RetirementRecorder(keep=True)
    native = session.machine.cpus[0].core
    native.select(recorder, 1 << Probe.INST_RETIRED, 1)
    native.listen(recorder)
    record(session, [event], Sampling(), str(file))
    kept = recorder.take_branches()
    addresses = [op[0] for op in recorder.take_selected()]
    return Truth(file, addresses, [Branch(*branch[:5]) for branch in kept])


def perfs(tmp_path: Path) -> list[RealPerf]:
    """Debian's of the host, and trixie's."""
    return [RealPerf(tmp_path / "home"), RealPerf(tmp_path / "home", [str(word) for word in trixies_perf("x86_64")])]


def instructions(perf: RealPerf, file: Path, cpus: int = 1) -> list[list[int]]:
    """By CPU, as perf script lists them."""
    found: list[list[int]] = [[] for _ in range(cpus)]
    for line in perf.run("script", "-i", file, "--itrace=i1ie", "-F", "cpu,ip").splitlines():
        cpu, address = line.split()
        found[int(cpu.strip("[]"))].append(int(address, 16))
    return found


def without_repeats(addresses: Sequence[int]) -> list[int]:
    """An instruction that was interrupted within its repetitions, by faults or signals, is listed once more by perf."""
    return [address for address, _ in groupby(addresses)]


def written_by(thread: int) -> list[int]:
    """What a thread of intel_pt/ptwrites.c writes: there stands which ways there are, and which of 32 bits."""
    narrow = {1, 3}
    values = [i if i % 3 and i % 5 in narrow else thread << 32 | i for i in range(WRITES)]
    return values if thread else [*values, 1 << 40, 0, 2 << 40]


def writes_of(program: Path) -> set[int]:
    """Offsets of its PTWRITEs, as objdump reads it."""
    words = [require.command("objdump", package="binutils"), "-d", program]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return {int(address, 16) for address in re.findall(r"^ *([0-9a-f]+):\t.*\tptwrite", text, re.MULTILINE)}


class Retired:
    """A list of instructions in which parts are looked up."""

    def __init__(self, addresses: Sequence[int]) -> None:
        self.addresses = without_repeats(addresses)
        self._bytes = _packed(self.addresses)

    def end_of(self, part: Sequence[int], start: int = 0) -> int | None:
        """Where the first such part from `start` on ends; None: it is nowhere."""
        wanted, at = _packed(without_repeats(part)), start * _BYTES
        while (at := self._bytes.find(wanted, at)) % _BYTES:
            if at < 0:
                return None
            at += 1
        return (at + len(wanted)) // _BYTES

    def parts(self, found: Sequence[int]) -> list[tuple[int, int]]:
        """Of which parts of it, each as long as can be, `found` is made: where each ends, and its length."""
        parts, left = [], without_repeats(found)
        while left:
            length, end = 0, 0
            step = 1 << len(left).bit_length()
            while step:
                if length + step <= len(left) and (there := self.end_of(left[: length + step])) is not None:
                    length, end = length + step, there
                step >>= 1
            assert length, f"{left[0]:#x} has not retired"
            parts.append((end, length))
            left = left[length:]
        return parts


def _packed(addresses: Sequence[int]) -> bytes:
    return b"".join(address.to_bytes(_BYTES, "little") for address in addresses)
