"""A PMU without a machine: registers by name and field, from each privilege level, and probes that fire by hand.

What registers do is the device's, which other tests here hold to its manual, on this bank and on the core's own.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pmu.event import UnknownEvent
from pmu.live.access import AccessError
from pmu.live.live_pmu import LivePmu, open_pmu
from pmu.model import models

EL0, EL1, EL2, EL3 = "EL0", "EL1", "EL2", "EL3"
RESET_LEVELS = {"aarch64": EL1, "x86_64": "ring 0", "": "PLV0"}


def counting(model: str = "pmuv3p9", event: str = "INST_RETIRED") -> LivePmu:
    """Event counter 0 of a PMUv3 counts, and would interrupt."""
    pmu = open_pmu(model)
    pmu.PMEVTYPER0_EL0.evtCount = pmu.code(event)
    pmu.PMCNTENSET_EL0 = 1
    pmu.PMINTENSET_EL1 = 1
    pmu.PMCR_EL0.E = 1
    return pmu


@pytest.mark.parametrize("name", models())
def test_every_register_of_every_pmu_is_read_or_refused(name: str) -> None:
    pmu = open_pmu(name)
    read = []
    for register in pmu.registers:
        try:
            value = pmu.read(register)
        except AccessError:
            continue
        assert repr(value).startswith(f"{register}{{")
        assert pmu.read(register) == getattr(pmu, register) == value
        read.append(register)
    assert len(read) >= 10
    assert str(pmu).splitlines()[0].partition("{")[0] in read


def test_five_lines_of_a_drivers_test() -> None:
    pmu = open_pmu("pmuv3p9")
    pmu.PMEVTYPER0_EL0.evtCount = pmu.code("INST_RETIRED")
    pmu.PMCNTENSET_EL0, pmu.PMCR_EL0.E = 1, 1
    pmu.run(1000)
    assert pmu.PMEVCNTR0_EL0 == 1000


def test_a_value_is_a_number_with_fields_as_it_was_read() -> None:
    pmu = counting()
    value = pmu.PMCR_EL0
    assert (value, value.E, value.N, value & 1) == (1 | 1 << 6 | 6 << 11, 1, 6, 1)
    pmu.PMCR_EL0.E = 0
    assert (value.E, pmu.PMCR_EL0.E) == (1, 0)
    assert repr(value) == "PMCR_EL0{E=1 LC=1 N=6}"
    assert repr(pmu.PMEVTYPER0_EL0) == "PMEVTYPER0_EL0{evtCount=0x8}"


def test_a_field_is_written_as_software_writes_it() -> None:
    """The other fields go along as they were read: ones that clear do so."""
    pmu = counting()
    pmu.PMOVSSET_EL0 = 0b11
    pmu.PMOVSCLR_EL0.C = 1
    assert pmu.PMOVSCLR_EL0 == 0


def test_runs_end_at_the_interrupt() -> None:
    pmu = counting()
    pmu.PMCR_EL0.LP = 1
    pmu.PMEVCNTR0_EL0 = (1 << 64) - 997
    assert (pmu.run(10_000, until_interrupt=True), pmu.interrupt) == (997, True)
    assert (pmu.PMEVCNTR0_EL0, pmu.PMOVSCLR_EL0) == (0, 1)
    assert pmu.run(10, until_interrupt=True) == 0  # it is still asserted
    pmu.PMOVSCLR_EL0 = 1
    assert (pmu.run(10, until_interrupt=True), pmu.interrupt) == (10, False)


def test_chained_counters_and_freezing() -> None:
    pmu = counting("pmuv3p1")
    pmu.PMEVTYPER1_EL0.evtCount = pmu.code("CHAIN")
    pmu.PMCNTENSET_EL0, pmu.PMINTENCLR_EL1, pmu.PMINTENSET_EL1 = 2, 1, 2
    pmu.PMEVCNTR0_EL0, pmu.PMEVCNTR1_EL0 = (1 << 32) - 5, (1 << 32) - 2
    assert pmu.run(1 << 40, until_interrupt=True) == 5 + (1 << 32)
    assert (pmu.PMEVCNTR0_EL0, pmu.PMEVCNTR1_EL0) == (0, 0)
    pmu = counting("pmuv3p7")
    pmu.PMCR_EL0.FZO = 1
    pmu.PMEVCNTR0_EL0 = (1 << 32) - 5
    assert pmu.run(100) == 100
    assert pmu.PMEVCNTR0_EL0 == 1 << 32  # overflowed at 32 bits, and stands there


@pytest.mark.parametrize(
    ("fields", "counted"),
    [
        ({}, {EL0, EL1, EL3}),
        ({"P": 1}, {EL0}),  # with M = 0: EL3 as EL1 of the other Security state
        ({"U": 1}, {EL1, EL3}),
        ({"NSH": 1}, {EL0, EL1, EL2, EL3}),
        ({"M": 1}, {EL0, EL1}),
        ({"P": 1, "NSK": 1, "M": 1}, {EL0, EL1, EL3}),
    ],
)
def test_a_counter_counts_at_the_levels_of_its_filter(fields: dict[str, int], counted: set[str]) -> None:
    found = set()
    for level in (EL0, EL1, EL2, EL3):
        pmu = counting()
        for name, value in fields.items():
            setattr(pmu.PMEVTYPER0_EL0, name, value)
        pmu.at(level).run(10)
        found |= {level} if pmu.PMEVCNTR0_EL0 == 10 else set()
        assert pmu.PMEVCNTR0_EL0 in (0, 10)
    assert found == counted


def test_events_fire_by_themselves() -> None:
    pmu = counting(event="L1D_CACHE_REFILL")
    pmu.PMCNTENSET_EL0.C = 1
    pmu.fire("L1D_CACHE_REFILL", 7)
    pmu.fire("L1D_REFILL_STORE", 3)  # the core's probe, of which the event counts two
    pmu.fire("BR_RETIRED", 100)
    assert (pmu.PMEVCNTR0_EL0, pmu.PMCCNTR_EL0) == (10, 0)
    pmu.fire("CYCLES", 5)
    assert pmu.PMCCNTR_EL0 == 5


def prepared(model: str, **registers: int) -> LivePmu:
    pmu = open_pmu(model)
    highest = pmu.at(pmu.levels[-1])
    for name, value in registers.items():
        highest.write(name, value)
    return pmu


Access = Callable[[LivePmu], object]
REFUSED: list[tuple[str, dict[str, int], str, Access, str, str]] = [
    ("pmuv3p9", {}, EL0, lambda pmu: pmu.PMCCNTR_EL0, "trap to EL1", "read of PMCCNTR_EL0 at EL0"),
    ("pmuv3p9", {}, EL0, lambda pmu: pmu.PMINTENSET_EL1, "undefined", "read of PMINTENSET_EL1 at EL0"),
    ("pmuv3p9", {"MDCR_EL2": 1 << 6 | 6}, EL1, lambda pmu: pmu.PMCR_EL0, "trap to EL2", "TPM=1"),
    ("pmuv3p9", {"MDCR_EL2": 2}, EL1, lambda pmu: pmu.write("PMEVCNTR2_EL0", 0), "trap to EL2", "HPMN=2"),
    ("pmuv3p9", {"MDCR_EL3": 1 << 6}, EL2, lambda pmu: pmu.PMCR_EL0, "trap to EL3", "TPM=1"),
    ("pmuv3p9", {}, EL1, lambda pmu: pmu.MDCR_EL2, "undefined", "read of MDCR_EL2 at EL1"),
    ("pmuv3p9", {}, EL1, lambda pmu: pmu.PMEVCNTR6_EL0, "undefined", "there are 6 event counters"),
    ("pmuv3p9", {}, EL1, lambda pmu: pmu.PMSWINC_EL0, "undefined", "read of PMSWINC_EL0 at EL1"),
    ("redwood_cove", {}, "ring 3", lambda pmu: pmu.IA32_PMC0, "#GP(0)", "MSRs are the kernel's"),
    ("redwood_cove", {}, "ring 0", lambda pmu: pmu.write("IA32_PERFEVTSEL0", 1 << 40), "#GP(0)", "reserved"),
    ("redwood_cove", {}, "ring 0", lambda pmu: pmu.write("IA32_PERF_GLOBAL_STATUS", 0), "#GP(0)", "read-only"),
    ("redwood_cove", {}, "ring 0", lambda pmu: pmu.rdpmc(99), "#GP(0)", "RDPMC of 0x63 at ring 0"),
    ("skylake", {}, "ring 3", lambda pmu: pmu.rdpmc(0), "#GP(0)", "CR4.PCE is 0"),
    ("zen5", {}, "ring 3", lambda pmu: pmu.PERF_CTL0, "#GP(0)", "read of PERF_CTL0 at ring 3"),
    ("loongarch", {}, "PLV3", lambda pmu: pmu.PERFCNTR0, "IPE", "read of PERFCNTR0 at PLV3"),
    ("loongarch", {"MISC": 1 << 10}, "PLV3", lambda pmu: pmu.PERFCNTR0, "IPE", "read of PERFCNTR0 at PLV3"),
    ("loongarch", {"MISC": 1 << 11}, "PLV3", lambda pmu: pmu.write("PERFCNTR0", 0), "IPE", "write of PERFCNTR0"),
    ("loongarch", {}, "PLV0", lambda pmu: pmu.PERFCNTR4, "undefined", "read of PERFCNTR4 at PLV0"),
]


@pytest.mark.parametrize(("model", "registers", "level", "access", "exception", "text"), REFUSED)
def test_what_is_refused_names_the_exception(
    model: str, registers: dict[str, int], level: str, access: Access, exception: str, text: str
) -> None:
    with pytest.raises(AccessError) as raised:
        access(prepared(model, **registers).at(level))
    assert raised.value.exception == exception
    assert f": {exception}" in str(raised.value)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("model", "registers", "level", "access"),
    [
        ("pmuv3p9", {"PMUSERENR_EL0": 1}, EL0, lambda pmu: pmu.PMEVCNTR0_EL0),
        ("redwood_cove", {"CR4": 1 << 8, "IA32_A_PMC0": 7}, "ring 3", lambda pmu: pmu.rdpmc(0) - 7),
        ("redwood_cove", {}, "ring 0", lambda pmu: pmu.rdpmc(1 << 30)),
        ("zen5", {"CR4": 1 << 8}, "ring 3", lambda pmu: pmu.rdpmc(5)),
        ("loongarch", {"MISC": 1 << 11}, "PLV3", lambda pmu: pmu.PERFCNTR3),
    ],
)
def test_what_is_allowed(model: str, registers: dict[str, int], level: str, access: Access) -> None:
    assert access(prepared(model, **registers).at(level)) == 0


def test_counting_by_ring() -> None:
    pmu = open_pmu("zen5")
    pmu.PERF_CTL0 = pmu.code("ex_ret_instr")
    pmu.PERF_CTL0.User, pmu.PERF_CTL0.Int, pmu.PERF_CTL0.En = 1, 1, 1
    pmu.PERF_CTR0 = (1 << 48) - 100
    pmu.run(1000)  # at ring 0
    assert pmu.PERF_CTR0 == (1 << 48) - 100
    assert pmu.at("ring 3").run(1000, until_interrupt=True) == 100
    pmu.take_interrupt()
    assert (pmu.interrupt, pmu.PerfCntrGlobalStatus.PerfCntrOvfl) == (False, 1)


@pytest.mark.parametrize("level", ["PLV0", "PLV1", "PLV2", "PLV3"])
def test_counting_by_privilege_level(level: str) -> None:
    pmu = open_pmu("loongarch")
    pmu.PERFCTRL0.EVENT = pmu.code("INSTRUCTIONS_RETIRED")
    setattr(pmu.PERFCTRL0, level, 1)
    for each in pmu.levels:
        pmu.at(each).run(10 if each == level else 1000)
    assert pmu.PERFCNTR0 == 10


def test_bad_input_is_one_line_that_says_what_there_is() -> None:
    pmu = open_pmu("pmuv3p9")
    with pytest.raises(AttributeError, match="PMU pmuv3p9 has no register PMCR; near are PMCR_EL0"):
        _ = pmu.PMCR
    with pytest.raises(AttributeError, match="PMCR_EL0 has no field EE; it has E, P, C, D, X, "):
        pmu.PMCR_EL0.EE = 1
    with pytest.raises(ValueError, match=r"PMEVTYPERn_EL0\.evtCount: 0x10000 does not fit in 16 bits"):
        pmu.PMEVTYPER0_EL0.evtCount = 1 << 16
    with pytest.raises(ValueError, match="PMCR_EL0: -0x1 is not a number of 64 bits"):
        pmu.PMCR_EL0 = -1
    with pytest.raises(ValueError, match="PMU pmuv3p9 has no level 'EL4'; it has EL0, EL1, EL2, EL3"):
        pmu.at("EL4")
    with pytest.raises(UnknownEvent, match="no event 'INST_RETIRE'; near are INST_RETIRED"):
        pmu.fire("INST_RETIRE")
    with pytest.raises(ValueError, match="SW_INCR is fired by nothing: counted by writes to PMSWINC_EL0"):
        pmu.fire("SW_INCR")
    with pytest.raises(AttributeError, match="RDPMC is x86's"):
        pmu.rdpmc(0)
    with pytest.raises(ValueError, match="no PMU model 'pmuv4'; there are armv8_pmuv3"):
        open_pmu("pmuv4")
    with pytest.raises(ValueError, match="pmuv3p9: 32 event counters; PMUv3 has 0 to 31"):
        open_pmu("pmuv3p9", 32)
    assert open_pmu("pmuv3p9", 31).PMCR_EL0.N == 31
