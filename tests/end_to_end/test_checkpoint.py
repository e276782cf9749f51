"""A machine that has paused goes on as if it had not, and so do copies of it in processes of their own."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from c_programs import build
from emulator.checkpoint import CopyFailed, in_a_copy
from emulator.probes import Probe
from end_to_end.test_fast_forward import THREADS, sort
from guests import ISAS
from perfcore.events.ring_buffer import RingBuffer
from perfemu.events.attributes import Sampling, record_attrs, user_mode_only
from perfemu.file_limits import RING_BUFFER_PAGES
from perfemu.guest import Guest
from perfemu.recorder import open_sampling
from perfemu.session import Session

CORES = {"x86_64": "zen5", "aarch64": "cortex-a55"}


class Sampled:
    """A program about to run, and all that can be known of its end: totals, clocks, registers, samples."""

    def __init__(self, path: Path, core: str, cpus: int = 1) -> None:
        self.null = os.open(os.devnull, os.O_WRONLY)
        self.session = Session(Guest((str(path),), core=core, cpus=cpus, stdout=self.null))
        self.machine = self.session.machine
        specs = [user_mode_only(spec) for spec in self.session.parse(["cycles", "branches"])]
        attrs = record_attrs(specs, Sampling(period=20_000, callchains=True, cpu=True))
        self.buffers = []
        for cpu in range(cpus):
            self.buffers.append(RingBuffer.allocate(RING_BUFFER_PAGES))
            for event in open_sampling(self.session, specs, attrs, cpu):
                event.attach_buffer(self.buffers[-1])
        self.machine.start(self.session.program)

    def end(self) -> bytes:
        """Run to it."""
        status = self.machine.run()
        seen: list[object] = [status, self.machine.clock.elapsed_ns()]
        for cpu in self.machine.cpus:
            seen += [cpu.core.cycles, cpu.core.registers(), cpu.idle_cycles, cpu.system_cycles]
            seen += [cpu.core.total(probe) for probe in Probe if probe not in (Probe.BR_COND_TAKEN, Probe.BR_TAKEN)]
        samples = b"".join(bytes(buffer.drain()) for buffer in self.buffers)
        assert len(samples) > 5_000
        return repr(seen).encode() + hashlib.sha256(samples).digest()


@pytest.mark.parametrize("isa", ISAS)
def test_copies_go_on_as_the_machine_would_have(isa: str) -> None:
    uninterrupted = Sampled(sort(isa), CORES[isa]).end()
    checkpoint = Sampled(sort(isa), CORES[isa])
    assert checkpoint.machine.run_to_instruction(1_000_000)
    assert in_a_copy(checkpoint.end) == uninterrupted
    assert checkpoint.machine.paused
    assert in_a_copy(checkpoint.end) == uninterrupted
    assert checkpoint.machine.run_to_instruction(2_000_000)  # further on, of itself
    assert in_a_copy(checkpoint.end) == uninterrupted
    assert checkpoint.end() == uninterrupted


def test_the_same_with_several_cpus(tmp_path: Path) -> None:
    (tmp_path / "threads.c").write_text(THREADS)
    path = build(tmp_path / "threads.c", "x86_64", tmp_path / "threads")
    uninterrupted = Sampled(path, "zen5", cpus=3).end()
    checkpoint = Sampled(path, "zen5", cpus=3)
    assert checkpoint.machine.run_to_instruction(2_000_000)
    assert in_a_copy(checkpoint.end) == uninterrupted
    assert checkpoint.end() == uninterrupted


def test_it_pauses_exactly_where_an_instruction_takes_a_cycle() -> None:
    checkpoint = Sampled(sort("x86_64"), "ideal")
    assert checkpoint.machine.run_to_instruction(123_456)
    assert checkpoint.machine.cpus[0].core.total(Probe.INST_RETIRED) == 123_456
    assert not checkpoint.machine.run_to_instruction(1 << 40)
    assert not checkpoint.machine.paused


def test_what_fails_in_a_copy_is_said_here() -> None:
    def fail() -> bytes:
        raise ValueError("of the copy")

    with pytest.raises(CopyFailed, match="ValueError: of the copy"):
        in_a_copy(fail)
