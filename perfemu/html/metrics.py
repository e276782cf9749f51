"""Metrics: what two events of a recording say together of a function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from perfemu.html.naming import bare_name

_CYCLES = re.compile(r"(cpu[-_])?cycles|cpu_clk_unhalted\.(thread|core)(_p)?", re.IGNORECASE)
_INSTRUCTIONS = re.compile(r"instructions|inst_retired(\.any(_p)?)?", re.IGNORECASE)
_MISSES = re.compile(r"miss|refill|mis_?pred|misp_", re.IGNORECASE)
_INSIDE = re.compile(r"\w+/([^,/]+)[^/]*/\w*")  # of a PMU, its slashes


class Metric(NamedTuple):
    """``scale * over / under``; both are numbers of events of the page."""

    title: str
    over: int
    under: int
    scale: int


def metrics(names: Sequence[str]) -> list[Metric]:
    """Those that events of these names allow."""
    bare = [_event_alone(name) for name in names]
    cycles = _first(bare, _CYCLES)
    instructions = _first(bare, _INSTRUCTIONS)
    if instructions is None:
        return []
    made = [] if cycles is None else [Metric("IPC", instructions, cycles, 1)]
    for number, name in enumerate(bare):
        if _MISSES.search(name):
            made.append(Metric(f"{name} per 1000 instructions", number, instructions, 1000))
    return made


def _event_alone(name: str) -> str:
    """``inst_retired`` of ``armv8_pmuv3_0/inst_retired/u``."""
    inside = _INSIDE.fullmatch(name)
    return inside[1] if inside else bare_name(name)


def _first(names: Sequence[str], pattern: re.Pattern[str]) -> int | None:
    return next((number for number, name in enumerate(names) if pattern.fullmatch(name)), None)
