"""EventSource: a PMU of a machine besides its CPUs' own, as data: its name in Linux, its format, its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pmu.event import Event
from pmu.format_field import FormatField


@dataclass(frozen=True, slots=True)
class EventSource:
    """/sys/bus/event_source/devices/`name`. It knows no privilege level, and its counters interrupt nobody."""

    name: str
    format: tuple[FormatField, ...]
    events: tuple[Event, ...]  # in lower case, as sysfs has them; of no probe; their codes are perf_event_attr.config
    not_modelled: Mapping[str, str] = field(default_factory=dict)  # event -> why

    def find(self, name: str) -> Event | None:
        """The event of this name, in either case."""
        return next((event for event in self.events if event.name == name.lower()), None)

    def find_code(self, config: int) -> Event | None:
        return next((event for event in self.events if event.code == config), None)

    def event_text(self, event: Event) -> str:
        """``event=0x04,umask=0xff``; zeros left out but the first."""
        numbers = {bits.name: bits.extract(event.code) for bits in self.format if bits.config == "config"}
        first = self.format[0].name
        return ",".join(f"{name}=0x{value:02x}" for name, value in numbers.items() if value or name == first)

    def sysfs_events(self) -> dict[str, str]:
        """The files of ``events/``: name -> contents."""
        return {event.name: self.event_text(event) for event in self.events}

    def sysfs_format(self) -> dict[str, str]:
        """The files of ``format/``: name -> contents."""
        return {bits.name: bits.text for bits in self.format}
