"""Sources: events of a machine's PMUs besides its CPUs' own, as ``-e`` names them: ``msr/tsc/``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from perfcore.events.drivers.sources import source_types
from perfemu.errors import EventSyntaxError
from perfemu.events.spec import EventSpec, Modifiers
from pmu.event import UnknownEvent
from pmu.event_source import EventSource
from pmu.model import PmuModel
from pmu.unit_pmu import UnitPmu

_PREFIXES = {  # of the vendors' names: whose events these are
    "unc_arb_": "uncore_arb",
    "unc_cbo_": "uncore_cbox",
    "unc_cha_": "uncore_cha",
    "unc_chacms_": "uncore_chacms",
    "unc_clock.": "uncore_clock",
    "unc_m_": "uncore_imc",
    "unc_b2cmi_": "uncore_b2cmi",
    "unc_iio_": "uncore_iio",
    "unc_upi_": "uncore_upi",
    "l3_": "amd_l3",
    "umc_": "amd_umc_0",
}
_FILTERS = "ukhGHI"  # modifiers that ask for less than all that happens


def _kind(name: str) -> str:
    """Of a PMU: its name without its number."""
    return re.sub(r"_\d+\Z", "", name)


class Sources:
    """Those of one machine, which has PMU `model`."""

    def __init__(self, model: PmuModel) -> None:
        self._model = model
        self._types = source_types(model)

    def source(self, name: str, text: str) -> EventSource:
        """The PMU of this name. Raises EventSyntaxError about `text`, with the reason where real machines have it."""
        for source in self._model.sources:
            if source.name == name:
                return source
        kind = _kind(name)
        for other in self._types:
            if _kind(other) == kind:
                raise EventSyntaxError(f"no PMU '{name}': there is one of its kind here, which is called {other}")
        why = self._model.no_sources.get(name) or self._model.no_sources.get(kind)
        if why is not None:
            raise EventSyntaxError(f"'{text}': PMU '{name}' is not modelled: {why}")
        there = ", ".join([self._model.sysfs_name, *self._types])
        raise EventSyntaxError(f"no PMU '{name}' on {self._model.isa}; there is {there}")

    def finding(self, source: EventSource) -> tuple[Callable[[str], int | None], Callable[[str], str]]:
        """By a name, the config of an event of `source`; and what to say where there is none."""

        def find(name: str) -> int | None:
            event = source.find(name)
            return None if event is None else event.code

        def near(name: str) -> str:
            why = source.why_not(name)
            if why is not None:
                return f": {source.name} counts no {name} here: {why}"
            names = list(dict.fromkeys([*source.aliases, *(event.name for event in source.events)]))
            close = difflib.get_close_matches(name.lower(), names, cutoff=0.6) or names
            return f"; {source.name} has {', '.join(close)}"

        return find, near

    def spec(self, source: EventSource, words: Mapping[str, int], terms: str, group: int, text: str) -> EventSpec:
        """Of what stands between slashes. Raises EventSyntaxError where `source` has no such event."""
        config = words["config"]
        try:
            source.event_of(**words)
            source.core_asked_for(config)
        except UnknownEvent as problem:
            raise EventSyntaxError(f"'{text}': {problem}") from None
        spec = EventSpec(
            f"{source.name}/{terms}/",
            self._types[source.name],
            config,
            group,
            config1=words["config1"],
            config2=words["config2"],
            source=source,
        )
        units = [source.units[term.lower()] for term in terms.split(",") if term.lower() in source.units]
        return replace(spec, unit=units[0].name, scale=units[0].scale) if units else spec

    def named(self, name: str, group: int, text: str) -> EventSpec | None:
        """By the vendor's name alone. Raises EventSyntaxError about `text`, with the reason, where it is unmodelled."""
        prefix = next((prefix for prefix in _PREFIXES if name.lower().startswith(prefix)), None)
        pmu = "" if prefix is None else _PREFIXES[prefix]
        if pmu not in self._types and _kind(pmu) not in self._model.no_sources:
            return None
        source = self.source(pmu, text)
        event = source.find(name)
        if event is not None:
            return EventSpec(name, self._types[source.name], event.code, group, source=source)
        why = source.why_not(name)
        if why is not None:
            raise EventSyntaxError(f"'{text}': {source.name} counts no {name} here: {why}")
        return None

    def checked(self, source: EventSource, modifiers: Modifiers, text: str) -> Modifiers:
        """Raises EventSyntaxError where they ask `source` for what it cannot tell apart."""
        asked = [letter for letter in modifiers.text if letter in _FILTERS]
        if isinstance(source, UnitPmu):
            return modifiers  # they are its driver's to judge
        if asked or modifiers.precise:
            letters = "".join(asked) or "p"
            raise EventSyntaxError(f"'{text}': {source.name} counts whatever happens: it knows no modifier '{letters}'")
        return modifiers
