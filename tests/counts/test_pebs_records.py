"""Each PEBS record is what the core says of the instruction: addresses, latencies, where the data were, registers."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import pytest

from attribution import start_attribution, tally
from emulator.clock import MONOTONIC_AT_BOOT_NS
from emulator.core_file.core_file import load_core
from emulator.probes import Probe
from pebs_machine import WIDTH, PebsMachine
from perfcore.events.drivers.pebs_records import FIXED_BYTES, bytes_of
from perfemu.cores import pmu_of
from pmu.intel.pebs_registers import IA32_PEBS_ENABLE, MSR_PEBS_DATA_CFG
from pmu.intel.registers import IA32_PERF_GLOBAL_CTRL, IA32_A_PMCx, IA32_PERFEVTSELx

CORES = "skylake", "redwood-cove"
INSTRUCTIONS, CYCLES, LATENCY, ALL_STORES = 0x00C0, 0x003C, 0x01CD, 0x82D0
SOURCES = {0: 0, 1: 0x1, 2: 0x3, 3: 0x4, 5: 0xA}  # level that answered -> data source of a load
ALL = MSR_PEBS_DATA_CFG.make(MEMORY=1, GPR=1, XMM=1)
STACK_POINTER = 7  # bit of sample_regs_intr
PERIOD = 211


def machine(core: str, **options: int) -> PebsMachine:
    return PebsMachine(core, **options)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("program", "period", "answering"), [("embedded_mix", PERIOD, {1}), ("scan_and_reuse", 7, {1, 2, 5})]
)
def test_each_record_is_the_truth(core: str, program: str, period: int, answering: set[int]) -> None:
    run = machine(core)
    run.count(INSTRUCTIONS, period, adaptive=int(core != "skylake"))
    run.enable(config=0 if core == "skylake" else ALL)
    truth = run.run(program, probes=[Probe.INST_RETIRED], period=period)
    retired = run.core.total(Probe.INST_RETIRED)
    records = run.records
    assert len(records) == len(truth) == retired // period > 100
    assert run.pmu.read(IA32_A_PMCx) == WIDTH - period + retired % period
    hz = run.machine.clock.frequency_hz
    levels = Counter()
    for record, row in zip(records, truth, strict=True):
        pc, next_pc, _, _, address, _, level, cycle, _, fired, dispatched, completed, _, _ = row
        assert (record.ip, record.next_ip, record.applicable) == (pc, next_pc, 1)
        assert record.tsc == MONOTONIC_AT_BOOT_NS // 1_000_000_000 * hz + cycle
        assert record.address == (address or 0)
        if fired >> Probe.LOAD & 1:
            levels[level] += 1
            assert record.source & 0xF == SOURCES[level]
            assert record.latency <= completed - dispatched
            if core != "skylake":
                assert record.instruction_latency == completed - dispatched
        assert record.registers is not None
        assert record.registers[STACK_POINTER] % 8 == 0
    assert answering <= {*levels}
    if core == "skylake":  # 4 cycles at least of one that hits L1D
        assert min(record.latency for record in records if record.source & 0xF == 1 and record.latency) >= 4


def test_records_of_stores_say_whether_they_hit_l1d() -> None:
    """Behind its own load a store does, wherever that found its data: MOVS."""
    run = machine("skylake")
    run.count(ALL_STORES, 1)
    run.enable()
    truth = run.run("string_instructions", probes=[Probe.STORE], period=1)
    records = run.records
    assert len(records) == len(truth) > 50
    far = 0
    for record, row in zip(records, truth, strict=True):
        fired, level = row[9], row[6]
        assert record.source & 1 == (not fired >> Probe.L1D_REFILL_STORE & 1)
        far += fired >> Probe.LOAD & 1 and level > 1
    assert far


@pytest.mark.parametrize("core", CORES)
def test_registers_are_those_behind_the_instruction(core: str) -> None:
    """Two machines, one of which stops at each 1,009th instruction and reads them."""
    run = machine(core)
    run.count(INSTRUCTIONS, 1009, adaptive=int(core != "skylake"))
    run.enable(config=0 if core == "skylake" else ALL)
    stopped: list[list[int]] = []
    native = run.core
    architecture = run.machine.kernel.architecture
    run.place(run.buffer.nbytes, 1)  # each record interrupts

    def acknowledge() -> None:
        run.pmu.pebs.buffer_overflowed = False
        stopped.append(native.registers())

    run.acknowledge = acknowledge  # type: ignore[method-assign]
    run.run()
    records = run.records
    assert len(stopped) == len(records) > 20
    numbers = {bit: native for bit, native in enumerate(architecture.perf_registers) if native >= 0}
    for record, values in zip(records, stopped, strict=True):
        assert record.registers is not None
        found = {bit: value for bit, value in record.registers.items() if bit in numbers}
        assert found == {bit: values[number] for bit, number in numbers.items()}


@pytest.mark.parametrize("core", CORES)
def test_cycles_are_recorded_where_their_periods_end(core: str) -> None:
    """At the multiples of the period, by the instruction that retires there; of an instruction that takes several
    periods there is one record, and the counter stays ahead by the others."""
    run = machine(core)
    period = 101
    run.count(CYCLES, period)
    run.enable()
    run.place(run.buffer.nbytes, 1)  # each record interrupts
    stopped: list[tuple[int, int]] = []
    native = run.core

    def note() -> None:
        run.pmu.pebs.buffer_overflowed = False
        ahead = (run.pmu.read(IA32_A_PMCx) + WIDTH // 2) % WIDTH - WIDTH // 2  # it has been reloaded that often
        stopped.append((native.last_retired_pc, ahead + period * (len(stopped) + 2)))

    run.acknowledge = note  # type: ignore[method-assign]
    run.run("scan_and_reuse")
    records = run.records
    assert [record.ip for record in records] == [pc for pc, _ in stopped]
    ended = [cycles // period for _, cycles in stopped]  # periods until then
    assert ended == sorted({*ended})
    assert 100 < len(ended) < ended[-1]


def test_what_does_not_fit_is_lost_and_the_counter_counts_on() -> None:
    """Three records of 200 bytes in 799."""
    run = machine("skylake")
    run.place(799, 1 << 20)
    run.count(INSTRUCTIONS, PERIOD)
    run.enable()
    run.run()
    assert [len(run.records), run.index] == [3, 3 * FIXED_BYTES]
    assert run.interrupts == []  # a threshold that is beyond the maximum is never reached
    assert run.pmu.read(IA32_A_PMCx) == run.core.total(Probe.INST_RETIRED) - 4 * PERIOD


def test_the_interrupt_comes_at_the_threshold() -> None:
    """Each time software has cleared the status; who does not take the records is told at once."""
    run = machine("skylake")
    run.place(run.buffer.nbytes, 10 * FIXED_BYTES)
    run.count(INSTRUCTIONS, PERIOD)
    run.enable()
    run.run()
    assert run.interrupts[0] == 10 * FIXED_BYTES
    assert len(run.interrupts) == len(run.records) - 9


def test_a_period_of_one_records_every_instruction() -> None:
    run = machine("skylake", buffer_bytes=1 << 24)
    run.count(INSTRUCTIONS, 1)
    run.enable()
    truth = run.run("recursion", probes=[Probe.INST_RETIRED], period=1)
    assert [record.ip for record in run.records] == [row[0] for row in truth]
    assert len(truth) == run.core.total(Probe.INST_RETIRED)


def test_counters_that_overflow_together_share_a_record() -> None:
    run = machine("skylake")
    run.count(INSTRUCTIONS, 100)
    run.count(INSTRUCTIONS, 300, counter=1)
    run.enable(0b11)
    run.run()
    retired = run.core.total(Probe.INST_RETIRED)
    found = Counter(record.applicable for record in run.records)
    assert found == {0b11: retired // 300, 0b01: retired // 100 - retired // 300}


@pytest.mark.parametrize("core", CORES)
def test_of_loads_that_are_looked_at_the_slow_ones_are_recorded(core: str) -> None:
    """... and no other: against the core's word of every 37th load."""
    run = machine(core)
    run.count(LATENCY, 37, adaptive=int(core != "skylake"))
    slow = 30
    by_latency = IA32_PEBS_ENABLE.make(EN_PMC=1, EN_FIXED=1 if core == "skylake" else 0)
    run.enable(by_latency, latency=slow, config=0 if core == "skylake" else ALL)
    truth = run.run(probes=[Probe.LOAD], period=37)
    records = run.records
    assert all(record.latency > slow for record in records)
    looked_at = {(row[0], row[7]): row for row in truth}
    start = MONOTONIC_AT_BOOT_NS // 1_000_000_000 * run.machine.clock.frequency_hz
    kept = {(record.ip, record.tsc - start) for record in records}
    assert kept <= {*looked_at}
    assert kept >= {key for key, row in looked_at.items() if row[6] == 5 and row[13] > slow}  # waited for memory
    assert 0 < len(records) < len(truth)


def test_branch_group() -> None:
    """Without branch records its entries are 0; the size says so much."""
    run = machine("redwood-cove")
    config = MSR_PEBS_DATA_CFG.make(LBR=1, LBR_ENTRIES=7)
    run.count(INSTRUCTIONS, PERIOD, adaptive=1)
    run.enable(config=config)
    run.run()
    assert {record.branches for record in run.records} == {((0, 0, 0),) * 8}
    assert run.index == len(run.records) * bytes_of(config) == len(run.records) * (32 + 8 * 24)


@pytest.mark.parametrize(
    ("core", "register", "value"),
    [
        ("skylake", IA32_PEBS_ENABLE, 1 << 4),  # of four counters
        ("skylake", IA32_PEBS_ENABLE, 1 << 63),
        ("skylake", IA32_PERFEVTSELx, IA32_PERFEVTSELx.make(ADAPTIVE=1)),
        ("redwood-cove", MSR_PEBS_DATA_CFG, 1 << 4),
        ("redwood-cove", IA32_PEBS_ENABLE, 1 << 36),  # of four fixed counters
    ],
)
def test_reserved_bits(core: str, register: type, value: int) -> None:
    pmu = machine(core).pmu
    with pytest.raises(ValueError, match="reserved"):
        pmu.write(register, value)


def test_adaptive_records_are_not_skylakes() -> None:
    pmu = machine("skylake").pmu
    with pytest.raises(ValueError, match="no register"):
        pmu.write(MSR_PEBS_DATA_CFG, 1)


def test_the_sampled_distribution_is_the_executed_one() -> None:
    """Chi-square within 4 deviations: its mean is the number of classes less one, its variance twice that."""
    period = 383
    run = machine("skylake")
    run.count(INSTRUCTIONS, period)
    run.enable()
    start_attribution(run.core)
    run.run("sort", "5000")
    executed = tally(run.core)
    found = Counter(record.ip for record in run.records)
    samples, instructions = found.total(), executed.total()
    assert samples == instructions // period
    expected = {pc: times * samples / instructions for pc, times in executed.items()}
    classes = [pc for pc, times in expected.items() if times >= 5]
    rest = samples - sum(expected[pc] for pc in classes)
    statistic = sum((found[pc] - expected[pc]) ** 2 / expected[pc] for pc in classes)
    if rest:
        statistic += (samples - sum(found[pc] for pc in classes) - rest) ** 2 / rest
    freedom = len(classes) - (0 if rest else 1)
    assert freedom > 20
    assert abs(statistic - freedom) < 4 * sqrt(2 * freedom)


def test_sampling_changes_no_count_and_no_cycle() -> None:
    """Not of redwood-cove: where a block is cut behind a MOV, that is not fused with what computes on it, so that any
    overflow changes a few cycles there."""
    often, never = machine("skylake"), machine("skylake")
    for run, period in ((often, 64), (never, 1 << 40)):
        run.count(INSTRUCTIONS, period)
        run.enable()
        run.pmu.write(IA32_PERF_GLOBAL_CTRL, 1)
        run.run()
    assert [often.core.total(probe) for probe in Probe] == [never.core.total(probe) for probe in Probe]
    assert often.core.cycles == never.core.cycles
    assert often.records
    assert not never.records


def test_boards_have_no_events_of_records() -> None:
    """Their PMUs have no PEBS, and would count all loads instead."""
    core_file = load_core("skylake")
    assert pmu_of(core_file, "x86_64").by_code(LATENCY) is not None
    assert pmu_of(core_file, "x86_64", on_a_board=True).by_code(LATENCY) is None
