"""EventSource: a PMU of a machine besides its CPUs' own, as data: its name in Linux, its format, its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from errno import EINVAL
from fnmatch import fnmatchcase

from emulator.probes import Probe
from pmu.event import Event, UnknownEvent
from pmu.format_field import FormatField, Role


@dataclass(frozen=True, slots=True)
class Unit:
    """What perf shows a count in: the files ``events/NAME.scale`` and ``events/NAME.unit``."""

    scale_text: str
    name: str

    @property
    def scale(self) -> float:
        return float(self.scale_text)


MIB_OF_LINES = Unit("6.103515625e-5", "MiB")  # 64 bytes each


@dataclass(frozen=True, slots=True)
class EventSource:
    """/sys/bus/event_source/devices/`name`. It knows no privilege level, and its counters interrupt nobody."""

    name: str
    format: tuple[FormatField, ...]
    events: tuple[Event, ...]  # in lower case; their codes are what perf_event_attr.config selects
    not_modelled: Mapping[str, str] = field(default_factory=dict)  # shell pattern of events' names -> why
    system_wide: bool = False  # counts for all CPUs at once, never for a task (perf_invalid_context)
    counters: int = 0  # of the part; 0: each event has one of its own
    sysfs_aliases: Mapping[str, str] | None = None  # names in sysfs ``events/`` -> event name; None: all, as they are
    units: Mapping[str, Unit] = field(default_factory=dict)  # by the name in sysfs
    sampling_error: int = EINVAL  # EOPNOTSUPP, where its driver leaves that to PERF_PMU_CAP_NO_INTERRUPT
    core_of: Callable[[int], int | None] | None = None  # config -> the core that it asks for alone; UnknownEvent

    @property
    def aliases(self) -> Mapping[str, str]:
        """Names in sysfs ``events/`` -> event name."""
        return {event.name: event.name for event in self.events} if self.sysfs_aliases is None else self.sysfs_aliases

    def find(self, name: str) -> Event | None:
        """The event of this name, or of this one in sysfs, in either case."""
        lower = name.lower()
        wanted = self.aliases.get(lower, lower)
        return next((event for event in self.events if event.name == wanted), None)

    def why_not(self, name: str) -> str | None:
        """Why an event that real machines have is not modelled; None: nobody knows it."""
        lower = name.lower()
        return next((why for pattern, why in self.not_modelled.items() if fnmatchcase(lower, pattern)), None)

    def event_of(self, config: int, config1: int = 0, config2: int = 0) -> Event:
        """The event that an attr's words select. UnknownEvent says why there is none."""
        words = {"config": config, "config1": config1, "config2": config2}
        for word, value in words.items():
            if stray := value & ~sum(bits.mask for bits in self.format if bits.config == word):
                raise UnknownEvent(f"bits {stray:#x} of {word} {value:#x} are not in the format of {self.name}")
        for bits in self.format:
            if bits.role is Role.ABSENT and (value := bits.extract(words[bits.config])):
                raise UnknownEvent(f"{bits.name}={value}: {self.name} has nothing like it here")
        code = sum(bits.in_code(config) for bits in self.format if bits.role is Role.SELECTS)
        for event in self.events:
            if event.code == code:
                return event
        names = ", ".join(f"{event.name} ({event.code:#x})" for event in self.events)
        raise UnknownEvent(f"{self.name} has no event {code:#x}; it has {names}")

    def core_asked_for(self, config: int) -> int | None:
        """The only core whose events count; None: all do. UnknownEvent says what cannot be told apart."""
        return None if self.core_of is None else self.core_of(config)

    def limited_to(self, fires: Callable[[Probe], bool]) -> EventSource:
        """This PMU on a core that fires only some probes: without the events that others count."""
        left = tuple(event for event in self.events if all(map(fires, (*event.probes, *event.less))))
        if len(left) == len(self.events):
            return self
        names = {event.name for event in left}
        return replace(
            self,
            events=left,
            sysfs_aliases={alias: name for alias, name in self.aliases.items() if name in names},
            units={alias: unit for alias, unit in self.units.items() if self.aliases[alias] in names},
        )

    def event_text(self, event: Event) -> str:
        """``event=0x04,umask=0xff``; zeros left out but the first."""
        numbers = {bits.name: bits.extract(event.code) for bits in self.format if bits.role is Role.SELECTS}
        first = self.format[0].name
        return ",".join(f"{name}=0x{value:02x}" for name, value in numbers.items() if value or name == first)

    def sysfs_events(self) -> dict[str, str]:
        """The files of ``events/``: name -> contents."""
        codes = {event.name: self.event_text(event) for event in self.events}
        files = {alias: codes[name] for alias, name in self.aliases.items()}
        files |= {f"{alias}.scale": unit.scale_text for alias, unit in self.units.items()}
        return files | {f"{alias}.unit": unit.name for alias, unit in self.units.items()}

    def sysfs_format(self) -> dict[str, str]:
        """The files of ``format/``: name -> contents."""
        return {bits.name: bits.text for bits in self.format}
