"""Random BPF programs without a guest: what the verifier takes never faults, whatever its context holds."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from emulator.linux.errors import LinuxError
from emulator.linux.fs.file import O_RDWR, FileTable
from fuzz.perf.bpf_programs import MAPS, RandomBpf
from fuzz.perf.structures import CONTEXT_BYTES, COUNT, OBSERVING, map_attr
from perfcore.abi.bpf import Cmd, MapFlag, MapType
from perfcore.bpf import subsystem
from perfcore.bpf.files import MapFile, program_of
from perfcore.bpf.loading import prog_load
from perfcore.bpf.maps.kinds import MAP_KINDS
from perfcore.bpf.maps.map import MapRequest
from perfcore.bpf.program import Program
from unit.bpf.programs import Process, Workbench

SEEDS = range(120)  # some seconds, twice


class Loader(Process):
    """A process that has the maps which programs name, and may load what it likes."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__({0x2000: b"GPL"}, FileTable())
        self.bench = bench
        for slot in range(COUNT):
            wanted = map_attr(slot)
            sizes = wanted["key_size"], wanted["value_size"], wanted["max_entries"]
            request = MapRequest(MapType(wanted["map_type"]), *sizes, MapFlag(wanted["map_flags"]))
            made = MAP_KINDS[request.type](request, bench.bpf)
            bench.bpf.maps.add(made)
            made.on_end = bench.bpf.maps.remove
            self.files.install_at(MAPS + slot, MapFile(made, O_RDWR))

    def load(self, data: bytes, type: int) -> Program:
        """LinuxError where the verifier refuses it."""
        self.memory[0x1000] = data
        fields = {"prog_type": type, "insn_cnt": len(data) // 8, "insns": 0x1000, "license": 0x2000, "log_level": 2}
        descriptor = prog_load(self.bench.bpf, self.request(Cmd.PROG_LOAD, **fields))
        program = program_of(cast(Any, self), descriptor)
        program.retain()
        self.files.close(descriptor)
        return program


def taken_and_run(seeds: range, loader: Loader, spoiled: float = 0.1) -> int:
    """How many programs were taken. Each is run, and ends."""
    taken = 0
    for seed in seeds:
        rng = random.Random(seed)
        type = rng.choice(OBSERVING)
        try:
            program = loader.load(RandomBpf(rng, CONTEXT_BYTES[type], spoiled).data(), type)
        except LinuxError:
            continue
        taken += 1
        for _ in range(2):
            loader.bench.run(program, rng.randbytes(loader.bench.bpf.kinds[type].end))
        program.release()
    return taken


def test_what_the_verifier_takes_does_not_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsystem, "BUDGET", 5000)
    loader = Loader(Workbench(executed=1 << 30))
    taken = taken_and_run(SEEDS, loader) + taken_and_run(SEEDS, loader, spoiled=0.9)
    assert len(SEEDS) // 2 < taken < len(SEEDS) * 2  # neither all of them, nor few
    loader.files.close_all()
    bpf = loader.bench.bpf
    assert not len(bpf.maps) + len(bpf.programs)
