"""Where the machine may differ from the reference: rows with reasons, read from ``<isa>_differences.toml``.

    [[difference]]
    forms = ["and *", "or *"]         # shell patterns of forms' names
    ignore = { rflags = "AF" }        # these bits of these parts of the state ("all": all of them)
    status = "undefined"
    reason = "the architecture leaves AF undefined"

`status` is why the row is there:

    undefined      the architecture says nothing: no need to differ
    vendor         vendors differ, and the host is of `vendors`; it holds for no other
    design         the machine differs by design, or where the reference cannot be trusted
    to be mended   the machine is wrong, and somebody knows

A row of the last two that no longer differs fails the test, unless `rare = true` says that a few inputs may not show
it: take it out. `anything = true` stands for the whole state,
`accept = "name"` for a function of the ISA's test that judges the two states.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

STATUSES = ("undefined", "vendor", "design", "to be mended")
MUST_DIFFER = ("design", "to be mended")
_KEYS = {"forms", "ignore", "status", "reason", "vendors", "anything", "accept", "rare"}


@dataclass(frozen=True, slots=True)
class Difference:
    forms: tuple[str, ...]
    status: str
    reason: str
    ignore: tuple[tuple[int, int], ...] = ()  # word of the state, bits
    vendors: tuple[str, ...] = ()  # of the host; of any if there are none
    anything: bool = False
    accept: str = ""
    rare: bool = False

    def applies(self, form: str) -> bool:
        return any(fnmatchcase(form, pattern) for pattern in self.forms)

    @property
    def must_differ(self) -> bool:
        return self.status in MUST_DIFFER and not self.rare


def load(file: Path, places: Mapping[str, Mapping[str, tuple[tuple[int, int], ...]]]) -> list[Difference]:
    """`places`: for each name that `ignore` may use, what each of its values stands for, as words and bits."""
    rows = tomllib.loads(file.read_text(encoding="utf-8")).get("difference", [])
    return [_difference(row, f"{file.name}, row {number}", places) for number, row in enumerate(rows, 1)]


def _difference(
    row: Mapping[str, object], where: str, places: Mapping[str, Mapping[str, tuple[tuple[int, int], ...]]]
) -> Difference:
    assert not (unknown := row.keys() - _KEYS), f"{where}: {sorted(unknown)} are none of {sorted(_KEYS)}"
    assert row["status"] in STATUSES, f"{where}: status {row['status']} is none of {STATUSES}"
    ignored: dict[int, int] = {}
    wanted = row.get("ignore", {})
    assert isinstance(wanted, dict), f"{where}: ignore is a table"
    for place, values in wanted.items():
        for value in str(values).split():
            for word, bits in places[place][value]:
                ignored[word] = ignored.get(word, 0) | bits
    return Difference(
        forms=tuple(row["forms"]),  # type: ignore[arg-type]
        status=str(row["status"]),
        reason=str(row["reason"]),
        ignore=tuple(sorted(ignored.items())),
        vendors=tuple(row.get("vendors", ())),  # type: ignore[arg-type]
        anything=bool(row.get("anything", False)),
        accept=str(row.get("accept", "")),
        rare=bool(row.get("rare", False)),
    )


def applying(rows: Sequence[Difference], form: str, vendor: str) -> list[Difference]:
    return [row for row in rows if (not row.vendors or vendor in row.vendors) and row.applies(form)]


def ignored(rows: Sequence[Difference]) -> tuple[tuple[int, int], ...]:
    """What all of `rows` ignore together."""
    together: dict[int, int] = {}
    for row in rows:
        for word, bits in row.ignore:
            together[word] = together.get(word, 0) | bits
    return tuple(sorted(together.items()))
