"""Each SPE record is what the core says of the instruction: address, latencies, events, data source, outcome."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from emulator._native import Core, RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import guest
from pmu.arm.spe import SpeUnit
from pmu.arm.spe_registers import (
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
    SpeVersion,
)
from pmu.unit_memory import VMALLOC_START, UnitMemory
from spe_records import BRANCH, EVENTS, LOAD, OTHER, SOURCES, STORE, SpeRecord, read_records

CORES = "ideal", "cortex-a55", "neoverse-n1"


class Sampled:
    """A program that has run with a unit."""

    def __init__(
        self,
        program: str,
        core: str,
        interval: int = 1,
        size: int = 1 << 22,
        arguments: tuple[str, ...] = (),
        before: Callable[[Core], None] | None = None,
        unmapped: int = 0,
        **registers: int,
    ) -> None:
        """`interval`: of PMSIRR_EL1. `unmapped`: bytes of the buffer behind its memory. `registers`: PMSCR, PMSFCR,
        PMSLATFR, RND."""
        machine = LinuxMachine(MachineConfig("aarch64", core=load_core(core)))
        self.cpu = machine.cpus[0]
        self.core: Core = self.cpu.core
        self.core.follow_branches()
        if before is not None:
            before(self.core)
        self.memory = memoryview(bytearray(size))
        memory = UnitMemory(VMALLOC_START)
        base = memory.map(self.memory)
        self.unit = unit = SpeUnit(self.cpu, SpeVersion.V1, memory, machine.clock.monotonic_at)
        self.recorder = RetirementRecorder(keep=True)
        self.interrupts = 0
        self.cpu.connect_interrupt(unit, self._interrupt)
        unit.write(PMBPTR_EL1, base)
        unit.write(PMBLIMITR_EL1, (base + size + unmapped) | 1)
        unit.write(PMSFCR_EL1, registers.get("PMSFCR", 0))
        unit.write(PMSLATFR_EL1, registers.get("PMSLATFR", 0))
        unit.write(PMSIRR_EL1, PMSIRR_EL1.make(INTERVAL=interval, RND=registers.get("RND", 0)))
        unit.write(PMSCR_EL1, PMSCR_EL1.make(E0SPE=1) | registers.get("PMSCR", 0))
        if not registers.get("RND", 0):
            self.core.select(self.recorder, 1 << Probe.INST_RETIRED, interval << 8)
        path = str(guest(program, "aarch64").path)
        machine.start(Program(path, (path, *arguments), stdout=-1))
        machine.run()
        self.size = unit.read(PMBPTR_EL1) - base
        self.truth = self.recorder.take_selected()

    def _interrupt(self) -> None:
        self.interrupts += 1

    @property
    def records(self) -> list[SpeRecord]:
        return read_records(bytes(self.memory[: self.size]))


ALL = PMSCR_EL1.make(PA=1, TS=1, CX=1)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("program", ["embedded_mix", "page_crossing", "recursion"])
def test_each_record_is_the_truth(program: str, core: str) -> None:
    sampled = Sampled(program, core, PMSCR=ALL)
    records = sampled.records
    assert not sampled.unit.read(PMBSR_EL1)
    assert len(records) == len(sampled.truth) == sampled.core.total(Probe.INST_RETIRED) // 256
    assert len(records) > (2 if program == "recursion" else 50)
    for record, row in zip(records, sampled.truth, strict=True):
        pc, next_pc, _, kind, address, _, level, _, _, fired, dispatched, completed, walked, _ = row
        assert (record.addresses["pc"], record.level) == (pc, 0)
        wanted = sum(1 << bit for bit, probes in EVENTS.items() if any(fired >> probe & 1 for probe in probes))
        not_taken = kind == 1 and not fired >> Probe.BR_TAKEN & 1
        assert record.events == wanted | not_taken << 6
        loads, stores = fired >> Probe.LOAD & 1, fired >> Probe.STORE & 1
        assert record.kind == (LOAD if loads else STORE if stores else BRANCH if kind else OTHER)
        assert record.addresses.get("virtual") == address
        assert record.source == (SOURCES.get(level) if loads else None)
        assert record.addresses.get("target") == (next_pc if kind else None)
        assert record.cycles["total"] == min(completed - dispatched, 4095)
        assert 0 <= record.cycles["issue"] <= record.cycles["total"]
        assert record.cycles.get("translation") == (walked if loads or stores else None)
        assert record.timestamp is not None
        assert ("physical" in record.addresses) == (address is not None)
        if address is not None:
            assert record.addresses["physical"] % 4096 == address % 4096


def test_on_neoverse_n1_loads_take_their_latency() -> None:
    """4 cycles from issue to the data, of one that hits in L1D."""
    hits = [
        record
        for record in Sampled("embedded_mix", "neoverse-n1").records
        if record.kind == LOAD and record.source == 0 and record.payload == 0
    ]
    assert len(hits) > 20
    assert min(record.cycles["total"] - record.cycles["issue"] for record in hits) == 4


def test_types_that_are_filtered() -> None:
    everything = Sampled("embedded_mix", "neoverse-n1").records
    for field, kind in (("B", BRANCH), ("LD", LOAD), ("ST", STORE)):
        filtered = Sampled("embedded_mix", "neoverse-n1", PMSFCR=PMSFCR_EL1.make(FT=1, **{field: 1})).records
        assert filtered == [record for record in everything if record.kind == kind]
        assert filtered
    assert not Sampled("embedded_mix", "neoverse-n1", PMSFCR=PMSFCR_EL1.make(FT=1)).records


def test_latencies_that_are_filtered() -> None:
    everything = Sampled("embedded_mix", "neoverse-n1").records
    filtered = Sampled("embedded_mix", "neoverse-n1", PMSFCR=PMSFCR_EL1.make(FL=1), PMSLATFR=6).records
    assert filtered == [record for record in everything if record.cycles["total"] >= 6]
    assert 0 < len(filtered) < len(everything)


def test_a_full_buffer_stops_it() -> None:
    """A page has 64 records; nothing is lost, but nothing follows until PMBSR_EL1.S has been cleared."""
    sampled = Sampled("embedded_mix", "ideal", size=4096)
    assert sampled.size == 4096
    assert len(sampled.records) == 64
    status = PMBSR_EL1(sampled.unit.read(PMBSR_EL1))
    assert (status.S, status.EC, status.MSS, status.DL, status.COLL) == (1, 0, 1, 0, 0)
    assert sampled.interrupts >= 1
    assert sampled.unit.read(PMSICR_EL1) == 256


def test_jitter_is_the_same_each_time_and_of_eight_bits() -> None:
    first, second = (Sampled("embedded_mix", "ideal", PMSCR=ALL, RND=1).records for _ in range(2))
    assert first == second
    times = [record.timestamp for record in first if record.timestamp is not None]
    assert len({after - before for before, after in pairwise(times)}) > 20


def test_where_no_page_is_the_buffer_faults() -> None:
    """Behind the 64 records of a page: a translation fault of stage 1; none of them is lost."""
    sampled = Sampled("embedded_mix", "ideal", size=4096, unmapped=4096)
    assert (sampled.size, len(sampled.records)) == (4096, 64)
    status = PMBSR_EL1(sampled.unit.read(PMBSR_EL1))
    assert (status.S, status.EC, status.MSS, status.DL) == (1, 0x24, 0x04, 0)


@pytest.mark.parametrize("core", CORES)
def test_profiling_changes_no_count_and_no_cycle(core: str) -> None:
    often, never = (Sampled("embedded_mix", core, interval, PMSCR=ALL, RND=1).core for interval in (1, 0xFFFFFF))
    assert [often.total(probe) for probe in Probe] == [never.total(probe) for probe in Probe]
    assert often.cycles == never.cycles
