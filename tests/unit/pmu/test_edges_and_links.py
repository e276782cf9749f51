"""Edges and links of PMUv3 against the manual's own function, Arm ARM DDI 0487, "PMUCountValue", cycle by cycle.

A counter has only the totals of probes: what it says is held against the function, applied to each cycle of a run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pytest

from emulator.cpu import Level
from emulator.probes import Probe
from pmu.arm.pmuv3 import PmuV3
from pmu.arm.registers import PMCNTENSET_EL0, PMCR_EL0, PMMIR_EL1, PMEVCNTRn_EL0, PMEVTYPERn_EL0
from pmu.model import model
from unit.pmu.fake_bank import FakeBank

SW_INCR, INST_RETIRED, CPU_CYCLES, CHAIN = 0, 8, 0x11, 0x1E
STALL_FRONTEND, STALL_BACKEND, STALL, STALL_BACKEND_MEM = 0x23, 0x24, 0x3C, 0x4005
EVENTS = {  # what happens once in a cycle: in which of those below
    CPU_CYCLES: "dfmb",
    STALL_FRONTEND: "f",
    STALL_BACKEND: "mb",
    STALL_BACKEND_MEM: "m",
    STALL: "fmb",
}
FIRES = {  # in a cycle of this kind: d that dispatches, f without supply, m that waits for memory, b for another thing
    "d": (),
    "f": (Probe.STALL_FRONTEND,),
    "m": (Probe.STALL_BACKEND, Probe.STALL_BACKEND_MEMORY),
    "b": (Probe.STALL_BACKEND,),
}
BEGINS = {
    Probe.STALL_BEGINS: "fmb",
    Probe.STALL_FRONTEND_BEGINS: "f",
    Probe.STALL_BACKEND_BEGINS: "mb",
    Probe.STALL_BACKEND_MEMORY_BEGINS: "m",
}
RUN = "d" + "".join(random.Random(11).choices("dfmb", k=100))


@dataclass(frozen=True)
class Type:
    event: int
    tc: int = 0
    th: int = 0
    te: int = 0
    tlc: int = 0

    @property
    def value(self) -> int:
        return PMEVTYPERn_EL0.make(evtCount=self.event, TC=self.tc, TH=self.th, TE=self.te, TLC=self.tlc)

    @property
    def is_reserved(self) -> bool:
        """ReservedPMUThreshold: TLC 3; an edge of neither kind, or with TLC 1; one is added, and with TLC 2."""
        if self.tlc == 3 or (self.te and (self.tc % 4 == 0 or self.tlc == 1)):
            return True
        return not self.te and self.tlc == 2 and self.tc % 2 == 1


class Counter:
    """PMUCountValue, with what it remembers."""

    def __init__(self, kind: Type) -> None:
        self.kind = kind
        self.held = False

    def adds(self, base: int, below: int) -> int:
        kind = self.kind
        if kind.is_reserved or (kind.tc, kind.th, kind.te, kind.tlc) == (0, 0, 0, 0):
            return base
        holds = (base != kind.th, base == kind.th, base >= kind.th, base < kind.th)[kind.tc >> 1]
        held, self.held = self.held, holds
        if kind.te:
            happens = held != holds if kind.tc % 4 == 2 else holds and not held
            return happens * (below if kind.tlc == 2 else 1)
        if kind.tlc == 2:
            return holds * below
        return (1 if kind.tc & 1 else base) if holds else below * (kind.tlc == 1)


def by_the_manual(even: Type, odd: Type, run: str) -> tuple[int, int]:
    counters = Counter(even), Counter(odd)
    totals = [0, 0]
    for cycle in run:
        added = 0
        for n, counter in enumerate(counters):
            added = counter.adds(int(cycle in EVENTS.get(counter.kind.event, "")), added)
            totals[n] += added
    return totals[0], totals[1]


def happen(pmu: PmuV3, bank: FakeBank, run: str, level: Level = Level.USER) -> None:
    for before, cycle in zip(" " + run, run, strict=False):
        begun = [probe for probe, kinds in BEGINS.items() if cycle in kinds and before not in kinds]
        for probe in (Probe.CYCLES, *FIRES[cycle], *begun):
            bank.happen(1 << probe, 1, bank.counts_at(level))


def started(even: int, odd: int, enabled: int = 0b11) -> tuple[PmuV3, FakeBank, list[str]]:
    bank, told = FakeBank(8), list[str]()
    pmu = PmuV3(bank, model("pmuv3p9"))
    pmu.tell = told.append
    pmu.write(PMEVTYPERn_EL0, odd, 1)  # in this order: what the lower one counts is known later
    pmu.write(PMCNTENSET_EL0, enabled)
    pmu.write(PMCR_EL0, 1)
    pmu.write(PMEVTYPERn_EL0, even, 0)
    told.clear()
    pmu.write(PMEVTYPERn_EL0, odd, 1)
    return pmu, bank, told


def counts(pmu: PmuV3) -> tuple[int, int]:
    return pmu.read(PMEVCNTRn_EL0, 0), pmu.read(PMEVCNTRn_EL0, 1)


def types(events: Sequence[int], links: Sequence[int]) -> Iterator[Type]:
    for event, tc, th, te, tlc in product(events, range(8), (0, 1, 2), (0, 1), links):
        yield Type(event, tc, th, te, tlc)


def test_each_combination_counts_what_the_manual_says_or_is_refused() -> None:
    evens = [Type(STALL_BACKEND), Type(STALL_BACKEND_MEM, tc=5, th=1), Type(STALL, tc=1, te=1), Type(CPU_CYCLES)]
    tried, known, edges = 0, 0, 0
    for even, odd in product(evens, types((STALL_FRONTEND, STALL_BACKEND, STALL_BACKEND_MEM, STALL), (0, 1, 2, 3))):
        pmu, bank, told = started(even.value, odd.value)
        happen(pmu, bank, RUN)
        tried += 1
        if told:
            assert counts(pmu)[1] == 0
            continue
        known += 1
        edges += odd.te and not odd.is_reserved
        assert counts(pmu) == by_the_manual(even, odd, RUN), (even, odd)
    assert known > tried // 2
    assert edges > tried // 30


# An edge of what also holds in cycles that are like any other is one wherever counting begins, which nobody knows
@pytest.mark.parametrize(
    "kind",
    [
        Type(STALL_BACKEND, tc=3, te=1),  # ceases
        Type(STALL_BACKEND, tc=2, te=1),  # both
        Type(CPU_CYCLES, tc=1, te=1),
        Type(INST_RETIRED, tc=1, te=1),
        Type(INST_RETIRED, tc=5, th=1, tlc=1),
    ],
)
def test_what_is_not_known_is_told(kind: Type) -> None:
    pmu, _, told = started(Type(STALL_BACKEND).value, kind.value)
    assert len(told) == 1
    assert told[0].startswith(f"PMEVTYPER<n>_EL0 is {kind.value:#x}: ")
    assert told[0].endswith("cannot be counted here, and reads as 0")
    assert pmu.event_of(1) is None


def test_a_counter_below_that_is_disabled_adds_nothing() -> None:
    """V[n-1] is zero then: of "memory, or else what the other adds" memory is left."""
    odd = Type(STALL_BACKEND_MEM, tc=1, tlc=1)
    pmu, bank, told = started(Type(STALL_BACKEND).value, odd.value, enabled=0b10)
    happen(pmu, bank, RUN)
    assert counts(pmu) == (0, RUN.count("m"))
    pmu.write(PMCNTENSET_EL0, 1)
    happen(pmu, bank, RUN)
    backend = RUN.count("m") + RUN.count("b")
    assert counts(pmu) == (backend, RUN.count("m") + backend)
    assert told == []


def test_where_the_counter_below_is_filtered_it_adds_nothing() -> None:
    """The even one counts at EL1 alone: what the odd one takes of it is counted there, too, and nowhere else."""
    odd = Type(STALL_BACKEND, tc=1, tlc=2).value ^ PMEVTYPERn_EL0.make(TC=1)  # TC 0: where it is not 0, V[n-1]
    pmu, bank, told = started(Type(STALL_BACKEND_MEM).value | PMEVTYPERn_EL0.U.mask, odd)
    happen(pmu, bank, RUN)
    assert counts(pmu) == (0, 0)
    happen(pmu, bank, RUN, Level.KERNEL)
    assert counts(pmu) == (RUN.count("m"), RUN.count("m"))
    assert told == []


def test_a_level_at_which_only_one_counts_is_told_where_it_matters() -> None:
    odd = Type(STALL_BACKEND_MEM, tc=1, tlc=1).value
    _, _, told = started(Type(STALL_BACKEND).value | PMEVTYPERn_EL0.U.mask, odd)
    assert len(told) == 1


def test_link_bits_are_of_odd_counters() -> None:
    every = PMEVTYPERn_EL0.TLC.mask | PMEVTYPERn_EL0.TE.mask
    pmu, _, _ = started(every, every)
    assert [pmu.read(PMEVTYPERn_EL0, n) for n in (0, 1)] == [PMEVTYPERn_EL0.TE.mask, every]
    assert PMMIR_EL1(pmu.read(PMMIR_EL1)).EDGE == 2


@pytest.mark.parametrize(
    ("options", "kept", "edge"),
    [((), 0, 0), (("FEAT_PMUv3_TH",), 0, 0), (("FEAT_PMUv3_TH", "FEAT_PMUv3_EDGE"), PMEVTYPERn_EL0.TE.mask, 1)],
)
def test_without_the_features_their_bits_are_zero(options: tuple[str, ...], kept: int, edge: int) -> None:
    pmu = PmuV3(FakeBank(9), replace(model("pmuv3p9"), options=frozenset(options)))
    pmu.write(PMEVTYPERn_EL0, PMEVTYPERn_EL0.TLC.mask | PMEVTYPERn_EL0.TE.mask, 1)
    assert (pmu.read(PMEVTYPERn_EL0, 1), PMMIR_EL1(pmu.read(PMMIR_EL1)).EDGE) == (kept, edge)


def test_an_option_without_what_it_extends_is_refused() -> None:
    options = frozenset({"FEAT_PMUv3_TH", "FEAT_PMUv3_TH2"})
    with pytest.raises(ValueError, match="pmuv3p9: FEAT_PMUv3_TH2 needs FEAT_PMUv3_EDGE, too"):
        PmuV3(FakeBank(9), replace(model("pmuv3p9"), options=options))


def test_chain_and_sw_incr_look_at_no_link() -> None:
    """SW_INCR counts what is written, CHAIN the wraps of the counter below, whatever TLC says."""
    for event in (SW_INCR, CHAIN):
        pmu, bank, told = started(Type(CPU_CYCLES).value, Type(event, tlc=2, tc=4).value)
        pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 0)
        happen(pmu, bank, "d")
        assert counts(pmu)[1] == (event == CHAIN)
        assert told == []
