"""parse_events: perf's ``-e`` strings to EventSpecs, for one PMU model."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from perfcore.abi.constants import CLOCKS, PerfType
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfemu.errors import EventSyntaxError
from perfemu.events.memory import PREFIX, breakpoint_event
from perfemu.events.names import generic_event, printed_names
from perfemu.events.sources import Sources
from perfemu.events.spec import EventSpec, Modifiers, parse_modifiers
from perfemu.events.terms import parse_terms
from pmu.event import Event, UnknownEvent
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu

_RAW = re.compile(r"r([0-9a-fA-F]{1,16})\Z")
_TRACEPOINT = re.compile(r"(?P<name>[a-z]\w*:[a-z0-9_]*_[a-z0-9_]+)(:(?P<modifiers>\w*))?\Z")
_TRACEPOINTS = re.compile(r"(?P<pattern>[a-z*?][\w*?]*:[\w*?]*[*?][\w*?]*)(?P<modifiers>:\w*)?\Z")  # a shell pattern
_PMU = re.compile(r"(?P<pmu>[\w.-]+)/(?P<terms>[^/]*)/(?P<modifiers>:?\w*)\Z")
_MEMORY = re.compile(r"(^|[,{\s])mem:[^,{}]*\Z")  # the beginning of a breakpoint, whose slash opens no terms
_PROBE = re.compile(r"u(ret)?probe:")
_IN_PROBE = re.compile(r"(^|[,{])\s*u(ret)?probe:[^,{}]*\Z")  # as far as it has been read: its slashes are a path's
_GROUP = re.compile(r"[\w-]*\{(?P<events>[^{}]*)\}(?P<modifiers>:\w*)?\Z")
_TOOL_EVENTS = ("duration_time", "user_time", "system_time")
NEAR_NAMES = 4  # suggested


Probe = Callable[[str, int], EventSpec]
"""Of the text of a probe in a program, and a group's number. Raises EventSyntaxError."""


def parse_events(
    texts: Iterable[str], pmu: PmuModel, pmu_type: int = PerfType.RAW, probe: Probe | None = None
) -> list[EventSpec]:
    """All events of one or more ``-e`` options, in order. `pmu_type` is the attr.type of the PMU's own events.

    `probe`: None where there is no program of the modelled Linux.
    """
    return _Parser(pmu, pmu_type, probe).parse(texts)


class _Parser:
    def __init__(self, pmu: PmuModel, pmu_type: int, probe: Probe | None) -> None:
        self._pmu = pmu
        self._probe = probe
        self._pmu_type = pmu_type
        self._sources = Sources(pmu)
        self._groups = 0

    def parse(self, texts: Iterable[str]) -> list[EventSpec]:
        specs: list[EventSpec] = []
        for asked, text in enumerate(texts):
            first = len(specs)
            for item in split_events(text):
                group = _GROUP.match(item)
                pattern = _TRACEPOINTS.match(item)
                if group is not None:
                    specs += self._group(group["events"], (group["modifiers"] or ":")[1:], item)
                elif pattern is not None:
                    specs += self._tracepoints(pattern["pattern"], pattern["modifiers"] or "")
                else:
                    specs.append(self._event(item))
                self._groups += 1
            if asked:
                specs[first:] = [replace(spec, asked=asked) for spec in specs[first:]]
        return specs

    def _group(self, text: str, modifiers: str, item: str) -> list[EventSpec]:
        members = [self._event(event, modifiers) for event in split_events(text)]
        if not members:
            raise EventSyntaxError(f"'{item}' is an empty group")
        pmus = {spec.source.name if spec.source and spec.system_wide else "" for spec in members}
        if len(pmus) > 1:
            raise EventSyntaxError(f"'{item}': events of {max(pmus)} are of all CPUs: they group with their like alone")
        return [replace(spec, leads=number == 0, group_size=len(members)) for number, spec in enumerate(members)]

    def _event(self, text: str, group_modifiers: str = "") -> EventSpec:
        if _PROBE.match(text):
            return self._user_probe(text)
        match = _PMU.match(text)
        if text.startswith(PREFIX):
            spec, letters = breakpoint_event(text, self._pmu.isa, self._groups)
        elif match is not None:
            spec = self._with_terms(match["pmu"], match["terms"], text)
            letters = match["modifiers"].removeprefix(":")
        elif "/" in text:
            raise EventSyntaxError(f"'{text}': a PMU's event is written pmu/term=value,.../")
        elif tracepoint := _TRACEPOINT.match(text):
            name, letters = tracepoint["name"], tracepoint["modifiers"] or ""
            spec = EventSpec(name, PerfType.TRACEPOINT, self._tracepoint(name), self._groups)
        else:
            name, _, letters = text.partition(":")
            spec = self._named(name, letters, text)
        modifiers = _merged_modifiers(letters, group_modifiers, text)
        if spec.source is not None:
            return replace(spec, modifiers=self._sources.checked(spec.source, modifiers, text))
        return replace(
            spec,
            modifiers=modifiers,
            known_in_kernel=self._known_in_kernel(spec),
            kernel_executed=self._pmu.executes_kernel,
        )

    def _user_probe(self, text: str) -> EventSpec:
        if self._probe is None:
            raise EventSyntaxError(f"'{text}': probes are for programs, not for what boots on a board")
        return self._probe(text, self._groups)

    def _known_in_kernel(self, spec: EventSpec) -> bool:
        event = spec.counted_by(self._pmu)
        return self._pmu.executes_kernel or (event is not None and self._pmu.known_in_kernel(event))

    def _tracepoint(self, name: str) -> int:
        known = tracepoints_of(self._pmu.isa)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=NEAR_NAMES, cutoff=0.6)
            there = f", did you mean {_or(near)}?" if near else " (perfemu list tracepoint names them all)"
            raise EventSyntaxError(f"no tracepoint '{name}'{there}")
        return known[name].id

    def _tracepoints(self, pattern: str, modifiers: str) -> Iterator[EventSpec]:
        """All whose names match, each for itself."""
        names = fnmatch.filter(tracepoints_of(self._pmu.isa), pattern)
        if not names:
            raise EventSyntaxError(f"no tracepoint matches '{pattern}' (perfemu list tracepoint names them all)")
        for name in names:
            yield self._event(name + modifiers)
            self._groups += 1

    def _named(self, name: str, letters: str, text: str) -> EventSpec:
        """`name` alone: generic, raw or a vendor's."""
        generic = generic_event(name)
        if generic is not None:
            clock = generic.type == PerfType.SOFTWARE and generic.config in CLOCKS
            return EventSpec(
                name if name in generic.names else generic.name,  # as perf: the alias that was typed
                generic.type,
                generic.config,
                self._groups,
                unit="msec" if clock else "",
                scale=1e-6 if clock else 1.0,
            )
        raw = _RAW.match(name)
        if raw is not None:
            return self._checked(EventSpec(name, PerfType.RAW, int(raw[1], 16), self._groups), text)
        vendor = self._find_alias(name)
        if vendor is not None:
            return EventSpec(name, self._pmu_type, self._pmu.config_of(vendor), self._groups)
        elsewhere = self._sources.named(name, self._groups, text)
        if elsewhere is not None:
            return elsewhere
        if name in _TOOL_EVENTS:
            raise EventSyntaxError(f"'{text}': perf's own events are not modelled; stat prints the times by itself")
        if name.lower() in (listed.lower() for listed in self._pmu.not_modelled.values()):
            raise EventSyntaxError(f"'{text}': {name} is of the vendor's list, and this core cannot know it")
        raise EventSyntaxError(f"unknown event '{name}'{self._suggestions(name)}")

    def _with_terms(self, pmu: str, terms: str, text: str) -> EventSpec:
        generic = generic_event(pmu)
        near = partial(self._suggestions, pmu_only=True)
        if generic is not None:
            parsed = parse_terms(terms, text, (), lambda name: None, near)
            spec = self._named(pmu, "", text)
            spec = replace(spec, base_name=f"{pmu}/{terms}/")
        elif pmu == self._pmu.sysfs_name:
            parsed = parse_terms(terms, text, self._pmu.format, self._config_of_alias, near)
            configs = parsed.config
            spec = EventSpec(f"{pmu}/{terms}/", self._pmu_type, configs["config"], self._groups)
            spec = self._checked(replace(spec, config1=configs["config1"], config2=configs["config2"]), text)
        else:
            source = self._sources.source(pmu, text)
            default = source.default_config if isinstance(source, UnitPmu) else 0
            parsed = parse_terms(terms, text, source.format, *self._sources.finding(source), default)
            spec = self._sources.spec(source, parsed.config, terms, self._groups, text)
        return replace(
            spec,
            label=parsed.label,
            period=parsed.period,
            frequency=parsed.frequency,
            aux_sample_bytes=parsed.aux_sample_bytes,
        )

    def _config_of_alias(self, name: str) -> int | None:
        event = self._find_alias(name)
        return None if event is None else self._pmu.config_of(event)

    def _find_alias(self, name: str) -> Event | None:
        """A bare word between slashes: an event of sysfs ``events/``, or any name of the vendor's."""
        alias = self._pmu.sysfs_aliases.get(name)
        return self._pmu.events.by_name(alias or name)

    def _checked(self, spec: EventSpec, text: str) -> EventSpec:
        """A code that the PMU does not implement opens on Linux and counts zero; a user who types it wants to know."""
        try:
            self._pmu.event_of(spec.config, spec.config1)
        except UnknownEvent as problem:
            raise EventSyntaxError(f"'{text}': {self._pmu.sysfs_name}: {problem}") from None
        return spec

    def _suggestions(self, name: str, pmu_only: bool = False) -> str:
        known = {} if pmu_only else {known.lower(): known for known in printed_names()}
        known.update({event.name.lower(): event.name.lower() for event in self._pmu.events if event.listed})
        if pmu_only:
            known.update({alias.lower(): alias for alias in self._pmu.sysfs_aliases})
        close = difflib.get_close_matches(name.lower(), known, n=NEAR_NAMES, cutoff=0.6)
        containing = [key for key in known if len(name) > 2 and name.lower() in key]
        near = [known[key] for key in dict.fromkeys([*close, *containing])][:NEAR_NAMES]
        return f", did you mean {_or(near)}?" if near else " (perfemu list names them all)"


def _or(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _merged_modifiers(own: str, of_group: str, text: str) -> Modifiers:
    """The group's modifiers hold for each member that does not say the same itself."""
    try:
        parse_modifiers(own)
        parse_modifiers(of_group)
        return parse_modifiers(own + "".join(letter for letter in of_group if letter not in own))
    except EventSyntaxError as problem:
        raise EventSyntaxError(f"'{text}': {problem.message.removeprefix('event syntax error: ')}") from None


def split_events(text: str) -> Iterator[str]:
    """The items between commas that are not inside braces or slashes. Empty items are errors."""
    if not text.strip():
        raise EventSyntaxError(f"no event in '{text}'")
    start = depth = 0
    in_terms = False
    for position, letter in enumerate(text + ","):
        if letter == "/":
            opened = text[start:position]
            in_terms = not in_terms and not _MEMORY.search(opened) and not _IN_PROBE.search(opened)
        elif letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
            if depth < 0:
                raise EventSyntaxError(f"'}}' without '{{' in '{text}'")
        elif letter == "," and position == len(text):
            if depth:
                raise EventSyntaxError(f"'{{' without '}}' in '{text}'")
            if in_terms:
                raise EventSyntaxError(f"'/' without a closing '/' in '{text}'")
        if letter == "," and not depth and not in_terms:
            item = text[start:position].strip()
            if not item:
                raise EventSyntaxError(f"an empty event in '{text}'")
            yield item
            start = position + 1
