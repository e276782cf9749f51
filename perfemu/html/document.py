"""document: what a page shows, as numbers and names: all that page.js is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from perfemu.events.attributes import is_exact
from perfemu.html.metrics import metrics
from perfemu.html.naming import SAME_NAMES, Function, Names, Renamed, Task, renamings, same_events
from perfemu.html.sources import SourceFile, source_files
from perfemu.html.stacks import NEW, OLD, Path, Stacks
from perfemu.profile.profile import EventProfile, Profile
from perfemu.visible import visible

Document = dict[str, Any]  # JSON


class _Strings:
    """Each string once."""

    def __init__(self) -> None:
        self.table: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.table.setdefault(text, len(self.table))


def document(new: Profile, old: Profile | None, symfs: str, with_sources: bool = True) -> Document:
    """Of `new`, compared with `old`. Every event of `new` that has samples is in it."""
    pairs = same_events(new.events, old.events if old else ())
    names = {NEW: Names(new, SAME_NAMES)}
    other = renamings(old, new, names[NEW]) if old else SAME_NAMES
    if old:
        names[OLD] = Names(old, other)
    stacks = Stacks(len(pairs))
    for number, pair in enumerate(pairs):
        for side, event in ((NEW, pair[0]), (OLD, pair[1])):
            if event is not None:
                stacks.add(event, number, names[side], side)
    tasks = sorted({task for weights in stacks.weights for task, _ in weights})
    ends, nodes = stacks.paths()
    strings = _Strings()
    functions = stacks.functions()
    sources = source_files([event for event, _ in pairs], symfs) if with_sources else []
    return {
        "name": visible(new.path),
        "old": visible(old.path) if old else None,
        "facts": [*_facts(new, old), *_renamed(other)],
        "tasks": [_task(task, names, strings) for task in tasks],
        "functions": [[strings(function.name), strings(function.file)] for function in functions],
        "was": [[functions.index(now), strings(name)] for (_, name), now in sorted(other.functions.items())],
        "homes": _homes([event for event, _ in pairs], names[NEW], functions, sources),
        "nodes": {"function": [node.function for node in nodes], "depth": [node.depth for node in nodes]},
        "events": [_event(pair, weights, tasks, ends) for pair, weights in zip(pairs, stacks.weights, strict=True)],
        "metrics": [metric._asdict() for metric in metrics([event.name for event, _ in pairs])],
        "sources": [_source(source) for source in sources],
        "strings": list(strings.table),
    }


def _facts(new: Profile, old: Profile | None) -> Iterator[list[str]]:
    """What the files say of how they came to be; not the host's name, for pages are passed on."""
    for label, value in _told(new):
        other = dict(_told(old)).get(label, "") if old else value
        if value:
            yield [label, value if other in (value, "") else f"{value}  (old: {other})"]
    for profile in (new, old) if old else (new,):
        if profile.lost_samples or profile.lost_records:
            lost = profile.lost_samples or profile.lost_records
            yield ["lost", f"{lost} samples or records of {visible(profile.path)}"]


def _told(profile: Profile) -> list[tuple[str, str]]:
    told = profile.features
    return [
        ("command", visible(" ".join(told.command_line))),
        ("architecture", visible(told.architecture or "")),
        ("processor", visible(told.cpu_description or "")),
        ("version", visible(told.version or "")),
    ]


def _renamed(other: Renamed) -> Iterator[list[str]]:
    names = sorted((other.files | other.comms).items())
    if names:
        yield ["taken as the same", ", ".join(f"{old} (old) and {new}" for old, new in names)]


def _task(task: Task, names: dict[int, Names], strings: _Strings) -> list[int]:
    for side in (NEW, OLD):
        if side in names and task in names[side].numbers:
            return [strings(task.comm), *names[side].numbers[task]]
    raise AssertionError(f"{task} is of neither recording")


def _event(
    pair: tuple[EventProfile, EventProfile | None],
    weights: dict[tuple[Task, Path], list[int]],
    tasks: Sequence[Task],
    ends: dict[Path, int],
) -> Document:
    """Rows by task, then by node; nodes as differences from the one before, or from 0."""
    event, old = pair
    numbers = {task: number for number, task in enumerate(tasks)}
    rows = sorted((numbers[task], ends[path], both) for (task, path), both in weights.items())
    starts = [index for index in range(len(rows)) if not index or rows[index][0] != rows[index - 1][0]]
    nodes: list[int] = []
    for first, last in pairwise([*starts, len(rows)]):
        before = 0
        for _, node, _ in rows[first:last]:
            nodes.append(node - before)
            before = node
    return {
        "name": event.name,
        "exact": is_exact(event.description.attr) and (old is None or is_exact(old.description.attr)),
        "chains": event.has_callchains or bool(old and old.has_callchains),
        "samples": [old.sample_count if old else 0, event.sample_count],
        "total": [old.period if old else 0, event.period],
        "compared": old is not None,
        "tasks": [[rows[first][0], last - first] for first, last in pairwise([*starts, len(rows)])],
        "nodes": nodes,
        "new": [both[NEW] for _, _, both in rows],
        "old": [both[OLD] for _, _, both in rows] if old else [],
    }


def _homes(
    events: Sequence[EventProfile], names: Names, functions: Sequence[Function], sources: Sequence[SourceFile]
) -> list[list[int]]:
    """Of each function: the source file of its heaviest line for the first event, and that line; [] without any."""
    shown = {source.path: number for number, source in enumerate(sources) if source.parts}
    heaviest: dict[Function, tuple[int, int, int]] = {}
    if shown:
        weights: dict[tuple[Function, int, int], int] = {}
        for event in events:
            for sample, weight in event.samples.items():
                line = sample.place.source()
                if line is not None and line[0] in shown:
                    key = (names.function(sample.place), shown[line[0]], line[1])
                    weights[key] = weights.get(key, 0) + weight.period
            if weights:
                break
        for (function, file, number), weight_of_line in weights.items():
            candidate = (-weight_of_line, file, number)
            heaviest[function] = min(heaviest.get(function, candidate), candidate)
    return [list(heaviest[function][1:]) if function in heaviest else [] for function in functions]


def _source(source: SourceFile) -> Document:
    lines = sorted(source.counts)
    return {
        "path": visible(source.path),
        "lines": lines,
        "counts": [list(column) for column in zip(*(source.counts[line] for line in lines), strict=True)],
        "parts": [list(part) for part in source.parts],
    }
