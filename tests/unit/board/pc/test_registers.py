"""CPUID and MSRs of a pc's CPUs, as kernels ask for them. Expectations: Intel SDM volumes 2 and 4."""

from __future__ import annotations

import pytest

from emulator.arch.processor import Processor
from emulator.board.pc import msrs
from emulator.board.pc.cpuid import PcCpuid
from emulator.core_file.core_file import load_core
from emulator.cpu import Cpu
from emulator.machine import Hardware, MachineConfig
from emulator.sysregs import Msr, SystemRegisters, UndefinedRegister
from pmu.intel.perfmon import Perfmon
from pmu.model import model


def claimed(core: str = "ideal") -> tuple[SystemRegisters, dict[int, str]]:
    registers = SystemRegisters()
    processor = Processor.of(load_core(core), "x86_64", 2)
    return registers, msrs.claim(registers, processor, (lambda: 5, lambda value: None))[0]


def test_the_time_stamp_counters_frequency_is_told() -> None:
    """Leaf 15H: TSC Hz = ECX * EBX / EAX; 16H in MHz."""
    processor = Processor(cpus=1, frequency_hz=3_400_000_000)
    cpuid = PcCpuid(processor, 0)
    denominator, numerator, crystal, _ = cpuid(0x15, 0)
    assert crystal * numerator // denominator == 3_400_000_000
    assert cpuid(0x16, 0)[:3] == (3400, 3400, 100)
    assert cpuid(0, 0)[0] == 0x16


def test_features_for_kernels() -> None:
    processor = Processor(cpus=4)
    claimed_by = SystemRegisters()
    claimed_by.claim_cpuid(PcCpuid(processor, 3))
    claimed_by.amend_cpuid(perfmon()[0].cpuid)
    cpuid = claimed_by.cpuid
    _, ebx, ecx, edx = cpuid(1, 0)
    assert ebx >> 24 == 3  # initial APIC id
    assert ecx >> 24 & 1  # TSC-deadline
    assert ecx >> 15 & 1  # IA32_PERF_CAPABILITIES
    assert ecx >> 21 & 1  # x2APIC
    assert ecx >> 26 & 1 == ecx >> 31 == 0  # no XSAVE, no hypervisor
    assert edx >> 9 & edx >> 12 & 1  # APIC, MTRRs
    assert edx >> 11 & 1  # SYSENTER
    assert cpuid(0x8000_0008, 0)[0] & 0xFFFF == 48 << 8 | 40
    assert cpuid(7, 0)[1] >> 7 & 1  # SMEP
    assert cpuid(7, 0)[1] >> 20 & 1 == 0  # no SMAP
    assert cpuid(7, 0)[2] == 1 << 2  # UMIP
    assert cpuid(7, 1) == (0, 0, 0, 0)
    assert cpuid(0xA, 0)[0] & 0xFFFF == 0x0404  # version 4, four counters
    assert cpuid(0xB, 1) == (2, 4, 0x201, 3)  # two bits for four cores
    assert PcCpuid(processor, 0)(1, 0)[2] >> 15 & 1 == 0


def test_who_restricts_branches_always_has_the_register_for_it() -> None:
    """IBRS_ALL: "the processor supports enhanced IBRS". Linux then writes IBRS, without asking for more."""
    registers, _ = claimed()
    assert registers.read(Msr(msrs.ARCH_CAPABILITIES)) >> 1 & 1
    assert PcCpuid(Processor(cpus=1), 0)(7, 0)[3] >> 26 & 1  # IBRS and IBPB
    registers.write(Msr(0x48), 1)
    assert registers.read(Msr(0x48)) == 1
    registers.write(Msr(0x49), 1)
    assert registers.read(Msr(0x49)) == 0  # IBPB is an order


def test_amds_processors_say_nothing_of_crystals() -> None:
    processor = Processor.of(load_core("zen4"), "x86_64", 1)
    cpuid = PcCpuid(processor, 0)
    assert cpuid(0, 0)[0] < 0x15
    assert cpuid(7, 0)[3] == 0


def test_amds_time_stamp_counter_has_the_frequency_of_p0() -> None:
    registers, names = claimed("zen5")
    assert registers.read(Msr(0xC001_0015)) >> 24 & 1  # HWCR.TscFreqSel
    assert names[0xC001_102E] == "BP_CFG"


def test_what_is_there() -> None:
    registers, names = claimed()
    assert registers.read(Msr(0xFE)) == 0x508
    assert registers.read(Msr(0x6E0)) == 5
    registers.write(Msr(0x277), 0x0606)
    assert registers.read(Msr(0x277)) == 0x0606
    registers.write(Msr(0x8B), 0)  # as kernels do before they read the revision
    assert registers.read(Msr(0x8B)) == 0xF0 << 32
    assert (names[0x277], names[0x201]) == ("IA32_PAT", "IA32_MTRR_PHYSMASK0")
    assert set(names) & set(msrs.ABSENT) == {0x48, 0x49}  # IA32_SPEC_CTRL, IA32_PRED_CMD: AMD lacks them


@pytest.mark.parametrize(("number", "value"), [(0xFE, 0), (0x17, 0), (0x12345, 0)])
def test_what_is_refused(number: int, value: int) -> None:
    with pytest.raises(UndefinedRegister):
        claimed()[0].write(Msr(number), value)


def perfmon() -> tuple[Perfmon, Cpu, dict[int, str]]:
    cpu = Hardware(MachineConfig("x86_64", load_core("ideal"), 16 << 20)).cpus[0]
    kind = model(load_core("ideal").pmu_models["x86_64"])
    pmu = Perfmon(cpu.core.add_bank(kind.bank_size(4)), kind, 4)
    return pmu, cpu, pmu.claim(cpu.system_registers)


def test_the_pmus_registers() -> None:
    pmu, cpu, names = perfmon()
    registers = cpu.system_registers
    assert {names[0x186], names[0xC4], names[0x30B], names[0x38F]} == {
        "IA32_PERFEVTSEL0",
        "IA32_PMC3",
        "IA32_FIXED_CTR2",
        "IA32_PERF_GLOBAL_CTRL",
    }
    assert 0xC5 not in names  # there are four
    assert 0x834 not in names  # the local APIC's, in memory
    registers.write(Msr(0xC1), 0xFFFF_FFFE)
    assert registers.read(Msr(0xC1)) == (1 << 48) - 2 == registers.rdpmc(0)
    pmu.set_local_vector(0x1_0400 | 1 << 12)
    pmu.set_local_vector(0x400)


@pytest.mark.parametrize(
    ("number", "value"), [(0x186, 1 << 32), (0x38F, 1 << 4), (0x38F, 1 << 35), (0x309, 1 << 48), (0x38D, 1 << 12)]
)
def test_reserved_bits_of_the_pmus_registers_fault(number: int, value: int) -> None:
    _, cpu, _ = perfmon()
    with pytest.raises(UndefinedRegister):
        cpu.system_registers.check_value(Msr(number), value)
    cpu.system_registers.check_value(Msr(number), 1)
