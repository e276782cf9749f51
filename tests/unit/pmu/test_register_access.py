"""`reader` and `writer` are `read` and `write`, found once; and those of several registers, each of these in turn."""

from __future__ import annotations

import pytest

from emulator._native import Core, PhysicalMemory
from pmu.amd.core_counters import CoreCounters
from pmu.amd.registers import PERF_CTLx, PERF_CTRx
from pmu.arm.pmuv3 import PmuV3
from pmu.arm.registers import PMCCFILTR_EL0, PMCCNTR_EL0, PMICNTR_EL0, PMEVCNTRn_EL0, PMEVTYPERn_EL0
from pmu.intel.perfmon import Perfmon
from pmu.intel.registers import IA32_A_PMCx, IA32_FIXED_CTRx, IA32_PERFEVTSELx
from pmu.loongarch.performance_monitors import PerformanceMonitors
from pmu.loongarch.registers import PERFCNTRn
from pmu.model import model
from unit.pmu.fake_bank import FakeBank

PMUS = [
    ("pmuv3p1", PmuV3, (PMEVCNTRn_EL0, PMEVTYPERn_EL0), (PMCCNTR_EL0, PMCCFILTR_EL0)),
    ("pmuv3p9", PmuV3, (PMEVCNTRn_EL0, PMEVTYPERn_EL0), (PMCCNTR_EL0, PMICNTR_EL0)),
    ("intel_arch_perfmon", Perfmon, (IA32_A_PMCx, IA32_FIXED_CTRx, IA32_PERFEVTSELx), ()),
    ("zen4", CoreCounters, (PERF_CTRx, PERF_CTLx), ()),
    ("loongarch", PerformanceMonitors, (PERFCNTRn,), ()),
]


@pytest.mark.parametrize(("name", "kind", "numbered", "single"), PMUS, ids=[row[0] for row in PMUS])
@pytest.mark.parametrize("value", [0, 0x1234, 0xFFFF_FFFF, 0x7F_FFFF_FFFF])
def test_both_ways_lead_to_one_register(name, kind, numbered, single, value):
    pmu_model = model(name)
    pmu = kind(FakeBank(pmu_model.bank_size(pmu_model.counters)), pmu_model)
    places = [(register, 1) for register in numbered] + [(register, 0) for register in single]
    places = [place for place in places if pmu.can_read(place[0])]
    assert places
    for register, index in places:
        fits = value & register.declared if register is not IA32_PERFEVTSELx else value & 0xFFFF
        pmu.write(register, fits, index)
        expected = pmu.read(register, index)
        assert pmu.reader(register, index)() == expected
        pmu.write(register, 0, index)
        pmu.writer(register, index)(fits)
        assert pmu.read(register, index) == expected
    for register in numbered:
        with pytest.raises(ValueError):
            pmu.reader(register, 99)
        with pytest.raises(ValueError):
            pmu.writer(register, 99)(0)


def core_bank(size):
    return Core("x86_64", PhysicalMemory(1 << 20)).add_bank(size)


@pytest.mark.parametrize("bank", [FakeBank, core_bank])
@pytest.mark.parametrize(("name", "kind", "numbered", "single"), PMUS, ids=[row[0] for row in PMUS])
def test_several_registers_are_read_and_written_in_turn(name, kind, numbered, single, bank):
    pmu_model = model(name)
    pmu = kind(bank(pmu_model.bank_size(pmu_model.counters)), pmu_model)
    counters = [(numbered[0], 1), (numbered[0], 0), *((register, 0) for register in single)]
    counters = [place for place in counters if pmu.can_read(place[0])]
    for places in (counters, [*counters, (numbered[-1], 2)]):  # of the bank alone, and with others
        values = range(5, 5 + len(places))
        for (register, index), value in zip(places, values, strict=True):
            pmu.write(register, value, index)
        expected = [pmu.read(*place) for place in places]
        assert pmu.reader_of_all(places)() == expected
        write_all = pmu.writer_of_all(places)
        write_all([0] * len(places))
        assert [pmu.read(*place) for place in places] != expected
        write_all(values)
        assert [pmu.read(*place) for place in places] == expected
        with pytest.raises(ValueError):
            write_all([0])


@pytest.mark.parametrize("bank", [FakeBank, core_bank])
def test_no_counter_takes_more_than_its_bits(bank):
    pmu_model = model("intel_arch_perfmon")
    pmu = Perfmon(bank(pmu_model.bank_size(pmu_model.counters)), pmu_model)
    write = pmu.writer_of_all([(IA32_A_PMCx, 0), (IA32_A_PMCx, 1)])
    with pytest.raises(ValueError):
        write([0, 1 << pmu_model.counter_width_bits])
