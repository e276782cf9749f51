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


class Filter(NamedTuple):
    """One --filter: of the tracepoints of the -e before it."""

    behind: int  # which -e, from 0
    text: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Of the events of all -e."""

    filters: tuple[Filter, ...] = ()
    level: str = ""  # u or k, whatever the modifiers say: --all-user, --all-kernel

    def applied(self, specs: Sequence[EventSpec]) -> list[EventSpec]:
        """UsageError where there is nothing to be filtered by. Of several filters all must hold."""
        found = [self._at_level(spec) for spec in specs]
        for behind, text in self.filters:
            for number, spec in enumerate(found):
                if spec.asked == behind:
                    if spec.type != PerfType.TRACEPOINT:
                        raise UsageError(f"--filter '{text}': {spec.name} is no tracepoint: it stands behind one's -e")
                    both = f"({spec.filter}) && ({text})" if spec.filter else text
                    found[number] = replace(spec, filter=both)
        return found

    def _at_level(self, spec: EventSpec) -> EventSpec:
        if not self.level:
            return spec
        others = "".join(letter for letter in spec.modifiers.text if letter not in PRIVILEGES)
        return replace(spec, modifiers=parse_modifiers(others + self.level))


UNCHANGED = Changes()


def set_filter(event: PerfEvent, spec: EventSpec) -> None:
    """Of an open event. PerfemuError says what is wrong with it."""
    if not spec.filter:
        return
    try:
        event.driver.set_filter(event, spec.filter)
    except LinuxError as error:
        raise PerfemuError(f"--filter '{spec.filter}' of {spec.name}: {error.why}") from None
