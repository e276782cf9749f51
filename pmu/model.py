"""PmuModel: everything about one PMU that is data: its counters, its events, and its names in Linux."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from emulator.probes import Probe
from pmu import models as model_files
from pmu.event import Event, EventList, UnknownEvent
from pmu.event_source import EventSource
from pmu.format_field import FormatField, Role
from pmu.generic_events import CacheEvent, CacheId, CacheOp, CacheResult, HardwareId
from pmu.per_cycle import of_arm, of_x86, under

THRESHOLD = "threshold"  # of Arm's format: Linux looks at threshold_compare and threshold_count only with it
EDGE = "edge"  # of x86's

ANY_ISA = ""  # of a PMU that any core can have, until one has it


@dataclass(frozen=True, slots=True)
class FixedCounter:
    """A counter that counts one event only."""

    event: str  # name in the model's event list
    config: int  # perf_event_attr.config that Linux places on this counter, whatever the vendor's code
    width_bits: int
    programmable: bool = True  # whether an event counter can count `config` as well


@dataclass(frozen=True, slots=True)
class CounterConstraint:
    """Events with `mask`'s bits of their code between `first` and `last` are counted by some event counters only."""

    mask: int
    first: int
    last: int
    counters: int  # bit n: counter n


@dataclass(frozen=True, slots=True)
class PmuModel:
    """One PMU as its vendor and Linux describe it. A live device is made from it and a counter bank."""

    name: str
    isa: str  # "aarch64" or "x86_64", of the CPUs that have it; or ANY_ISA
    sysfs_name: str  # /sys/bus/event_source/devices/<sysfs_name>
    driver: str  # perfcore/events/drivers/<driver>.py
    version: int  # ID_AA64DFR0_EL1.PMUVer; CPUID.0AH:EAX[7:0]; AMD's PerfMonV2: 2; CPUCFG6.PAMVER
    identification: int  # PMCR_EL0.IMP and IDCODE, in place; IA32_PERF_CAPABILITIES; CPUID.80000022H:EAX
    counters: int  # event counters of the real part
    most_counters: int  # event counters that the architecture can have: a measuring PMU's number
    counter_width_bits: int
    fixed_counters: tuple[FixedCounter, ...]
    events: EventList
    format: tuple[FormatField, ...]
    generic_events: Mapping[HardwareId, str]  # -> event name; what is not there is not supported
    generic_cache_events: Mapping[CacheEvent, str] = field(default_factory=dict)
    sysfs_aliases: Mapping[str, str] = field(default_factory=dict)  # names in sysfs ``events/`` -> event name
    alias_terms: Mapping[str, str] = field(default_factory=dict)  # ... -> terms of other words of an attr
    metrics: tuple[str, ...] = ()  # events of MSR_PERF_METRICS, from its lowest field up; "": a field nobody knows
    sources: tuple[EventSource, ...] = ()  # of the machine besides, in the order in which Linux finds them
    no_sources: Mapping[str, str] = field(default_factory=dict)  # PMUs that real machines have there -> why not here
    constraints: tuple[CounterConstraint, ...] = ()  # the first that an event's code is in holds
    has_limits: bool = True  # of the part: `constraints`, and `metrics` only in a group that slots lead
    not_modelled: Mapping[int, str] = field(default_factory=dict)  # code -> name of what the vendor lists besides
    kernel_takes_time: bool = True  # of the core: whether its kernel's work has cycles
    options: frozenset[str] = frozenset()  # of the architecture, by its names, that this PMU has: FEAT_PMUv3_ICNTR
    slots: int = 0  # of the core: micro-operations that it can begin in a cycle; 0: it has none
    executes_kernel: bool = False  # the machine: all that happens in the kernel is counted, not its time alone
    one_a_cycle: bool = False  # the core is the ideal one, on which each instruction has a cycle of its own
    units: frozenset[str] = frozenset()  # of the core, by the names in emulator.core_file.units
    interrupt_cycles: int = 0  # of the core: from a counter's overflow until its interrupt is taken
    branch_records: int = 0  # of the core, where `units` has brbe: how many it keeps
    edge_bit: int = 0  # of an event's code, where Linux has no format field for it: PMEVTYPER<n>_EL0.TE

    def __post_init__(self) -> None:
        named = [*self.generic_events.values(), *self.generic_cache_events.values(), *self.sysfs_aliases.values()]
        for name in [*named, *(fixed.event for fixed in self.fixed_counters), *filter(None, self.metrics)]:
            if self.events.by_name(name) is None:
                raise ValueError(f"{self.name}: {name} is not in its event list")

    def known_in_kernel(self, event: Event) -> bool:
        """Whether the core tells how often it happens in the kernel: of the modelled Linux it knows the time."""
        return self.executes_kernel or (self.kernel_takes_time and event.probes == (Probe.CYCLES,) and not event.less)

    def limited_to(self, fires: Callable[[Probe], bool], *, kernel_takes_time: bool = True) -> PmuModel:
        """This PMU on a core that fires only some probes: without the events that others count."""
        rows = [row for row in self.events if all(map(fires, (*row.probes, *row.less)))]
        sources = tuple(source for all in self.sources if (source := all.limited_to(fires)).events)
        one_a_cycle = not fires(Probe.UOPS_RETIRED)
        limited = len(rows), sources, kernel_takes_time, one_a_cycle
        if limited == (len(self.events), self.sources, self.kernel_takes_time, self.one_a_cycle):
            return self
        left = {row.name for row in rows}
        lost = {row.code: row.name for row in self.events if row.name not in left}
        return replace(
            self,
            events=EventList(rows),
            fixed_counters=tuple(fixed for fixed in self.fixed_counters if fixed.event in left),
            metrics=self.metrics if left.issuperset(filter(None, self.metrics)) else (),
            generic_events={generic: name for generic, name in self.generic_events.items() if name in left},
            generic_cache_events={key: name for key, name in self.generic_cache_events.items() if name in left},
            sysfs_aliases={alias: name for alias, name in self.sysfs_aliases.items() if name in left},
            not_modelled={**self.not_modelled, **lost},
            sources=sources,
            kernel_takes_time=kernel_takes_time,
            one_a_cycle=one_a_cycle,
        )

    def on(self, isa: str) -> PmuModel:
        """This PMU in CPUs of that ISA. ValueError if it is another's."""
        if self.isa not in (isa, ANY_ISA):
            raise ValueError(f"PMU {self.name} is of {self.isa}")
        return replace(self, isa=isa)

    def without_limits(self) -> PmuModel:
        """For a PMU that measures, and has what no part has."""
        return replace(self, has_limits=False)

    def counters_for(self, code: int) -> int:
        """The event counters that can count `code`: bit n is counter n."""
        for constraint in self.constraints:
            if constraint.first <= code & constraint.mask <= constraint.last:
                return constraint.counters
        return -1

    def bank_size(self, counters: int) -> int:
        """Counters that the core's bank must have for a device with this many event counters."""
        return counters + len(self.fixed_counters) + len(self.metrics)

    def generic_event(self, generic: HardwareId) -> Event | None:
        """The event behind PERF_COUNT_HW_*, or None where this PMU cannot know it."""
        name = self.generic_events.get(generic)
        return None if name is None else self.events.find(name)

    def generic_cache_event(self, generic: CacheEvent) -> Event | None:
        """The event behind PERF_COUNT_HW_CACHE_*, or None where this PMU cannot know it."""
        name = self.generic_cache_events.get(generic)
        return None if name is None else self.events.find(name)

    @property
    def caches_counted_by_hits(self) -> frozenset[CacheId]:
        """Caches of `generic_cache_events` whose reads do not contain those that miss: Intel's ITLB, by STLB_HIT."""
        found = []
        for cache in CacheId:
            reads = self.generic_cache_event((cache, CacheOp.READ, CacheResult.ACCESS))
            misses = self.generic_cache_event((cache, CacheOp.READ, CacheResult.MISS))
            if reads is not None and misses is not None and reads.less and {*reads.less} >= {*misses.probes}:
                found.append(cache)
        return frozenset(found)

    def config_of(self, event: Event) -> int:
        """perf_event_attr.config that counts `event`."""
        for fixed in self.fixed_counters:
            if fixed.event == event.name:
                return fixed.config
        return event.code

    def code_of(self, config: int, config1: int = 0) -> int:
        """The code that the words of an attr select. Without a threshold Linux does not look at its other fields."""
        words = {"config": config, "config1": config1}
        fields = [bits for bits in self.format if bits.role in (Role.SELECTS, Role.BY_EVENT)]
        unused = any(bits.name == THRESHOLD and not bits.extract(words[bits.config]) for bits in fields)
        fields = [bits for bits in fields if not (unused and bits.name.startswith(THRESHOLD))]
        return sum(bits.in_code(words[bits.config]) for bits in fields)

    def absent_fields(self, config: int, config1: int = 0) -> list[str]:
        """The fields that this PMU has nothing for and that are not zero, as ``name=number``."""
        words = {"config": config, "config1": config1}
        absent = [bits for bits in self.format if bits.role is Role.ABSENT]
        asked = [(bits.name, bits.extract(words[bits.config])) for bits in absent]
        return [f"{name}={number}" for name, number in asked if number]

    def event_of(self, config: int, config1: int = 0) -> Event:
        """The event that a raw config selects; UnknownEvent says by name why there is none."""
        placed = sum(bits.mask for bits in self.format if bits.config == "config")
        if config & ~placed:
            raise UnknownEvent(f"bits {config & ~placed:#x} of {config:#x} are not in the format of {self.sysfs_name}")
        for absent in self.absent_fields(config, config1):
            raise UnknownEvent(f"{absent}: this PMU has nothing like it")
        code = self.code_of(config, config1)
        event = self.by_code(code)
        if event is None:
            self._refuse_variant(code)
        if event is not None and self.config_of(event) == code:
            return event
        for fixed in self.fixed_counters:
            if fixed.config == code:
                return self.events.find(fixed.event)
        if event is not None:
            config = self.config_of(event)
            raise UnknownEvent(
                f"{event.name} is counted by a fixed counter: its config is {config:#06x}, not {code:#06x}"
            )
        if (name := self.not_modelled.get(code)) is not None:
            raise UnknownEvent(f"{code:#06x} is {name}, which this core cannot know")
        return self.events.find_code(code)

    def counted_by(self, code: int) -> Event | None:
        """The event that the code of an attr's config counts, if it counts any."""
        for fixed in self.fixed_counters:
            if fixed.config == code:
                return self.events.find(fixed.event)
        event = self.by_code(code)
        return event if event is None or self.config_of(event) == code else None

    def by_code(self, code: int) -> Event | None:
        """The event of the list with this code; or one of the list with a threshold that is known (`pmu.per_cycle`)."""
        event = self.events.by_code(code)
        return event if event is not None or not code & self._by_event else self._variant(code)

    @property
    def _by_event(self) -> int:
        return sum(bits.code_mask for bits in self.format if bits.role is Role.BY_EVENT) | self.edge_bit

    def _variant(self, code: int) -> Event | None:
        own = self._edges_of_row(code)
        if own is not None:
            return own
        plain = self.events.by_code(code & ~self._by_event)
        if plain is None or self.config_of(plain) != plain.code:
            return None
        asked = {bits.name: bits.of_code(code) for bits in self.format if bits.role is Role.BY_EVENT}
        if THRESHOLD in asked:
            condition = of_arm(
                asked[THRESHOLD], asked["threshold_compare"], asked["threshold_count"], bool(code & self.edge_bit)
            )
        else:
            condition = of_x86(asked.get("cmask", 0), bool(asked.get("inv")), bool(asked.get("edge")))
        return under(condition, plain, code, one_a_cycle=self.one_a_cycle)

    def _edges_of_row(self, code: int) -> Event | None:
        """An event of the list that has a threshold itself, with x86's E besides."""
        (edge,) = [bits.code_mask for bits in self.format if bits.name == EDGE] or [0]
        row = self.events.by_code(code & ~edge) if code & edge else None
        if row is None or not row.code & self._by_event:
            return None
        return under(of_x86(0, invert=False, edge=True), row, code, one_a_cycle=self.one_a_cycle)

    def cannot_know(self, code: int) -> str | None:
        """What the vendor means by a code that cannot be counted here; None if it can, or if nobody knows the code.

        An event with a threshold, edge or inversion is another one, which is known only if it has a row of its own.
        """
        if self.counted_by(code) is not None:
            return None
        event = self.events.by_code(code)
        if event is not None:
            return f"{event.name} under this code (its config is {self.config_of(event):#06x})"
        further = self._by_event
        plain = self.events.by_code(code & ~further)
        name = self.not_modelled.get(code) or self.not_modelled.get(code & ~further)
        return name or (f"{plain.name} as {code:#x}" if plain is not None else None)

    def _refuse_variant(self, code: int) -> None:
        """UnknownEvent if `code` has a field that only some events are modelled with."""
        if (name := self.not_modelled.get(code)) is not None:
            raise UnknownEvent(f"{code:#06x} is {name}, which this core cannot know")
        for bits in self.format:
            if bits.role is Role.BY_EVENT and code & bits.code_mask:
                place = f"{bits.name}={bits.of_code(code)} in {code:#x}"
                raise UnknownEvent(f"{place}: this core cannot tell it of single cycles for this event")

    def event_text(self, event: Event) -> str:
        """`event` as a file of sysfs ``events/`` has it: ``event=0xc4,umask=0x01``; zeros left out but the first."""
        config = self.config_of(event)
        selecting = [bits for bits in self.format if bits.role in (Role.SELECTS, Role.BY_EVENT)]
        return ",".join(
            f"{bits.name}=0x{bits.extract(config):0{(bits.hi - bits.lo + 4) // 4}x}"
            for number, bits in enumerate(selecting)
            if number == 0 or bits.extract(config)
        )

    def sysfs_events(self) -> dict[str, str]:
        """The files of sysfs ``events/``: name -> contents."""
        texts = {alias: self.event_text(self.events.find(name)) for alias, name in self.sysfs_aliases.items()}
        return {alias: ",".join(filter(None, (text, self.alias_terms.get(alias)))) for alias, text in texts.items()}

    def sysfs_format(self) -> dict[str, str]:
        """The files of sysfs ``format/``: name -> contents."""
        return {bits.name: bits.text for bits in self.format}


def models() -> list[str]:
    """Names of all models: the files in ``pmu/models/``."""
    return sorted(found.name for found in pkgutil.iter_modules(model_files.__path__))


def model(name: str) -> PmuModel:
    """The model of this name. ValueError names those that exist."""
    if name not in models():
        raise ValueError(f"no PMU model '{name}'; there are {', '.join(models())}")
    found = importlib.import_module(f"{model_files.__name__}.{name}").MODEL
    if not isinstance(found, PmuModel) or found.name != name:
        raise TypeError(f"pmu/models/{name}.py: MODEL is not a PmuModel named {name}")
    return found


def description(name: str) -> str:
    """The first sentence of a model's file: what PMU it is."""
    found = importlib.import_module(f"{model_files.__name__}.{name}")
    first = (found.__doc__ or "").partition("\n")[0]
    return first.removeprefix(f"{name}: ").partition(". ")[0].removesuffix(".")
