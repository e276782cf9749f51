"""The data addresses that our models hear of, against those that a QEMU plugin sees, event by event.

And what two levels of caches make of them, against an oracle that is fed with QEMU's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import access_hook
import reference
import require
from conformance.equal_start import make_machine, start
from debian import ARCHITECTURES
from emulator._native import Core
from emulator.core_file.core_file import load_core
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import ISAS, guest
from tests.accuracy import write_back

CORE = Path(__file__).parent / "cores" / "two_levels.toml"
SHAPES = ((1 << 10, 2), (2 << 10, 4), (16 << 10, 8))  # as it says
COMPARED = (
    Probe.L1I_REFILL,
    Probe.L1D_ACCESS_LOAD,
    Probe.L1D_ACCESS_STORE,
    Probe.L1D_REFILL_LOAD,
    Probe.L1D_REFILL_STORE,
    Probe.L1D_WRITE_BACK,
    Probe.L2_ACCESS_FETCH,
    Probe.L2_ACCESS_LOAD,
    Probe.L2_ACCESS_STORE,
    Probe.L2_REFILL_FETCH,
    Probe.L2_REFILL_LOAD,
    Probe.L2_REFILL_STORE,
    Probe.L2_WRITE_BACK,
)
OURS = {
    "embedded_mix": ("2",),
    "sort": ("2000",),
    "matrix": ("24",),
    "compression": ("1",),
    "sha256": ("2",),
    "integer_mix": ("2",),
    "recursion": (),
}
BUSYBOX = {
    "dc": ("dc", "-e", "2 100 ^ p"),
    "factor": ("factor", "1234567890"),
    "sh": ("sh", "-c", "i=0; s=0; while [ $i -lt 8 ]; do s=$((s + i * i)); i=$((i + 1)); done; echo $s"),
    "expr": ("expr", "17", "*", "3"),
}
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C",
    "GLIBC_TUNABLES": "glibc.pthread.rseq=0",  # qemu-user refuses rseq, this kernel does not
}

STORE_EXCLUSIVE = 0x3FC0_0000, 0x0800_0000  # mask, encoding
ZERO_LINE = 0xFFFF_FFE0, 0xD50B_7420

Event = tuple[int, int, int, bool]  # pc, address, size in bytes, is store


@dataclass(frozen=True, slots=True)
class Both:
    """One program under QEMU and on our machine."""

    qemu: reference.QemuRun
    core: Core
    trace: list[Event]


def run_both(isa: str, path: Path, argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    qemu = reference.qemu_counts(isa, argv, ENVIRONMENT, executable=str(path), cwd=tmp_path, trace=True)
    machine = make_machine(MachineConfig(isa, core=load_core(str(CORE))), qemu, monkeypatch)
    core = machine.cpus[0].core
    core.start_trace()
    output = tmp_path / "output"
    with open(os.devnull, "rb") as stdin, output.open("wb") as stdout:
        program = Program(str(path), argv, tuple(ENVIRONMENT.items()), str(tmp_path), stdin.fileno(), stdout.fileno())
        start(machine, program)
        status = machine.run()
    assert os.waitstatus_to_exitcode(status) == qemu.exit_status
    assert output.read_bytes() == qemu.stdout
    return Both(qemu, core, [(pc, address, size, store) for pc, address, size, _, store in core.take_trace()])


def places(run: reference.QemuRun, mask: int, encoding: int) -> set[int]:
    """The addresses of AArch64 instructions with this encoding."""
    if run.isa != "aarch64":
        return set()
    words = ((each.address, int.from_bytes(each.code, "little")) for each in run.instructions)
    return {address for address, word in words if word & mask == encoding}


def instructions(run: reference.QemuRun, zeroed: Iterable[int]) -> Iterator[tuple[int, int, list[write_back.Access]]]:
    """Each instruction that QEMU executes, with its accesses; pieces that lie one behind the other are one.

    Of DC ZVA QEMU tells no accesses: `zeroed` has the lines. STXR it runs as a compare-and-swap: it reads, which the
    architecture does not.
    """
    zeroes, lines = places(run, *ZERO_LINE), iter(zeroed)
    pc = length = 0
    accesses: list[write_back.Access] = []
    only_store = places(run, *STORE_EXCLUSIVE)
    for address, size, kind in run.trace:
        if kind == reference.EXECUTED:
            if length:
                yield pc, length, accesses
            pc, length = address, size
            accesses = [(next(lines), write_back.LINE_BYTES, True)] if pc in zeroes else []
            continue
        store = kind == reference.STORED
        if pc in only_store and not store:
            continue
        if accesses and accesses[-1][2] == store and accesses[-1][0] + accesses[-1][1] == address:
            accesses[-1] = (accesses[-1][0], accesses[-1][1] + size, store)
        else:
            accesses.append((address, size, store))
    yield pc, length, accesses


def compare(both: Both) -> None:
    zeroes = places(both.qemu, *ZERO_LINE)
    executed = list(instructions(both.qemu, [address for pc, address, _, _ in both.trace if pc in zeroes]))
    theirs = access_hook.merged((pc, *access) for pc, _, accesses in executed for access in accesses)
    ours = access_hook.merged(both.trace)
    first = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    assert first is None, f"event {first}: ours {ours[first]}, QEMU's {theirs[first]}"
    assert len(ours) == len(theirs)
    counts = write_back.count(executed, *SHAPES)
    assert {probe.name: both.core.total(probe) for probe in COMPARED} == {
        probe.name: counts[probe] for probe in COMPARED
    }
    # Behind each entry to the kernel the line is fetched again, if it is the same.
    again = both.core.total(Probe.L1I_ACCESS) - counts[Probe.L1I_ACCESS]
    assert 0 <= again <= both.core.total(Probe.EXC_TAKEN)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", OURS)
def test_a_freestanding_program(name: str, isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = guest(name, isa).path
    compare(run_both(isa, path, (str(path), *OURS[name]), tmp_path, monkeypatch))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", BUSYBOX)
def test_debians_busybox(name: str, isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = require.debian_tree(ARCHITECTURES[isa], "busybox-static") / "bin/busybox"
    compare(run_both(isa, path, BUSYBOX[name], tmp_path, monkeypatch))
