"""Held: the samples of a file's event against the exact counts of the same run, which is made once more for that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from perfcore.perfdata.reader import PerfDataFile
from perfemu.attributing import ExactSamples
from perfemu.comparing.measured import UNKNOWN, Function
from perfemu.errors import PerfemuError
from perfemu.events.attributes import Sampling
from perfemu.events.spec import EventSpec, parse_modifiers
from perfemu.interruption import Interruption
from perfemu.kept_recording import KeptRecording
from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile, Moment, Profile
from perfemu.reporting import read_profile
from perfemu.scope import Scope
from perfemu.session import Session
from perfemu.truth.accuracy import Comparison, Key, compare, effective_samples
from perfemu.truth.population import population
from perfemu.truth.skid import Skid, skid_of

_PRECISE = 2  # precise_ip from which on samples name the instruction itself


class Instruction(NamedTuple):
    """One instruction, by where it is in its file."""

    path: str
    offset: int  # the address itself where nothing is mapped


@dataclass(frozen=True, slots=True)
class Held:
    """One event of a file that could be held against the truth."""

    name: str
    pmu: str  # that sampled it, in sysfs
    precise: int  # attr.precise_ip
    rate: str  # how often it was sampled
    samples: int
    weight: int  # what the samples stand for
    counted: str  # the event that was counted
    events: int  # how many of that instructions in user mode made
    functions: Comparison[Function]
    instructions: Comparison[Instruction]
    skid: Skid | None  # of samples that an interrupt takes; None of others, which name an instruction themselves
    same: bool  # whether the run made the file's samples once more, each of them


@dataclass(frozen=True, slots=True)
class Truth:
    """What there is to say of a file."""

    path: str
    command: tuple[str, ...]  # that made it
    core: str
    held: tuple[Held, ...]
    not_held: tuple[str, ...]  # events, with the reason


class Repetition:
    """A recorded run, once more: its samples, those of the same overflows at their own instructions, and all events."""

    def __init__(
        self,
        session: Session,
        specs: Sequence[EventSpec],
        sampling: Sampling,
        scope: Scope,
        complain: Callable[[str], None],
    ) -> None:
        """As `planned` gives them."""
        self._session, self._complain = session, complain
        self.specs = specs
        self.reasons: dict[int, str] = {}  # by the event's number: why it cannot be held against anything
        self._counted: dict[int, EventSpec] = {}
        for number, spec in enumerate(specs):
            try:
                self._counted[number] = population(session, spec)
            except PerfemuError as problem:
                self.reasons[number] = problem.message
        self._sampling = replace(
            sampling, callchains=False, exact_callchains=False, branches=0, stack_bytes=0,
            user_registers=None, interrupt_registers=None,
        )  # fmt: skip
        self._scope = scope
        self._profiles: tuple[Profile, Profile, Profile | None] | None = None

    def run(self) -> None:
        """Raises PerfemuError, and Interrupted if the user wants no more."""
        exactly = [self._at_instruction(number) for number in self._imprecise()]
        counting = Sampling(inherit=self._sampling.inherit)
        session, scope = self._session, self._scope
        with Interruption() as interruption:
            again = KeptRecording(session, self.specs, self._sampling, scope, interruption)
            precise = KeptRecording(session, exactly, self._sampling, scope, interruption) if exactly else None
            every = KeptRecording(session, list(self._counted.values()), counting, scope, interruption, ExactSamples)
            session.run(interruption)
        session.check_reached()
        self._profiles = (
            again.profile("the run", self._complain, keeps_moments=True),
            every.profile("its exact counts", self._complain),
            precise.profile("the run", self._complain, keeps_moments=True) if precise else None,
        )

    def held(self, recorded: Profile) -> Iterator[Held]:
        """The events of a file, which has its moments. After the run."""
        assert self._profiles is not None, "run it first"
        again, every, precise = self._profiles
        exactly = dict(zip(self._imprecise(), precise.events, strict=False)) if precise else {}
        for event, (number, counted) in zip(every.events, self._counted.items(), strict=False):
            sampled = recorded.events[number]
            if not sampled.sample_count or not event.period:
                self.reasons[number] = f"{sampled.name}: there are no {'events' if sampled.sample_count else 'samples'}"
                continue
            spec = self.specs[number]
            moments = again.events[number].moments
            skid = skid_of(moments, exactly[number].moments) if number in exactly else None
            yield _held(sampled, event, counted, moments, skid, self._pmu(spec))

    def _imprecise(self) -> list[int]:
        """The counters' events whose samples are where an interrupt finds the program."""
        specs = enumerate(self.specs)
        return [number for number, spec in specs if number in self._counted and spec.is_hardware and not _names(spec)]

    def _at_instruction(self, number: int) -> EventSpec:
        spec = self.specs[number]
        letters = spec.modifiers.text.replace("p", "") + "p" * _PRECISE
        return replace(spec, modifiers=parse_modifiers(letters), leads=True, group_size=1)

    def _pmu(self, spec: EventSpec) -> str:
        return self._session.pmu_model.sysfs_name if spec.source is None else spec.source.name


def _names(spec: EventSpec) -> bool:
    """Whether its samples name the instruction that made the event."""
    return spec.modifiers.precise >= _PRECISE or spec.source is not None


def _held(
    sampled: EventProfile,
    event: EventProfile,
    counted: EventSpec,
    again: Sequence[Moment],
    skid: Skid | None,
    pmu: str,
) -> Held:
    attr = sampled.description.attr
    weights = Counter(moment.period for moment in sampled.moments)
    effective = effective_samples(weights)
    return Held(
        sampled.name,
        pmu,
        attr.precise_ip,
        f"{attr.sample_period:,} Hz" if attr.freq else f"every {attr.sample_period:,}",
        sampled.sample_count,
        sampled.period,
        counted.name,
        event.period,
        _compared(_function, event, sampled, effective),
        _compared(_instruction, event, sampled, effective),
        skid,
        _same(sampled.moments, again),
    )


def _compared(
    key: Callable[[Place], Key], event: EventProfile, sampled: EventProfile, effective: float
) -> Comparison[Key]:
    """By what `key` makes of places."""
    true, weights, samples = Counter[Key](), Counter[Key](), Counter[Key]()
    for sample, weight in event.samples.items():
        true[key(sample.place)] += weight.period
    for sample, weight in sampled.samples.items():
        weights[key(sample.place)] += weight.period
        samples[key(sample.place)] += weight.samples
    return compare(true, weights, samples, effective)


def _function(place: Place) -> Function:
    return Function(place.file_name, UNKNOWN if place.symbol is None else place.symbol.shown)


def _instruction(place: Place) -> Instruction:
    return Instruction(place.path, place.offset)


def _same(one: Sequence[Moment], other: Sequence[Moment]) -> bool:
    def shape(moments: Sequence[Moment]) -> list[tuple[int, Instruction, int]]:
        return [(each.time_ns, _instruction(each.sample.place), each.period) for each in moments]

    return shape(one) == shape(other)


def truth_of(
    file: PerfDataFile, symfs: str, repetition: Repetition, core: str, complain: Callable[[str], None]
) -> Truth:
    """Run it once more, and hold `file`, whose events are those of `repetition`, against that."""
    held: tuple[Held, ...] = ()
    if len(repetition.reasons) < len(repetition.specs):
        recorded = read_profile(file, symfs, complain, keeps_moments=True)
        repetition.run()
        held = tuple(repetition.held(recorded))
    return Truth(file.name, file.features.command_line, core, held, tuple(repetition.reasons.values()))
