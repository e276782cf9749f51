"""Sources: events of a machine's PMUs besides its CPUs' own, as ``-e`` names them: ``msr/tsc/``."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from perfcore.events.drivers.sources import source_types
from perfemu.errors import EventSyntaxError
from perfemu.events.spec import EventSpec, Modifiers
from pmu.event_source import EventSource
from pmu.model import PmuModel

_FILTERS = "ukhGHI"  # modifiers that ask for less than all that happens


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
        kind = name.rstrip("0123456789").rstrip("_")
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
            why = source.not_modelled.get(name.lower())
            if why is not None:
                return f": {source.name} counts no {name} here: {why}"
            names = [event.name for event in source.events]
            close = difflib.get_close_matches(name.lower(), names, cutoff=0.6) or names
            return f"; {source.name} has {', '.join(close)}"

        return find, near

    def spec(self, source: EventSource, config: int, base_name: str, group: int, text: str) -> EventSpec:
        """Raises EventSyntaxError where `source` has no event `config`."""
        if source.find_code(config) is None:
            names = ", ".join(f"{event.name} ({event.code:#x})" for event in source.events)
            raise EventSyntaxError(f"'{text}': {source.name} has no event {config:#x}; it has {names}")
        return EventSpec(base_name, self._types[source.name], config, group, source=source)

    def checked(self, source: EventSource, modifiers: Modifiers, text: str) -> Modifiers:
        """Raises EventSyntaxError where they ask `source` for what it cannot tell apart."""
        asked = [letter for letter in modifiers.text if letter in _FILTERS]
        if asked or modifiers.precise:
            letters = "".join(asked) or "p"
            raise EventSyntaxError(f"'{text}': {source.name} counts whatever happens: it knows no modifier '{letters}'")
        return modifiers
