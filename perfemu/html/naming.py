"""Names by which two recordings are compared: functions, files, threads and events, without addresses and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perfemu.comparing.matching import matched_functions, matched_modules
from perfemu.comparing.measured import measured_of
from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile, Profile, ProfileSample
from perfemu.symbols.finder import SymbolisedFile
from perfemu.visible import visible


class Function(NamedTuple):
    """A frame of the page. Ascending order is that in which callees stand beside each other."""

    name: str  # as shown; "" is the whole file
    file: str  # perf's "Shared Object"
    symbol: str = ""  # as in the ELF: two may be shown alike
    rank: int = 0  # among the symbols of the file that are called the same


class Task(NamedTuple):
    """A thread while it had one name."""

    comm: str
    rank: int  # among the threads of that name: numbers differ from run to run


_Thread = tuple[str, int, int]  # comm, pid, tid


class Renamed(NamedTuple):
    """What is called otherwise in the other recording, and how. Functions: by their file there, and their name here."""

    files: dict[str, str]
    comms: dict[str, str]
    functions: dict[tuple[str, str], Function]


SAME_NAMES = Renamed({}, {}, {})


class Names:
    """Of one recording's places and threads, as they are called in the other one."""

    def __init__(self, profile: Profile, other: Renamed) -> None:
        self._renamed = other
        self._functions: dict[Place, Function] = {}
        self._ranks: dict[int, dict[int, int]] = {}  # by identity of the file: of symbols whose name repeats, by start
        self._tasks: dict[_Thread, Task] = {}
        self.numbers: dict[Task, tuple[int, int]] = {}  # pid and tid
        threads = sorted({self._thread(sample) for sample in _samples(profile)})
        first = 0
        for index, thread in enumerate(threads):
            if thread[0] != threads[first][0]:
                first = index
            task = self._tasks[thread] = Task(thread[0], index - first)
            self.numbers[task] = thread[1:]

    def _thread(self, sample: ProfileSample) -> _Thread:
        return self._renamed.comms.get(sample.comm, sample.comm), sample.thread.pid, sample.thread.tid

    def task(self, sample: ProfileSample) -> Task:
        return self._tasks[self._thread(sample)]

    def function(self, place: Place) -> Function:
        found = self._functions.get(place)
        if found is None:
            file = self._file(place)
            if place.symbol is None or place.file is None:
                found = Function(visible(place.function_name), file)
            else:
                same = self._renamed.functions.get((file, place.symbol.shown))
                rank = self._repeated(place.file).get(place.symbol.start, 0)
                found = same or Function(place.symbol.shown, file, place.symbol.name, rank)
            self._functions[place] = found
        return found

    def module(self, place: Place) -> Function:
        return Function("", self._file(place))

    def _file(self, place: Place) -> str:
        return self._renamed.files.get(place.file_name, place.file_name)

    def _repeated(self, file: SymbolisedFile) -> dict[int, int]:
        known = self._ranks.get(id(file))
        if known is None:
            known = self._ranks[id(file)] = {}
            seen: dict[str, int] = {}
            for symbol in file.table.symbols:
                rank = seen.get(symbol.name, 0)
                seen[symbol.name] = rank + 1
                if rank:
                    known[symbol.start] = rank
        return known


def _samples(profile: Profile) -> Iterable[ProfileSample]:
    return (sample for event in profile.events for sample in event.samples)


def renamings(old: Profile, new: Profile, names: Names) -> Renamed:
    """What in `old` is called otherwise in `new`, whose names are `names`: files and functions, as `diff` has them."""
    before, after = measured_of(old), measured_of(new)
    modules = matched_modules(before, after)
    functions: dict[tuple[str, str], Function] = {}
    for sample in _samples(new):
        function = names.function(sample.place)
        functions.setdefault((function.file, function.name), function)
    same = matched_functions(before, after, modules)
    return Renamed(
        {was: now for now, was in modules.items()},
        renamed({sample.comm for sample in _samples(old)}, {sample.comm for sample in _samples(new)}),
        {(now.module, was.name): functions[now] for now, was in same.items() if now in functions},
    )


def renamed(old: set[str], new: set[str]) -> dict[str, str]:
    """If each has exactly one name that the other has not, it is the same thing: ``./sort_old`` and ``./sort_new``."""
    vanished, appeared = old - new, new - old
    return {vanished.pop(): appeared.pop()} if len(vanished) == len(appeared) == 1 else {}


def same_events(
    new: Sequence[EventProfile], old: Sequence[EventProfile]
) -> list[tuple[EventProfile, EventProfile | None]]:
    """Events of `new`, each with that of `old` of its name, at best with its modifiers; one of the two has samples."""
    left = [event for event in old if event.sample_count]
    pairs: list[tuple[EventProfile, EventProfile | None]] = []
    for event in new:
        alike = [other for other in left if other.name == event.name]
        alike += [other for other in left if bare_name(other.name) == bare_name(event.name)]
        if alike:
            left.remove(alike[0])
        if alike or event.sample_count:
            pairs.append((event, alike[0] if alike else None))
    return pairs


def bare_name(event: str) -> str:
    """Without modifiers: ``cycles`` of ``cycles:u``."""
    head, colon, tail = event.rpartition(":")
    return head if colon and tail and set(tail) <= set("ukhGHIpPSDeW") else event
