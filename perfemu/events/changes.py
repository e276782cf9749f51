"""Changes: what options besides -e say of events: filters, and at which level they count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from emulator.linux.errors import LinuxError
from perfcore.abi.constants import PerfType
from perfcore.events.event import PerfEvent
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.spec import PRIVILEGES, EventSpec, parse_modifiers
from pmu.unit_pmu import UnitPmu


class CgroupNames(NamedTuple):
    """One -G: control groups of the events of the -e before it, one each; or one of all of them."""

    behind: int  # how many -e
    names: tuple[str, ...]  # "": the event at this place is of all groups


class Filter(NamedTuple):
    """One --filter: of the tracepoints of the -e before it, or of what traces there."""

    behind: int  # which -e, from 0
    text: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Of the events of all -e."""

    filters: tuple[Filter, ...] = ()
    level: str = ""  # u or k, whatever the modifiers say: --all-user, --all-kernel
    cgroups: tuple[CgroupNames, ...] = ()
    each_cgroup: tuple[str, ...] = ()  # all events once for each of these: --for-each-cgroup

    def applied(self, specs: Sequence[EventSpec]) -> list[EventSpec]:
        """UsageError where there is nothing to be filtered by. Of several filters all must hold; of
        addresses any."""
        found = [self._at_level(spec) for spec in specs]
        for behind, text in self.filters:
            for number, spec in enumerate(found):
                if spec.asked == behind:
                    found[number] = replace(spec, filter=_filtered(spec, text))
        if self.each_cgroup:
            return [replace(spec, cgroup=name) for name in self.each_cgroup for spec in found]
        return self._in_cgroups(found) if self.cgroups else found

    def _in_cgroups(self, specs: Sequence[EventSpec]) -> list[EventSpec]:
        """parse_cgroups() of tools/perf/util/cgroup.c."""
        names = [""] * len(specs)
        given = 0
        for behind, of_option in self.cgroups:
            there = sum(spec.asked < behind for spec in specs)
            for name in of_option:
                if given == there:
                    raise UsageError(f"-G {','.join(of_option)}: more groups than events (-e) before it: {there}")
                names[given] = name
                given += 1
            if given == 1:
                names[:there] = [names[0]] * there
        return [replace(spec, cgroup=name) for spec, name in zip(specs, names, strict=True)]

    def _at_level(self, spec: EventSpec) -> EventSpec:
        if not self.level:
            return spec
        others = "".join(letter for letter in spec.modifiers.text if letter not in PRIVILEGES)
        return replace(spec, modifiers=parse_modifiers(others + self.level))


def _filtered(spec: EventSpec, text: str) -> str:
    """By what it has been told, and by this."""
    if isinstance(spec.source, UnitPmu) and spec.source.address_filters:
        # few traces have one
        from perfemu.events.address_filters import resolved

        return f"{spec.filter},{resolved(text)}" if spec.filter else resolved(text)
    if spec.type != PerfType.TRACEPOINT:
        raise UsageError(f"--filter '{text}': {spec.name} is no tracepoint: it stands behind one's -e")
    return f"({spec.filter}) && ({text})" if spec.filter else text


UNCHANGED = Changes()


def set_filter(event: PerfEvent, spec: EventSpec) -> None:
    """Of an open event. PerfemuError says what is wrong with it."""
    if not spec.filter:
        return
    try:
        event.driver.set_filter(event, spec.filter)
    except LinuxError as error:
        raise PerfemuError(f"--filter '{spec.filter}' of {spec.name}: {error.why}") from None
