"""Profile: the samples of a perf.data file, by event; equal samples are counted together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from perfcore.abi.constants import Misc, RecordType, SampleType
from perfcore.abi.records import Lost, LostSamples
from perfcore.abi.sample import Sample
from perfcore.perfdata.features import EventDescription, EventGroup, Features
from perfcore.perfdata.ordering import in_time_order
from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.records import UserRecord
from perfemu.profile.event_names import event_name
from perfemu.profile.places import Place
from perfemu.profile.tasks import Tasks, Thread
from perfemu.symbols.finder import SymbolFinder

_CONTEXT_MAX = (1 << 64) - 4095  # callchain entries from here on are PERF_CONTEXT_* markers
_CONTEXT_KERNEL = (1 << 64) - 128
_CONTEXT_USER = (1 << 64) - 512
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


@dataclass(slots=True)
class EventProfile:
    """The samples of one event. Samples, in order of first appearance, with their weights."""

    name: str
    description: EventDescription
    samples: dict[ProfileSample, Weight] = field(default_factory=dict)
    sample_count: int = 0
    period: int = 0

    @property
    def has_callchains(self) -> bool:
        return bool(self.description.attr.sample_type & SampleType.CALLCHAIN)


@dataclass(slots=True)
class Profile:
    """A whole file. perf shows the events of one group as one table; an event outside groups is a group of its own."""

    path: str
    events: list[EventProfile]
    groups: list[EventGroup]
    features: Features
    lost_samples: int = 0
    lost_records: int = 0
    lost_chunks: int = 0


def load_profile(file: PerfDataFile, finder: SymbolFinder) -> Profile:
    """Read all of `file`. Raises PerfDataError."""
    tasks = Tasks(finder)
    collected: list[dict[ProfileSample, list[int]]] = []
    has_cpu: list[bool] = []
    profile = Profile(file.name, [], [], file.features)
    sample_type = int(RecordType.SAMPLE)
    for record in in_time_order(file):
        kind = record.type
        if kind == sample_type:
            number = file.event_number(record)
            while len(collected) <= number:
                has_cpu.append(bool(file.events[len(collected)].attr.sample_type & SampleType.CPU))
                collected.append({})
            sample = file.decode_sample(record, number)
            if not has_cpu[number]:
                sample.cpu = -1
            key = _resolved(tasks, sample)
            weight = collected[number].get(key)
            if weight is None:
                collected[number][key] = [1, sample.period]
            else:
                weight[0] += 1
                weight[1] += sample.period
        elif kind < UserRecord.HEADER_ATTR:
            decoded = file.decode_record(record)
            if isinstance(decoded, Lost):
                profile.lost_records += decoded.lost
                profile.lost_chunks += 1
            elif isinstance(decoded, LostSamples):
                profile.lost_samples += decoded.lost
            else:
                tasks.apply(decoded, record.misc)
    for number, description in enumerate(file.events):
        event = EventProfile(description.name or event_name(description.attr), description)
        for key, (samples, period) in (collected[number] if number < len(collected) else {}).items():
            if not description.attr.sample_type & SampleType.PERIOD:
                period = samples * (description.attr.sample_period or 1)
            event.samples[key] = Weight(samples, period)
            event.sample_count += samples
            event.period += period
        profile.events.append(event)
    profile.groups = _groups(profile)
    return profile


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
