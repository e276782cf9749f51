"""Which exact count the samples of an event are to be held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from perfcore.abi.constants import PerfType
from perfemu.errors import PerfemuError
from perfemu.events.spec import EventSpec, parse_modifiers
from perfemu.session import Session

_CNT_CTL = 1 << 19  # of ibs_op's config: ops, not cycles
_FILTERS = 0b111 << 32  # of arm_spe_0's: branches, loads, stores


def _of_ibs_op(spec: EventSpec) -> str:
    return "instructions" if spec.config & _CNT_CTL else "cycles"


def _of_spe(spec: EventSpec) -> str:
    if spec.config & _FILTERS or spec.config1 or spec.config2:
        raise PerfemuError(f"{spec.name}: its filters leave a part of all instructions, which is not counted")
    return "instructions"


_OF_UNITS: dict[str, Callable[[EventSpec], str]] = {  # PMU of a unit that samples -> the event that leads to each
    "ibs_op": _of_ibs_op,
    "arm_spe_0": _of_spe,
}
_WHY_NOT = {
    PerfType.SOFTWARE: "the kernel counts it: no instruction makes it",
    PerfType.TRACEPOINT: "the kernel counts it: no instruction makes it",
    PerfType.BREAKPOINT: "record --exact does not attribute breakpoints",
}


def population(session: Session, spec: EventSpec) -> EventSpec:
    """The event, in user mode and of no group, whose occurrences `spec` samples. PerfemuError: why there is none."""
    if spec.counts_nothing:
        raise PerfemuError(f"{spec.name}: there is no hypervisor")
    if spec.source is not None:
        if spec.source.name not in _OF_UNITS:
            if spec.traces:
                raise PerfemuError(f"{spec.name}: its unit traces all: there is nothing sampled")
            raise PerfemuError(f"{spec.name}: no instruction is known to make what it samples")
        (alone,) = session.parse([_OF_UNITS[spec.source.name](spec)])
        return session.opened_as(replace(alone, modifiers=parse_modifiers("u")))
    if not spec.is_hardware:
        raise PerfemuError(f"{spec.name}: {_WHY_NOT[PerfType(spec.type)]}")
    modifiers = parse_modifiers("".join(letter for letter in spec.modifiers.text if letter in "ukh"))
    return replace(spec, modifiers=modifiers, leads=True, group_size=1, period=None, frequency=None)
