"""EventSource: a PMU of a machine besides its CPUs' own, as data: its name in Linux, its format, its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from emulator.probes import Probe
from pmu.event import Event
from pmu.format_field import FormatField


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """One event of it, in lower case as sysfs ``events/`` or perf's own lists have it."""

    event: Event  # its code is perf_event_attr.config
    scale: str = ""  # of one count, in `unit`: sysfs ``events/NAME.scale`` and ``.unit``
    unit: str = ""
    in_sysfs: bool = True

    @property
    def name(self) -> str:
        return self.event.name.lower()

    @property
    def factor(self) -> float:
        return float(self.scale or 1)


@dataclass(frozen=True, slots=True)
class EventSource:
    """/sys/bus/event_source/devices/`name`. It knows no privilege level, and its counters interrupt nobody."""

    name: str
    format: tuple[FormatField, ...]
    events: tuple[SourceEvent, ...]
    shared: bool = False  # by all CPUs, of which the first reads it (``cpumask``): no event of it is a task's
    counters: int = 0  # that `shared` ones have
    width_bits: int = 64
    not_modelled: Mapping[str, str] = field(default_factory=dict)  # event -> why

    def find(self, name: str) -> SourceEvent | None:
        """The event of this name, in either case."""
        return next((row for row in self.events if row.name == name.lower()), None)

    def find_code(self, config: int) -> SourceEvent | None:
        return next((row for row in self.events if row.event.code == config), None)

    def limited_to(self, fires: Callable[[Probe], bool]) -> EventSource | None:
        """On a core that fires only some probes; None if nothing is left to count."""
        left = tuple(row for row in self.events if all(map(fires, (*row.event.probes, *row.event.less))))
        return self if left == self.events else replace(self, events=left) if left else None

    def event_text(self, row: SourceEvent) -> str:
        """``event=0x04,umask=0xff``; zeros left out but the first."""
        numbers = {bits.name: bits.extract(row.event.code) for bits in self.format if bits.config == "config"}
        first = self.format[0].name
        return ",".join(f"{name}=0x{value:02x}" for name, value in numbers.items() if value or name == first)

    def sysfs_events(self) -> dict[str, str]:
        """The files of ``events/``: name -> contents."""
        files = {}
        for row in self.events:
            if row.in_sysfs:
                files[row.name] = self.event_text(row)
                files |= {f"{row.name}.scale": row.scale, f"{row.name}.unit": row.unit} if row.scale else {}
        return files

    def sysfs_format(self) -> dict[str, str]:
        """The files of ``format/``: name -> contents."""
        return {bits.name: bits.text for bits in self.format}
