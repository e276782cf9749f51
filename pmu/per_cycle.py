"""What is known of single cycles: thresholds, which make a counter count cycles instead of events.

x86's select registers have CMASK (count the cycles with at least so many events), INV (those with fewer) and E (count
where that begins). A counter bank adds up what probes fire and has no single cycles, so a threshold counts only where
another probe, or the event itself, is the number of those cycles. Of edges nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from emulator.probes import Probe
from pmu.event import Event

NEVER = "never: as often as that it cannot happen in one cycle"
_STATES = (  # of a cycle: once in it, or not
    Probe.CYCLES, Probe.CYCLES_RETIRING, Probe.STALL_FRONTEND, Probe.STALL_BACKEND, Probe.STALL_BACKEND_MEMORY,
)  # fmt: skip
_ONCE_AN_INSTRUCTION = {  # not loads and stores, which an instruction with REP makes many of
    Probe.INST_RETIRED, Probe.BR_RETIRED, Probe.BR_COND, Probe.BR_COND_TAKEN, Probe.BR_IMMED, Probe.BR_INDIRECT,
    Probe.BR_CALL, Probe.BR_RETURN, Probe.BR_TAKEN, Probe.LOCKED,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Threshold:
    """What the fields of a select register ask for."""

    cmask: int  # 0: none, and INV is ignored
    invert: bool
    edge: bool

    @property
    def text(self) -> str:
        fields = [*([f"cmask={self.cmask}"] if self.cmask else []), *(["inv"] if self.invert else [])]
        return "".join(f":{field}" for field in [*fields, *(["edge"] if self.edge else [])])


@dataclass(frozen=True, slots=True)
class _Cycles:
    """Those in which an event happens: what counts them, and how often it happens in one at most (None: who knows)."""

    probes: tuple[Probe, ...]
    less: tuple[Probe, ...] = ()
    most: int | None = 1


def _cycles_of(event: Event, *, one_a_cycle: bool) -> _Cycles | None:
    """`one_a_cycle`: the core is the ideal one, on which each instruction has a cycle of its own."""
    if not event.less and len(event.probes) == 1:
        (probe,) = event.probes
        if probe in _STATES:
            return _Cycles(event.probes)
        if probe is Probe.UOPS_RETIRED:
            return _Cycles((Probe.CYCLES_RETIRING,), most=None)
    if one_a_cycle and len(event.probes) == 1 and {*event.probes, *event.less} <= _ONCE_AN_INSTRUCTION:
        return _Cycles(event.probes, event.less)
    return None


def with_threshold(event: Event, code: int, threshold: Threshold, *, one_a_cycle: bool) -> Event | None:
    """`event` under `threshold`, an event of its own with this code; None where nobody here knows it."""
    variant = replace(event, code=code, name=event.name + threshold.text, listed=False)
    if not threshold.cmask:
        return None if threshold.edge else variant
    cycles = _cycles_of(event, one_a_cycle=one_a_cycle)
    if cycles is None:
        return None
    beyond = cycles.most is not None and threshold.cmask > cycles.most
    if beyond and not threshold.invert:
        return replace(variant, probes=(), less=(), note=NEVER)  # and where there is no cycle, there is no edge
    if threshold.edge or not (beyond or threshold.cmask == 1):
        return None
    if beyond:
        return replace(variant, probes=(Probe.CYCLES,), less=())
    if not threshold.invert:
        return replace(variant, probes=cycles.probes, less=cycles.less)
    if cycles.probes == (Probe.CYCLES,):
        return replace(variant, probes=(), less=(), note="never: it happens in each cycle")
    return replace(variant, probes=(Probe.CYCLES, *cycles.less), less=cycles.probes)
