"""What an odd event counter adds with PMEVTYPER<n>_EL0.TLC: FEAT_PMUv3_TH2. Arm ARM DDI 0487, "PMUCountValue".

TLC brings in what the counter below adds in the same cycle, after its own threshold and edge: V[n-1]. This is known
where it does not matter, or where the states of dispatch in a cycle tell both (`pmu/cycle_states.py`). Events are
coincident, in the manual's word, by these states alone.
"""

from __future__ import annotations

from dataclasses import replace

from pmu.arm.registers import PMEVTYPERn_EL0
from pmu.cycle_states import EVERY, NEVER, NO_CYCLE, states_of
from pmu.event import Event
from pmu.model import PmuModel
from pmu.per_cycle import Condition, beginning, counting, of_arm

ELSE, THEN = 1, 2  # TLC: where the condition does not hold, V[n-1] is added; where it does
NOTHING = Event(0, "of no counter", (), note=NO_CYCLE)
_SELECTING = PMEVTYPERn_EL0.evtCount.mask
_CODE = _SELECTING | PMEVTYPERn_EL0.TC.mask | PMEVTYPERn_EL0.TH.mask | PMEVTYPERn_EL0.TE.mask


def is_reserved(selected: int) -> bool:
    """Whether TC, TE and TLC have a combination that the manual reserves: ReservedPMUThreshold.

    Which is CONSTRAINED UNPREDICTABLE; here the event is counted as if TC, TE, TLC and TH were zero.
    """
    fields = PMEVTYPERn_EL0(selected)
    if fields.TE:
        return not fields.TC & 0b11 or fields.TLC & ELSE == ELSE
    return fields.TLC == ELSE | THEN or (fields.TLC == THEN and bool(fields.TC & 1))


def linked(model: PmuModel, selected: int, below: Event | None) -> Event | None:
    """What a counter with this PMEVTYPER<n>_EL0, whose TLC is not reserved nor zero, counts; None: nobody knows.

    `below`: what counter n-1 counts; None: nobody knows.
    """
    fields = PMEVTYPERn_EL0(selected)
    own = model.events.by_code(fields.evtCount)
    if own is None:
        own = replace(NOTHING, code=fields.evtCount) if model.cannot_know(fields.evtCount) is None else None
    if own is None:
        return None
    condition = of_arm(fields.TH, fields.TC >> 1, fields.TC & 1, bool(fields.TE))
    where = condition.states(own)
    if where is None:
        return None
    variant = replace(own, code=selected & _CODE, name=f"{own.name}{condition.text}:link={fields.TLC}", listed=False)
    if fields.TLC == ELSE:
        return _or_else(condition, where, own, variant, below)
    return _then(condition, where, variant, below)


def _or_else(condition: Condition, where: int, own: Event, variant: Event, below: Event | None) -> Event | None:
    if where == EVERY:
        return counting(variant, EVERY) if condition.adds_one else variant
    if where == NEVER:
        return below
    states, others = states_of(own), None if below is None else states_of(below)
    if states is None or others is None:
        return None
    return counting(variant, (where if condition.adds_one else where & states) | others & ~where)


def _then(condition: Condition, where: int, variant: Event, below: Event | None) -> Event | None:
    if where == NEVER:
        return counting(variant, NEVER)
    if where == EVERY and not condition.edge:
        return below
    others = None if below is None else states_of(below)
    if others is None or condition.falling:
        return None
    if not condition.edge or not where & others:
        return counting(variant, where & others)
    return beginning(variant, where) if where & others == where else None
