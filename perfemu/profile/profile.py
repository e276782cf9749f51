"""Profile: the samples of a perf.data file, by event; equal samples are counted together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from perfcore.abi.constants import CLOCKS, Misc, PerfContext, PerfType, RecordType, SampleType
from perfcore.abi.records import Lost, LostSamples
from perfcore.abi.sample import Sample
from perfcore.perfdata.features import EventDescription, EventGroup, Features
from perfcore.perfdata.header import FileHeader
from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.records import UserRecord
from perfemu.profile.event_names import event_name
from perfemu.profile.places import Place
from perfemu.profile.sample_kinds import counted_records
from perfemu.profile.tasks import Tasks, Thread
from perfemu.profile.traced import Traced
from perfemu.symbols.finder import SymbolFinder
from perfemu.visible import visible

_CONTEXT_MAX = int(PerfContext.MAX)  # callchain entries from here on are PERF_CONTEXT_* markers
_CONTEXT_KERNEL = (1 << 64) - 128
_CONTEXT_USER = (1 << 64) - 512
_CPU, _PERIOD, _CALLCHAIN = int(SampleType.CPU), int(SampleType.PERIOD), int(SampleType.CALLCHAIN)
_MOST_KINDS = 1 << 16  # of samples, whose sums are looked up by their bytes
_MASK_64 = (1 << 64) - 1
_CPUMODE_MASK, _KERNEL = int(Misc.CPUMODE_MASK), int(Misc.KERNEL)
_CONTEXTS = {_CONTEXT_KERNEL: True, _CONTEXT_USER: False}


class ProfileSample(NamedTuple):
    """What equal samples have in common."""

    comm: str  # at that time
    thread: Thread
    cpu: int  # -1 where the samples do not say
    place: Place
    chain: tuple[Place, ...]  # innermost first, `place` included; empty without callchains


class Weight(NamedTuple):
    """How often and how much."""

    samples: int
    period: int


class Moment(NamedTuple):
    """One sample, when it was taken."""

    time_ns: int  # 0 where the file has no times
    sample: ProfileSample
    period: int


@dataclass(slots=True)
class EventProfile:
    """The samples of one event. Samples, in order of first appearance, with their weights.

    `moments` are all of them as they came, if that was asked for.
    """

    name: str
    description: EventDescription
    samples: dict[ProfileSample, Weight] = field(default_factory=dict)
    sample_count: int = 0
    period: int = 0
    moments: list[Moment] = field(default_factory=list)

    @property
    def unit(self) -> str:
        """Of periods: nanoseconds, or count."""
        attr = self.description.attr
        return "nanoseconds" if attr.type == PerfType.SOFTWARE and attr.config in CLOCKS else "count"

    @property
    def has_callchains(self) -> bool:
        return bool(self.description.attr.sample_type & _CALLCHAIN)


@dataclass(slots=True)
class Profile:
    """A whole file. perf shows the events of one group as one table; an event outside groups is a group of its own."""

    path: str
    events: list[EventProfile]
    groups: list[EventGroup]
    features: Features
    header: FileHeader | None = None  # a pipe has none
    lost_samples: int = 0
    lost_records: int = 0
    lost_chunks: int = 0


def load_profile(
    file: PerfDataFile,
    finder: SymbolFinder,
    *,
    keeps_moments: bool = False,
    takes: Callable[[Sample], bool] | None = None,
) -> Profile:
    """Read all of `file`, or those samples that `takes`, if it is given, says yes to. Raises PerfDataError."""
    tasks = Tasks(finder)
    weights = _Weights(file, keeps_moments)
    traced = Traced(file)
    profile = Profile(file.name, [], [], file.features, None if file.is_pipe else file.header)
    sample_type = int(RecordType.SAMPLE)
    repeated = _Repeated(useful=not keeps_moments and takes is None)

    def add_traced(until: int | None) -> None:
        for number, sample in traced.until(until, tasks):
            if takes is None or takes(sample):
                weights.add(_resolved(tasks, sample), number, sample.period, sample.time)

    for record, times, period in counted_records(file, at_once=repeated.useful):
        kind = record.type
        if kind == sample_type:
            kind_of_sample = file.kind_of_sample(record) if repeated.useful else None
            if kind_of_sample is not None and repeated.add(
                kind_of_sample[0], times, kind_of_sample[1] if period is None else period
            ):
                continue
            number = file.event_number(record)
            sample = file.decode_sample(record, number)
            attr = file.events[number].attr
            if not attr.sample_type & _CPU:
                sample.cpu = -1
            if not attr.sample_type & _PERIOD:
                sample.period = attr.sample_period or 1
            key = _resolved(tasks, sample)
            taken = takes is None or takes(sample)
            if sample.read:
                weights.add_read(key, sample, number, taken)
            elif taken:
                weight = weights.add(key, number, sample.period, sample.time)
                weight[0] += times - 1
                weight[1] += sample.period * (times - 1) if period is None else period - sample.period
                if kind_of_sample is not None:
                    repeated.keep(kind_of_sample[0], weight, sample.period)
        elif kind < UserRecord.HEADER_ATTR:
            decoded = file.decode_record(record)
            if isinstance(decoded, Lost):
                profile.lost_records += decoded.lost
                profile.lost_chunks += 1
            elif isinstance(decoded, LostSamples):
                profile.lost_samples += decoded.lost
            else:
                if traced:
                    add_traced(file.record_time(record))
                tasks.apply(decoded, record.misc)
                repeated.forget()
    add_traced(None)
    for number, description in enumerate(file.events):
        event = EventProfile(visible(description.name) or event_name(description.attr), description)
        for key, (samples, period) in weights.of(number).items():
            event.samples[key] = Weight(samples, period)
            event.sample_count += samples
            event.period += period
        event.moments = weights.moments.get(number, [])
        profile.events.append(event)
    profile.groups = _groups(profile)
    return profile


class _Weights:
    """Counts equal samples together: by event, then by what they have in common, [samples, period]."""

    def __init__(self, file: PerfDataFile, keeps_moments: bool) -> None:
        self.moments: dict[int, list[Moment]] = {}  # by event
        self._file = file
        self._keeps_moments = keeps_moments
        self._by_event: dict[int, dict[ProfileSample, list[int]]] = {}
        self._last_values: dict[int, int] = {}  # by event id: the last value that a sample read

    def of(self, number: int) -> dict[ProfileSample, list[int]]:
        return self._by_event.get(number, {})

    def add(self, key: ProfileSample, number: int, period: int, time_ns: int) -> list[int]:
        """The sum to which it was added."""
        if self._keeps_moments:
            self.moments.setdefault(number, []).append(Moment(time_ns, key, period))
        samples = self._by_event.get(number)
        if samples is None:
            samples = self._by_event[number] = {}
        weight = samples.get(key)
        if weight is None:
            weight = samples[key] = [1, period]
        else:
            weight[0] += 1
            weight[1] += period
        return weight

    def add_read(self, key: ProfileSample, sample: Sample, number: int, taken: bool) -> None:
        """PERF_SAMPLE_READ: a sample of every event that it read, weighing what its value has grown by."""
        for value in sample.read:
            grown = value.value - self._last_values.get(value.id, 0)
            self._last_values[value.id] = value.value
            read = self._file.event_of_id(value.id)
            if grown and taken:
                self.add(key, number if read is None else read, grown & _MASK_64, sample.time)


class _Repeated:
    """Sums by the kind of a sample, as its file has it: what comes again is not decoded and resolved again."""

    def __init__(self, useful: bool) -> None:
        self.useful = useful
        self._known: dict[bytes, tuple[list[int], int]] = {}  # the sum, and the period where samples do not tell it
        self._hits = 0

    def add(self, kind: bytes, times: int, period: int | None) -> bool:
        """Whether it is known what such a sample is, and so as many are counted, with the period of all of them."""
        known = self._known.get(kind)
        if known is None:
            return False
        weight, usual = known
        weight[0] += times
        weight[1] += usual * times if period is None else period
        self._hits += times
        return True

    def keep(self, kind: bytes, weight: list[int], usual: int) -> None:
        if len(self._known) == _MOST_KINDS:
            self.useful = self._hits > _MOST_KINDS  # or each has a data address of its own, say
            self.forget()
        self._known[kind] = weight, usual

    def forget(self) -> None:
        """Tasks have changed, and with them what addresses mean."""
        self._known.clear()
        self._hits = 0


def _resolved(tasks: Tasks, sample: Sample) -> ProfileSample:
    pid = sample.pid
    thread = tasks.thread(pid, sample.tid)
    in_kernel = sample.misc & _CPUMODE_MASK == _KERNEL
    chain: tuple[Place, ...] | None = None
    if sample.callchain:
        addresses = tuple(sample.callchain)
        chains = tasks.space(pid).chains
        chain = chains.get(addresses)
        if chain is None:
            chain = chains[addresses] = tuple(_frames(tasks, pid, addresses, in_kernel))
    return ProfileSample(thread.comm, thread, sample.cpu, tasks.resolve(pid, sample.ip, in_kernel), chain or ())


def _frames(tasks: Tasks, pid: int, addresses: tuple[int, ...], in_kernel: bool) -> Iterator[Place]:
    """The places of a callchain, whose markers say where the addresses that follow were."""
    for address in addresses:
        if address >= _CONTEXT_MAX:
            in_kernel = _CONTEXTS.get(address, in_kernel)
        else:
            yield tasks.resolve(pid, address, in_kernel)


def _groups(profile: Profile) -> list[EventGroup]:
    """Each event alone, but for the groups that GROUP_DESC tells of."""
    told = {group.leader_index: group for group in profile.features.groups}
    groups = []
    number, count = 0, len(profile.events)
    while number < count:
        group = told.get(number, EventGroup(number, 1))
        group = replace(group, members=min(max(group.members, 1), count - number))
        groups.append(group)
        number += group.members
    return groups
