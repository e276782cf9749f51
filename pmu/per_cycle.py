"""What is known of single cycles: thresholds, under which a counter looks at how often an event happens in each.

x86's select registers have CMASK (count the cycles with at least so many events), INV (those with fewer) and E (count
where that begins); Arm's PMEVTYPER<n>_EL0 has TH, TC and TE. A counter bank adds up what probes fire and has no single
cycles, so a threshold counts only where another probe, or the event itself, is the number of those cycles.

Edges are known of dispatch's stalls, each of which lies between two instructions: a counter that software starts and
stops has all of a stall or nothing of it. They are not known of conditions that hold in other cycles, too: of these one
begins whenever counting does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from emulator.probes import Probe
from pmu.cycle_states import EVERY, NEVER, NO_CYCLE, begin_of, states_of, totals_of
from pmu.event import Event

_ONCE_AN_INSTRUCTION = {  # not loads and stores, which an instruction with REP makes many of
    Probe.INST_RETIRED, Probe.BR_RETIRED, Probe.BR_COND, Probe.BR_COND_TAKEN, Probe.BR_IMMED, Probe.BR_INDIRECT,
    Probe.BR_CALL, Probe.BR_RETURN, Probe.BR_TAKEN, Probe.LOCKED,
}  # fmt: skip


class Compare(Enum):
    """How an event's number in a cycle compares with the threshold: Arm's TC, bits 2 and 1."""

    NOT_EQUAL = 0
    EQUAL = 1
    AT_LEAST = 2
    LESS = 3


@dataclass(frozen=True, slots=True)
class Condition:
    """What a counter with a threshold looks for in each cycle, and what it adds where that holds."""

    compare: Compare
    threshold: int
    adds_one: bool  # else as many as there are
    text: str  # as a suffix of the event's name
    edge: bool = False  # only where it begins to hold
    falling: bool = False  # ... and where it ceases

    def holds(self, often: int) -> bool:
        equal, less = often == self.threshold, often < self.threshold
        return {
            Compare.NOT_EQUAL: not equal,
            Compare.EQUAL: equal,
            Compare.AT_LEAST: not less,
            Compare.LESS: less,
        }[self.compare]

    def holds_from_one(self) -> bool | None:
        """Whether it does for each number but zero; None: for some."""
        orders = self.compare in (Compare.AT_LEAST, Compare.LESS)
        return self.holds(1) if self.threshold <= orders else None

    def states(self, event: Event) -> int | None:
        """Of a cycle, those in which it holds for `event`; None: they do not tell (`pmu.cycle_states`)."""
        states = states_of(event)
        if states is not None:
            return (states if self.holds(1) else 0) | (EVERY & ~states if self.holds(0) else 0)
        always = self.holds(0)
        return (EVERY if always else 0) if always is self.holds_from_one() else None


def of_x86(cmask: int, invert: bool, edge: bool) -> Condition:
    """CMASK, INV and E of a select register. Without CMASK, INV is ignored, and E asks for one event at least."""
    fields = [*([f"cmask={cmask}"] if cmask else []), *(["inv"] if invert else []), *(["edge"] if edge else [])]
    text = "".join(f":{field}" for field in fields)
    compare = Compare.LESS if invert and cmask else Compare.AT_LEAST
    return Condition(compare, max(cmask, int(edge)), cmask > 0, text, edge)


def of_arm(threshold: int, compare: int, count: int, edge: bool = False) -> Condition:
    """TH, TC bits 2 and 1, TC bit 0 and TE of PMEVTYPER<n>_EL0. With TE, TC bit 0 is 0 for both edges."""
    text = f":threshold={threshold}:threshold_compare={compare}:threshold_count={count}{':edge' if edge else ''}"
    return Condition(Compare(compare), threshold, bool(count) or edge, text, edge, edge and not count)


def counting(variant: Event, states: int) -> Event:
    """`variant` as an event that happens once in each cycle in these states."""
    probes, less = totals_of(states)
    return replace(variant, probes=probes, less=less) if states else replace(variant, probes=(), less=(), note=NO_CYCLE)


def beginning(variant: Event, states: int) -> Event | None:
    """... in the first of several in a row; None: nobody counts them."""
    begin = begin_of(states)
    if begin is not None:
        return replace(variant, probes=(begin,), less=())
    return None if states else counting(variant, states)


@dataclass(frozen=True, slots=True)
class _Cycles:
    """Those in which an event happens: what counts them, and whether it happens once in each of them."""

    probes: tuple[Probe, ...]
    less: tuple[Probe, ...] = ()
    once: bool = True


def _cycles_of(event: Event, *, one_a_cycle: bool) -> _Cycles | None:
    """`one_a_cycle`: the core is the ideal one, on which each instruction has a cycle of its own."""
    if not event.less and len(event.probes) == 1:
        (probe,) = event.probes
        if probe is Probe.CYCLES_RETIRING:
            return _Cycles(event.probes)
        if probe is Probe.UOPS_RETIRED:
            return _Cycles((Probe.CYCLES_RETIRING,), once=False)
    if one_a_cycle and len(event.probes) == 1 and {*event.probes, *event.less} <= _ONCE_AN_INSTRUCTION:
        return _Cycles(event.probes, event.less)
    return None


def under(condition: Condition, event: Event, code: int, *, one_a_cycle: bool) -> Event | None:
    """`event` under `condition`, an event of its own with this code; None where nobody here knows it."""
    variant = replace(event, code=code, name=event.name + condition.text, listed=False)
    if condition.holds_from_one() and not condition.adds_one and not condition.edge:
        return variant  # all that there are, in whatever cycles
    states, where = states_of(event), condition.states(event)
    if condition.edge:
        return None if where is None or (condition.falling and where) else beginning(variant, where)
    if states is not None and where is not None:
        return counting(variant, where if condition.adds_one else where & states)
    cycles = _cycles_of(event, one_a_cycle=one_a_cycle)
    if cycles is None:
        return None
    without = condition.holds(0)
    within = condition.holds(1) if cycles.once else condition.holds_from_one()
    if within is None:
        return None
    if not condition.adds_one:
        return variant if within else counting(variant, NEVER)
    if within:
        counted = _Cycles((Probe.CYCLES,)) if without else cycles
        return replace(variant, probes=counted.probes, less=counted.less)
    if without:
        return replace(variant, probes=(Probe.CYCLES, *cycles.less), less=cycles.probes)
    return counting(variant, NEVER)
