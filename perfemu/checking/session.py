"""session: the baselines of one run of pytest."""

from __future__ import annotations

from typing import Any

from perfemu.checking.baseline import Baseline, Entry
from perfemu.checking.fixture import PerfemuFixture


class Baselines:
    """Those of a file, and those that are to be kept there."""

    def __init__(self, path: str, updates: bool) -> None:
        self._baseline = Baseline.read(path)
        self._updated: dict[str, Entry] | None = {} if updates else None

    def fixture(self, test: str) -> PerfemuFixture:
        return PerfemuFixture(test, self._baseline, self._updated)

    def rows(self) -> dict[str, Any]:
        """What is to be kept, for another process."""
        return {name: entry.row() for name, entry in (self._updated or {}).items()}

    def add_rows(self, rows: dict[str, Any]) -> None:
        if self._updated is not None:
            self._updated.update({name: Entry.of_row(row) for name, row in rows.items()})

    def write(self) -> None:
        """Those of tests that did not run stay as they are."""
        if self._updated:
            self._baseline.entries.update(self._updated)
            self._baseline.write()
