"""EventSpec: one event as the command line asked for it, before it becomes a perf_event_attr."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfcore.abi.constants import PerfType
from perfcore.abi.tracepoints import TracepointEvent
from perfemu.errors import EventSyntaxError
from pmu.event import Event
from pmu.event_source import EventSource
from pmu.generic_events import HardwareId, cache_event
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu

MAX_PRECISE = 3


@dataclass(frozen=True, slots=True)
class Modifiers:
    """The letters after an event's colon, and what perf makes of them (tools/perf/Documentation/perf-list.txt)."""

    text: str = ""  # as typed, but for what perf does not print
    exclude_user: bool = False
    exclude_kernel: bool = False
    exclude_hv: bool = False
    exclude_host: bool = False
    exclude_guest: bool = True
    exclude_idle: bool = False
    precise: int = 0  # attr.precise_ip
    pinned: bool = False
    exclusive: bool = False
    sample_read: bool = False
    weak: bool = False  # a group that does not fit is none: tools/perf, evlist__reset_weak_group


PRIVILEGES = {"u": "exclude_user", "k": "exclude_kernel", "h": "exclude_hv"}
_HOSTS = {"G": "exclude_guest", "H": "exclude_host"}
_FLAGS = {"D": "pinned", "e": "exclusive", "I": "exclude_idle", "S": "sample_read", "W": "weak"}
_NOT_MODELLED = {"b": "BPF counters"}
MODIFIER_LETTERS = "ukhGHIpPSDeWb"


def parse_modifiers(text: str) -> Modifiers:
    """Modifier letters to flags. Raises EventSyntaxError naming the letter."""
    flags: dict[str, bool] = {}
    precise = text.count("p")
    for letter in text:
        if letter in _NOT_MODELLED:
            raise EventSyntaxError(f"modifier '{letter}' ({_NOT_MODELLED[letter]}) is not modelled")
        if letter not in MODIFIER_LETTERS:
            raise EventSyntaxError(f"unknown modifier '{letter}' in ':{text}'; there are {', '.join(MODIFIER_LETTERS)}")
        if letter in _FLAGS:
            flags[_FLAGS[letter]] = True
        if letter not in "p" and text.count(letter) > 1:
            raise EventSyntaxError(f"modifier '{letter}' stands twice in ':{text}'")
    if precise > MAX_PRECISE:
        raise EventSyntaxError(f"':{text}' asks for precise_ip {precise}; at most {MAX_PRECISE} exists")
    if "P" in text:
        precise = MAX_PRECISE
    if any(letter in PRIVILEGES for letter in text):
        flags.update({name: letter not in text for letter, name in PRIVILEGES.items()})
    if any(letter in _HOSTS for letter in text):
        flags.update({name: letter not in text for letter, name in _HOSTS.items()})
    return Modifiers(text.replace("W", ""), precise=precise, **flags)


@dataclass(frozen=True, slots=True)
class EventSpec:
    """One event to open. Events of equal `group` are scheduled together; the first of them is the leader."""

    base_name: str  # without modifiers, as perf prints it
    type: int  # attr.type
    config: int
    group: int
    config1: int = 0
    config2: int = 0
    bp_type: int = 0  # of a breakpoint, whose config1 is its address and config2 its length
    modifiers: Modifiers = field(default_factory=Modifiers)
    leads: bool = True
    group_size: int = 1
    period: int | None = None  # of pmu/period=/; None: the command's
    frequency: int | None = None  # of pmu/freq=/
    aux_sample_bytes: int | None = None  # of pmu/aux-sample-size=/: of its group's trace, in each sample
    unit: str = ""  # "msec" for clocks
    scale: float = 1.0
    label: str | None = None  # of pmu/name=/
    asked: int = 0  # by which -e, from 0
    filter: str = ""  # of --filter
    cgroup: str | None = None  # the control group that it counts; "": all of them, while other events are of one
    source: EventSource | None = None  # that counts it, if it is none of the CPUs' own PMU
    known_in_kernel: bool = False  # hardware: whether this machine knows how often it happens there
    kernel_executed: bool = False  # ... and executes it, so that it counts there unless it is told otherwise
    tracepoint: TracepointEvent | None = None  # of a probe: one that only this run has

    @property
    def system_wide(self) -> bool:
        """Counted for all CPUs at once: nobody can tell whose it is."""
        return self.source is not None and self.source.system_wide

    @property
    def traces(self) -> bool:
        """Its unit writes into an AUX area."""
        return isinstance(self.source, UnitPmu) and self.source.has_aux

    @property
    def tells_of_memory(self) -> bool:
        """Its trace says which data were accessed, and where they were."""
        return isinstance(self.source, UnitPmu) and self.source.tells_of_memory

    @property
    def unit_pmu(self) -> UnitPmu:
        """Of one that traces."""
        assert isinstance(self.source, UnitPmu), "it traces"
        return self.source

    @property
    def is_hardware(self) -> bool:
        """Counted by the CPUs' PMU, not by Linux or elsewhere in the machine."""
        return self.source is None and self.type not in (PerfType.SOFTWARE, PerfType.TRACEPOINT, PerfType.BREAKPOINT)

    def counted_by(self, pmu: PmuModel) -> Event | None:
        """The event of this PMU that counts it, if one does."""
        if not self.is_hardware:
            return None
        if self.type == PerfType.HARDWARE:
            return pmu.generic_event(HardwareId(self.config))
        if self.type == PerfType.HW_CACHE:
            return pmu.generic_cache_event(cache_event(self.config))
        return pmu.counted_by(pmu.code_of(self.config, self.config1))

    @property
    def levels(self) -> str:
        """Of a hardware event where the kernel is executed: those at which it counts; "" of others."""
        counted = {"u": not self.modifiers.exclude_user, "k": not self.modifiers.exclude_kernel}
        return "".join(level for level, counts in counted.items() if counts) if self.kernel_executed else ""

    @property
    def user_only(self) -> bool:
        """Whether it opens with exclude_kernel although nobody asked, as perf retries for an unprivileged user."""
        modifiers = self.modifiers
        if not self.is_hardware or modifiers.exclude_user or modifiers.exclude_kernel:
            return False
        return not (self.known_in_kernel and (self.kernel_executed or "k" in modifiers.text))

    @property
    def counts_nothing(self) -> bool:
        """A hardware event for the hypervisor alone: there is none."""
        return self.is_hardware and self.modifiers.exclude_user and self.modifiers.exclude_kernel

    @property
    def name(self) -> str:
        """As perf prints it: ``cycles:u``, ``armv8_pmuv3_0/inst_retired/u``."""
        letters = self.modifiers.text
        if self.user_only:  # what was asked for besides user mode is not counted, so it is not printed
            letters = "".join(letter for letter in letters if letter not in "ukh") + "u"
        name = self.label or self.base_name
        separator = "" if name.endswith("/") or not letters else ":"
        return name + separator + letters
