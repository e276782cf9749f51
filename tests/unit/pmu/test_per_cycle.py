"""Thresholds against the manuals' definitions: Intel SDM volume 3, "Performance Event Select Registers", and Arm ARM
DDI 0487, "PMEVTYPER<n>_EL0", TC.

It is applied here to each cycle of random runs; a counter has only the totals of the probes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product

import pytest

from emulator.probes import Probe
from pmu.event import Event, UnknownEvent
from pmu.model import PmuModel, model

CYCLES = 400
CMASK, INV, EDGE = 24, 1 << 23, 1 << 18


def by_the_manual(happened: Sequence[int], cmask: int, invert: bool, edge: bool) -> int:
    """`happened`: how often the event did, in each cycle."""
    if cmask == 0 and not edge:
        return sum(happened)  # and INV is ignored
    holds = [(often < cmask) if invert and cmask else often >= max(cmask, 1) for often in happened]
    if edge:
        return sum(now and not before for before, now in zip([False, *holds], holds, strict=False))
    return sum(holds)


BEGINS = {
    Probe.STALL_FRONTEND: Probe.STALL_FRONTEND_BEGINS,
    Probe.STALL_BACKEND: Probe.STALL_BACKEND_BEGINS,
    Probe.STALL_BACKEND_MEMORY: Probe.STALL_BACKEND_MEMORY_BEGINS,
}


def out_of_order(rng: random.Random) -> list[dict[Probe, int]]:
    """In each cycle: so many micro-operations retire, and dispatch stands still for a reason or does not."""
    cycles: list[dict[Probe, int]] = []
    kinds = ((), (Probe.STALL_FRONTEND,), (Probe.STALL_BACKEND,), (Probe.STALL_BACKEND, Probe.STALL_BACKEND_MEMORY))
    before: tuple[Probe, ...] = ()
    for _ in range(CYCLES):
        retired = rng.choice((0, 0, 1, 3, 8))
        one = {Probe.CYCLES: 1, Probe.UOPS_RETIRED: retired, Probe.CYCLES_RETIRING: int(retired > 0)}
        stalls = rng.choice(kinds)
        begins = {BEGINS[stall]: 1 for stall in stalls if stall not in before}
        cycles.append(one | dict.fromkeys(stalls, 1) | begins | {Probe.STALL_BEGINS: int(bool(stalls) and not before)})
        before = stalls
    return cycles


def ideal(rng: random.Random) -> list[dict[Probe, int]]:
    """An instruction a cycle: a branch that is conditional, and taken, or is not; a locked one; any other."""
    kinds: tuple[tuple[Probe, ...], ...] = (
        (),
        (Probe.LOCKED,),
        (Probe.BR_RETIRED, Probe.BR_COND),
        (Probe.BR_RETIRED, Probe.BR_COND, Probe.BR_COND_TAKEN, Probe.BR_TAKEN),
        (Probe.BR_RETIRED, Probe.BR_CALL, Probe.BR_TAKEN),
    )
    always = (Probe.CYCLES, Probe.INST_RETIRED)
    return [dict.fromkeys((*always, *rng.choice(kinds)), 1) for _ in range(CYCLES)]


def total(event: Event, probes: dict[Probe, int]) -> int:
    return sum(probes.get(p, 0) for p in event.probes) - sum(probes.get(p, 0) for p in event.less)


IDEAL = model("intel_arch_perfmon").limited_to(lambda probe: probe.source.name in ("INSTRUCTION", "CLOCK"))
SKYLAKE = model("skylake")
ZEN5 = model("zen5")
RUNS = [(SKYLAKE, out_of_order), (IDEAL, ideal)]


@pytest.mark.parametrize(("pmu", "run"), RUNS, ids=["skylake", "ideal"])
def test_what_is_counted_is_what_the_manual_says(
    pmu: PmuModel, run: Callable[[random.Random], list[dict[Probe, int]]]
) -> None:
    cycles = run(random.Random(7))
    totals = {probe: sum(one.get(probe, 0) for one in cycles) for probe in Probe}
    simulated = {probe for one in cycles for probe in one}
    tried, known = 0, 0
    for plain in pmu.events:
        own = plain.code > 0xFFFF or any(fixed.event == plain.name for fixed in pmu.fixed_counters)
        if own or not {*plain.probes, *plain.less} <= simulated or plain.code in (0x010E, 0x01B1):
            continue
        happened = [total(plain, one) for one in cycles]
        for cmask, invert, edge in product((0, 1, 2, 3, 255), (False, True), (False, True)):
            code = plain.code | cmask << CMASK | invert * INV | edge * EDGE
            tried += 1
            event = pmu.by_code(code)
            if event is not None:
                known += 1
                assert total(event, totals) == by_the_manual(happened, cmask, invert, edge), event.name
    assert known > tried // 4


@pytest.mark.parametrize(
    ("pmu", "code", "name"),
    [
        (IDEAL, 0x0100_00C0, "INST_RETIRED.ANY_P:cmask=1"),
        (IDEAL, 0x0180_10C4, "BR_INST_RETIRED.NOT_TAKEN"),
        (SKYLAKE, 0x0100_003C, "CPU_CLK_UNHALTED.THREAD_P:cmask=1"),
        (SKYLAKE, 0x0100_02C2, "UOPS_RETIRED.RETIRE_SLOTS:cmask=1"),
        (SKYLAKE, 0x0080_00C0, "INST_RETIRED.ANY_P:inv"),
        (SKYLAKE, 0x0180_02C2, "UOPS_RETIRED.STALL_CYCLES"),  # the vendor's own row goes before
        (SKYLAKE, 0x0104_01A2, "RESOURCE_STALLS.ANY:cmask=1:edge"),
        (SKYLAKE, 0x0004_01A2, "RESOURCE_STALLS.ANY:edge"),
        (SKYLAKE, 0x0184_010E, "UOPS_ISSUED.STALL_CYCLES:edge"),  # and with E it is an event of its own
        (SKYLAKE, 0x1404_14A3, "CYCLE_ACTIVITY.STALLS_MEM_ANY:edge"),
        (ZEN5, 0x0104_00A9, "de_op_queue_empty:cmask=1:edge"),
    ],
)
def test_it_is_named(pmu: PmuModel, code: int, name: str) -> None:
    event = pmu.by_code(code)
    assert (event is None) == (name == "BR_INST_RETIRED.NOT_TAKEN")  # which this list has not
    assert event is None or event.name == name


@pytest.mark.parametrize(
    ("pmu", "code", "field"),
    [
        (SKYLAKE, 0x0100_00C0, "cmask=1"),  # of instructions, several of which retire in a cycle
        (SKYLAKE, 0x0200_02C2, "cmask=2"),
        (SKYLAKE, 0x0004_003C, "edge=1"),
        (IDEAL, 0x0004_00C0, "edge=1"),
        (SKYLAKE, 0x0184_02C2, "edge=1"),  # of cycles without retirement
        (SKYLAKE, 0x0184_01A2, "edge=1"),  # where a stall ends
        (ZEN5, 0x0104_00C1, "edge=1"),
        (IDEAL, 0x0100_81D0, "cmask=1"),  # loads: one REP MOVS has many, in its one cycle
    ],
)
def test_what_is_not_known_is_refused_by_name(pmu: PmuModel, code: int, field: str) -> None:
    with pytest.raises(UnknownEvent, match=f"{field} in {code:#x}: this core cannot tell it of single cycles"):
        pmu.event_of(code)
    assert pmu.by_code(code) is None
    assert pmu.cannot_know(code) is not None


@pytest.mark.parametrize(
    ("code", "name"), [(0x0104_003C, "CPU_CLK_UNHALTED.RING0_TRANS"), (0x0104_01C3, "MACHINE_CLEARS.COUNT")]
)
def test_an_edge_that_the_vendor_has_a_name_for_is_refused_by_that(code: int, name: str) -> None:
    with pytest.raises(UnknownEvent, match=f"{code:#06x} is {name}, which this core cannot know"):
        SKYLAKE.event_of(code)


# ---- Arm's

TC, TH = 61, 32
ARM = model("pmuv3p9")
ARM_IDEAL = ARM.limited_to(lambda probe: probe.source.name in ("INSTRUCTION", "CLOCK"))
ARM_RUNS = [(ARM, out_of_order), (ARM_IDEAL, ideal)]
CPU_CYCLES, INST_RETIRED, STALL_BACKEND, OP_RETIRED, MEM_ACCESS = 0x11, 0x08, 0x24, 0x3A, 0x13


def by_arms_manual(happened: Sequence[int], control: int, threshold: int) -> int:
    """TC by its table: not equal, equal, at least, less; by how many there are, or (bit 0) by one."""
    holds = [
        lambda often: often != threshold,
        lambda often: often == threshold,
        lambda often: often >= threshold,
        lambda often: often < threshold,
    ][control >> 1]
    return sum((1 if control & 1 else often) for often in happened if holds(often))


@pytest.mark.parametrize(("pmu", "run"), ARM_RUNS, ids=["pmuv3p9", "ideal"])
def test_what_is_counted_is_what_arms_manual_says(
    pmu: PmuModel, run: Callable[[random.Random], list[dict[Probe, int]]]
) -> None:
    cycles = run(random.Random(8))
    totals = {probe: sum(one.get(probe, 0) for one in cycles) for probe in Probe}
    simulated = {probe for one in cycles for probe in one}
    tried, known = 0, 0
    for plain in pmu.events:
        if not plain.probes or not {*plain.probes, *plain.less} <= simulated:
            continue
        happened = [total(plain, one) for one in cycles]
        for control, threshold in product(range(8), (0, 1, 2, 3, 4095)):
            tried += 1
            event = pmu.by_code(plain.code | control << TC | threshold << TH)
            if event is not None:
                known += 1
                assert total(event, totals) == by_arms_manual(happened, control, threshold), event.name
    assert known > tried // 4


@pytest.mark.parametrize(
    ("config", "config1", "name"),
    [
        (OP_RETIRED, 1 << 5 | 2 << 3 | 1 << 2, "OP_RETIRED:threshold=1:threshold_compare=2:threshold_count=1"),
        (STALL_BACKEND, 1 << 5 | 3 << 3 | 1 << 2, "STALL_BACKEND:threshold=1:threshold_compare=3:threshold_count=1"),
        (MEM_ACCESS, 1 << 5 | 2 << 3, "MEM_ACCESS:threshold=1:threshold_compare=2:threshold_count=0"),  # all of them
        (CPU_CYCLES, 1 << 2, "CPU_CYCLES"),  # without a threshold Linux looks at nothing else
    ],
)
def test_an_attr_selects_a_threshold(config: int, config1: int, name: str) -> None:
    assert ARM.event_of(config, config1).name == name


def test_a_pmu_without_thresholds_says_so() -> None:
    with pytest.raises(UnknownEvent, match="threshold=3: this PMU has nothing like it"):
        model("neoverse_n1").event_of(OP_RETIRED, 3 << 5)


def test_what_is_not_known_of_single_cycles_is_refused() -> None:
    with pytest.raises(UnknownEvent, match=r"threshold=2 in .*: this core cannot tell it of single cycles"):
        ARM.event_of(OP_RETIRED, 2 << 5 | 2 << 3)
    with pytest.raises(UnknownEvent, match=r"threshold=1 in .*: this core cannot tell it"):
        ARM.event_of(INST_RETIRED, 1 << 5 | 2 << 3 | 1 << 2)
    assert ARM_IDEAL.event_of(INST_RETIRED, 1 << 5 | 2 << 3 | 1 << 2).probes == (Probe.INST_RETIRED,)
