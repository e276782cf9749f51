"""Baseline: the counts that a program had, by function, in a file that is kept with the sources."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from perfemu.comparing.measured import EventCounts, Function, Measured
from perfemu.errors import PerfemuError, UsageError
from perfemu.output_file import OutputText
from perfemu.version import VERSION

FORMAT = 1
_WHOLE = "the whole program"


@dataclass(frozen=True, slots=True)
class Entry:
    """One program's. Counts of another core, ISA, version of perfemu or region of it are not comparable."""

    core: str
    isa: str
    version: str
    region: str  # empty: the whole program
    measured: Measured

    @classmethod
    def of(cls, measured: Measured) -> Entry:
        return cls(measured.core, measured.isa, VERSION, measured.region, measured)

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Entry:
        """As `row` wrote it; KeyError and the like if it did not."""
        events = {event: _event(event, told) for event, told in row["events"].items()}
        measured = Measured("baseline", events, str(row["isa"]), str(row["core"]))
        return cls(measured.core, measured.isa, str(row["perfemu"]), str(row.get("region", "")), measured)

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "core": self.core,
            "isa": self.isa,
            "perfemu": self.version,
            **({"region": self.region} if self.region else {}),
            "events": {event.name: _event_row(event) for event in self.measured.events.values()},
        }

    def hindrance(self, now: Measured) -> str:
        """Why `now` cannot be compared with it; empty if it can."""
        facts = (("core", self.core, now.core), ("ISA", self.isa, now.isa), ("perfemu", self.version, VERSION))
        for what, old, new in facts:
            if old != new:
                return f"the baseline is of {what} {old}, this is {new}"
        if self.region != now.region:
            return f"the baseline counts {self.region or _WHOLE}, this counts {now.region or _WHOLE}"
        return ""


@dataclass(slots=True)
class Baseline:
    """All entries of a file, by name."""

    path: str
    entries: dict[str, Entry] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str) -> Baseline:
        """An empty one if there is no file yet. UsageError for one that is none."""
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except FileNotFoundError:
            return cls(path)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as problem:
            raise UsageError(f"{path}: {problem}") from None
        try:
            if document["format"] != FORMAT:
                raise UsageError(f"{path}: format {document['format']}; this perfemu {VERSION} knows {FORMAT}")
            return cls(path, {name: Entry.of_row(row) for name, row in document["entries"].items()})
        except (AttributeError, KeyError, TypeError, ValueError):
            raise UsageError(f"{path} is no baseline that perfemu wrote") from None

    def write(self) -> None:
        """Sorted, a function a line: what changes is what a review shows. Raises PerfemuError."""
        document = {"format": FORMAT, "entries": {name: self.entries[name].row() for name in sorted(self.entries)}}
        try:
            with OutputText(self.path) as output:
                output.stream.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        except OSError as error:
            raise PerfemuError(f"cannot write {self.path}: {error.strerror}") from None


def _event_row(event: EventCounts) -> dict[str, Any]:
    modules: dict[str, dict[str, int]] = {}
    for function in sorted(event.functions):
        modules.setdefault(function.module, {})[function.name] = event.functions[function]
    return {"total": event.total, "functions": modules}


def _event(name: str, row: dict[str, Any]) -> EventCounts:
    counts = Counter(
        {
            Function(module, function): int(count)
            for module, functions in row["functions"].items()
            for function, count in functions.items()
        }
    )
    return EventCounts(name, int(row["total"]), True, counts)
