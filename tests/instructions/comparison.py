"""Runs cases on a reference and on the machine, and finds those inputs whose difference no row explains.

An ISA plugs in with:

* ``runner/<isa>.c``: the state of its machine, how inputs are made, how the code is entered and left (runner.h);
* a list of ``Form``s, found by walking its encodings and not by hand;
* a ``Layout`` that names the words of its state, and the `places` that rows of its table may ignore;
* ``<isa>_differences.toml`` (differences.py), and the functions that its rows' `accept` name.

Hashes are compared first, of all inputs of an encoding at once; only where they differ, the inputs are looked at one by
one, and of those that differ the states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.instructions.differences import Difference, applying, ignored
from tests.instructions.form import Case
from tests.instructions.protocol import Layout, Runner, States

MOST_SHOWN = 5  # inputs of a case whose states are fetched, if no row wants to judge all of them
Accept = Callable[[Case, States, States], bool]  # the reference's and the machine's


@dataclass(frozen=True, slots=True)
class Finding:
    """A case's input on which the machine differs, and no row says why. Of `differing` inputs it is the first."""

    case: Case
    input: int
    differing: int
    reference: States
    machine: States

    def described(self, layout: Layout) -> str:
        lines = [
            f"{self.case.form.name}: {self.case.encoding.code.hex()} "
            f"input {self.input} ({self.differing} of {self.case.inputs} differ)"
        ]
        for name, expected, found in zip(layout.names, self.reference.after, self.machine.after, strict=True):
            if expected != found:
                before = self.reference.before[layout.index(name)]
                lines.append(f"    {name}: {expected:#x}, not {found:#x} (was {before:#x})")
        return "\n".join(lines)


@dataclass(slots=True)
class Outcome:
    findings: list[Finding] = field(default_factory=list)
    needed: set[int] = field(default_factory=set)  # rows that explained something, by their place in the table

    def unneeded(self, rows: Sequence[Difference], forms: Iterable[str], vendor: str) -> list[Difference]:
        """Rows that should explain something of these forms, and do not."""
        names = list(forms)
        return [
            row
            for place, row in enumerate(rows)
            if row.must_differ and place not in self.needed
            and (not row.vendors or vendor in row.vendors) and any(row.applies(name) for name in names)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    reference: Runner
    machine: Runner
    rows: Sequence[Difference]
    vendor: str = ""
    accept: Mapping[str, Accept] = field(default_factory=dict)

    def __call__(self, cases: Sequence[Case]) -> Outcome:
        outcome = Outcome()
        place = {id(row): number for number, row in enumerate(self.rows)}
        names = {case.form.name for case in cases}
        rows_of = {name: applying(self.rows, name, self.vendor) for name in names}
        requests = [case.request(ignored(rows_of[case.form.name])) for case in cases]
        failing = []
        for case, expected, found in zip(
            cases, self.reference.hashes(requests), self.machine.hashes(requests), strict=True
        ):
            rows = rows_of[case.form.name]
            if expected.whole != found.whole:
                outcome.needed.update(place[id(row)] for row in rows if row.ignore)
            if expected.known == found.known:
                continue
            if anything := [row for row in rows if row.anything]:
                outcome.needed.update(place[id(row)] for row in anything)
            else:
                failing.append(case)
        self._look_closer(failing, rows_of, place, outcome)
        return outcome

    def _look_closer(
        self,
        cases: Sequence[Case],
        rows_of: Mapping[str, Sequence[Difference]],
        place: Mapping[int, int],
        outcome: Outcome,
    ) -> None:
        requests = [case.request(ignored(rows_of[case.form.name])) for case in cases]
        wanted: list[tuple[Case, int]] = []
        differing: dict[int, int] = defaultdict(int)
        for case, expected, found in zip(
            cases, self.reference.each(requests), self.machine.each(requests), strict=True
        ):
            different = [i for i, (one, other) in enumerate(zip(expected, found, strict=True)) if one[1] != other[1]]
            differing[case.slot] = len(different)
            judged = any(row.accept for row in rows_of[case.form.name])
            wanted += [(case, each) for each in (different if judged else different[:MOST_SHOWN])]
            if not different:  # what differs lies outside of the states
                wanted.append((case, 0))
        single = [case.request(first=number, count=1) for case, number in wanted]
        found_slots: set[int] = set()
        for (case, number), expected_states, found_states in zip(
            wanted, self.reference.states(single), self.machine.states(single), strict=True
        ):
            accepting = [
                row
                for row in rows_of[case.form.name]
                if row.accept and self.accept[row.accept](case, expected_states, found_states)
            ]
            outcome.needed.update(place[id(row)] for row in accepting)
            if accepting or case.slot in found_slots:
                continue
            found_slots.add(case.slot)
            outcome.findings.append(Finding(case, number, differing[case.slot], expected_states, found_states))
