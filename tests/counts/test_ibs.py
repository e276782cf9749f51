"""IBS: each sample is the truth of one instruction, as the core tells it; it is unbiased, and costs no cycle.

The truth is a RetirementRecorder's, which is told of every instruction of the same run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import sqrt

import pytest

from emulator._native import RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.cpu import Cpu
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import guest
from perfemu.cores import pmu_of
from pmu.amd.ibs import Ibs
from pmu.amd.ibs_registers import (
    IBS_BRTARGET,
    IBS_DC_LINADDR,
    IBS_DC_PHYSADDR,
    IBS_FETCH_CTL,
    IBS_FETCH_LINADDR,
    IBS_FETCH_PHYSADDR,
    IBS_OP_CTL,
    IBS_OP_DATA,
    IBS_OP_DATA2,
    IBS_OP_DATA3,
    IBS_OP_RIP,
    IC_IBS_EXTD_CTL,
)
from pmu.register import Register

L2, LAST, MEMORY = 2, 3, 5  # levels that answer
OP_REGISTERS = (
    IBS_OP_CTL, IBS_OP_RIP, IBS_OP_DATA, IBS_OP_DATA2, IBS_OP_DATA3, IBS_DC_LINADDR, IBS_DC_PHYSADDR, IBS_BRTARGET,
)  # fmt: skip
FETCH_REGISTERS = (IBS_FETCH_CTL, IBS_FETCH_LINADDR, IBS_FETCH_PHYSADDR, IC_IBS_EXTD_CTL)
SIXTEENTHS = 0x8  # a maximum count of 128


@dataclass
class Sampled:
    """A run that was sampled, and all instructions of it."""

    device: Ibs
    cpu: Cpu
    registers: tuple[type[Register], ...]
    samples: list[tuple[int, dict[type[Register], int]]] = field(default_factory=list)  # instructions until then
    fired: list[int] = field(default_factory=list)
    ops: list[tuple] = field(default_factory=list)
    totals: dict[Probe, int] = field(default_factory=dict)
    cycles: int = 0

    def handle(self) -> None:
        """As a driver does: take the sample, and go on with the count that hardware has left."""
        control = self.registers[0]
        self.samples.append(
            (self.cpu.core.total(Probe.INST_RETIRED), {each: self.device.read(each) for each in self.registers})
        )
        valid = IBS_OP_CTL.IbsOpVal.mask if control is IBS_OP_CTL else IBS_FETCH_CTL.IbsFetchVal.mask
        counted = IBS_FETCH_CTL.IbsFetchCnt.mask if control is IBS_FETCH_CTL else 0  # all, when it has a sample
        self.device.write(control, self.device.read(control) & ~(valid | counted))


def sampled(
    core: str, registers: tuple[type[Register], ...], control: int, program: str = "embedded_mix", argument: str = "2",
    *, told: bool = True,
) -> Sampled:  # fmt: skip
    core_file = load_core(core)
    machine = LinuxMachine(MachineConfig("x86_64", core=core_file))
    cpu = machine.cpus[0]
    run = Sampled(Ibs(cpu, pmu_of(core_file, "x86_64").events), cpu, registers)
    cpu.connect_interrupt(run.device, run.handle)
    cpu.core.follow_branches()
    if control:
        run.device.write(registers[0], control)
    recorder = RetirementRecorder(keep=True)
    if told:
        cpu.core.select(recorder, 1 << Probe.INST_RETIRED, 1)
    path = str(guest(program, "x86_64").path)
    machine.start(Program(path, (path, argument), stdout=-1))
    machine.run()
    run.ops = recorder.take_selected()
    run.totals = {probe: cpu.core.total(probe) for probe in Probe}
    run.cycles = cpu.core.cycles
    return run


def op_control(sixteenths: int = SIXTEENTHS, **fields: int) -> int:
    return IBS_OP_CTL.make(IbsOpMaxCnt=sixteenths, IbsOpEn=1, **fields)


@pytest.mark.parametrize("core", ["zen4", "zen5", "skylake"])
@pytest.mark.parametrize("fields", [{"IbsOpCntCtl": 1}, {}], ids=["ops", "cycles"])
def test_each_sample_is_the_truth_of_its_instruction(core: str, fields: dict[str, int]) -> None:
    run = sampled(core, OP_REGISTERS, op_control(**fields))
    assert len(run.ops) == run.totals[Probe.INST_RETIRED]
    counted = run.totals[Probe.INST_RETIRED if fields else Probe.CYCLES]
    assert counted // (128 + 64) < len(run.samples) <= counted // (128 - 127)
    kinds = Counter()
    for number, registers in run.samples:
        pc, following, _, _, address, size, level, cycle, _, fired, dispatched, completed, walked, waited = run.ops[
            number - 1
        ]
        control, rip, data, data2, data3 = (each(registers[each]) for each in OP_REGISTERS[:5])
        assert isinstance(data, IBS_OP_DATA)
        assert isinstance(data2, IBS_OP_DATA2)
        assert isinstance(data3, IBS_OP_DATA3)
        assert IBS_OP_CTL(control.value).IbsOpVal
        assert rip.value == pc
        has = {probe for probe in Probe if fired >> probe & 1}
        assert (data.IbsTagToRetCtr, data.IbsCompToRetCtr) == (cycle - dispatched, max(cycle - completed, 0))
        assert data.IbsOpBrnRet == (Probe.BR_RETIRED in has)
        assert data.IbsOpBrnTaken == (Probe.BR_TAKEN in has)
        assert data.IbsOpBrnMisp == (Probe.BR_MISPREDICTED in has)
        assert data.IbsOpReturn == (Probe.BR_RETURN in has)
        assert registers[IBS_BRTARGET] == (following if Probe.BR_TAKEN in has else 0)
        assert (data3.IbsLdOp, data3.IbsStOp) == (Probe.LOAD in has, Probe.STORE in has)
        if not data3.IbsLdOp and not data3.IbsStOp:
            assert (data3.value, registers[IBS_DC_LINADDR]) == (0, 0)
            kinds["other"] += 1
            continue
        assert data3.IbsDcLinAddrValid
        assert registers[IBS_DC_LINADDR] == address
        assert 1 << data3.IbsOpMemWidth - 1 == size
        assert registers[IBS_DC_PHYSADDR] % 4096 == address % 4096
        assert data3.IbsDcMiss == bool(has & {Probe.L1D_REFILL_LOAD, Probe.L1D_REFILL_STORE})
        assert data3.IbsDcL1TlbMiss == bool(has & {Probe.DTLB_REFILL_LOAD, Probe.DTLB_REFILL_STORE})
        assert data3.IbsDcL2TlbMiss == bool(has & {Probe.DTLB_WALK_LOAD, Probe.DTLB_WALK_STORE})
        assert data3.IbsDcMissLat == (waited if data3.IbsDcMiss else 0)
        assert data3.IbsTlbRefillLat == (walked if data3.IbsDcL1TlbMiss else 0)
        if data3.IbsLdOp:
            assert data2.DataSrcLo == {LAST: 1, MEMORY: 3}.get(level, 0)
            kinds[level] += 1
        else:
            kinds["store"] += 1
    assert {"other", "store", 1} <= set(kinds)


@pytest.mark.parametrize("core", ["ideal", "zen5"])
def test_sampling_changes_no_count_and_no_cycle(core: str) -> None:
    plain = sampled(core, OP_REGISTERS, 0, told=False)
    for control in (op_control(), op_control(IbsOpCntCtl=1)):
        run = sampled(core, OP_REGISTERS, control, told=False)
        assert run.samples
        assert (run.totals, run.cycles) == (plain.totals, plain.cycles)
    fetched = sampled(core, FETCH_REGISTERS, IBS_FETCH_CTL.make(IbsFetchMaxCnt=1, IbsFetchEn=1), told=False)
    assert fetched.samples
    assert (fetched.totals, fetched.cycles) == (plain.totals, plain.cycles)


@pytest.mark.parametrize("core", ["ideal", "zen5"])
def test_ops_are_sampled_without_bias(core: str) -> None:
    """Chi-square of the samples of each instruction, against how often it retires: which is one op each time."""
    run = sampled(core, OP_REGISTERS, op_control(0x10, IbsOpCntCtl=1), argument="8")
    retired = Counter(op[0] for op in run.ops)
    samples = Counter(registers[IBS_OP_RIP] for _, registers in run.samples)
    share = len(run.samples) / len(run.ops)
    bins = {pc: count * share for pc, count in retired.items() if count * share >= 5}
    rare = len(run.samples) - sum(bins.values())
    statistic = sum((samples[pc] - expected) ** 2 / expected for pc, expected in bins.items())
    statistic += (sum(count for pc, count in samples.items() if pc not in bins) - rare) ** 2 / rare
    freedom = len(bins)
    assert freedom > 50
    # its mean is `freedom`, its variance twice that: beyond 4 deviations by chance once in 30,000 programs
    assert statistic < freedom + 4 * sqrt(2 * freedom)


def test_only_ops_that_miss_l3_if_asked_for() -> None:
    run = sampled("zen5", OP_REGISTERS, op_control(1, IbsOpCntCtl=1, IbsOpL3MissOnly=1), "scan_and_reuse", "1")
    assert run.samples
    for number, _ in run.samples:
        assert run.ops[number - 1][9] & (1 << Probe.LL_REFILL_LOAD | 1 << Probe.LL_REFILL_STORE)


@pytest.mark.parametrize("random", [0, 1])
def test_fetches(random: int) -> None:
    """One of 16 of them; with IbsRandEn the count begins at 0 to 15."""
    control = IBS_FETCH_CTL.make(IbsFetchMaxCnt=1, IbsFetchEn=1, IbsRandEn=random)
    run = sampled("zen5", FETCH_REGISTERS, control)
    fetches = run.totals[Probe.L1I_ACCESS]
    most = fetches if random else fetches // 16
    assert fetches // (16 + 2) <= len(run.samples) <= most
    for number, registers in run.samples:
        pc, fired = run.ops[number - 1][0], run.ops[number - 1][9]
        fetch = IBS_FETCH_CTL(registers[IBS_FETCH_CTL])
        assert fired >> Probe.L1I_ACCESS & 1
        assert registers[IBS_FETCH_LINADDR] == pc
        assert registers[IBS_FETCH_PHYSADDR] % 4096 == pc % 4096
        assert (fetch.IbsFetchVal, fetch.IbsFetchComp, fetch.IbsPhyAddrValid) == (1, 1, 1)
        assert fetch.IbsIcMiss == fired >> Probe.L1I_REFILL & 1
        assert fetch.IbsL1TlbMiss == fired >> Probe.ITLB_REFILL & 1
        assert fetch.IbsL2TlbMiss == fired >> Probe.ITLB_WALK & 1
        assert fetch.IbsFetchL2Miss == fired >> Probe.L2_REFILL_FETCH & 1
    if random:
        assert any(IBS_FETCH_CTL(registers[IBS_FETCH_CTL]).IbsIcMiss for _, registers in run.samples)


def test_registers() -> None:
    machine = LinuxMachine(MachineConfig("x86_64", core=load_core("zen5")))
    device = Ibs(machine.cpus[0], pmu_of(load_core("zen5"), "x86_64").events)
    assert {each.__name__: device.read(each) for each in device.registers() if device.read(each)} == {
        "IBS_CTL": 0x100  # entry 0 of the APIC's extended vectors is valid
    }
    for register in device.registers():
        if not register.__name__.endswith("_CTL"):
            device.write(register, (1 << 64) - 1)
            assert device.read(register) == register.declared & register.readable  # reserved bits ignore writes
    device.write(IBS_OP_CTL, (1 << 64) - 1)  # which has IbsOpVal: nothing is counted
    assert device.read(IBS_OP_CTL) == IBS_OP_CTL.declared
    device.write(IBS_OP_CTL, op_control(IbsOpCntCtl=1, IbsOpCurCnt=5))
    assert IBS_OP_CTL(device.read(IBS_OP_CTL)).IbsOpCurCnt == 5
    assert not device.interrupt_asserted()
