"""PERF: programs that use the perf subsystem, ptrace and bpf; what must hold of them, besides that all goes on."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from typing import Any

from emulator.linux.syscalls.table import Syscall
from fuzz.perf.program import PerfProgram
from fuzz.program import BPF, rows_of
from fuzz.run import Finish, Kind
from perfcore.abi.read_format import ReadValues
from perfcore.bpf.subsystem import Bpf
from perfcore.events.event import PerfEvent
from perfcore.events.subsystem import PerfEvents
from perfemu.session import Session


def _rows(isa: str) -> list[Syscall]:
    return [*rows_of(isa), BPF]


class Counters:
    """Hears of each reading: what an event has counted, and its times, do not become less but by a reset."""

    def __init__(self) -> None:
        self.backward: list[str] = []
        self._last: dict[PerfEvent, ReadValues] = {}

    def begin(self) -> None:
        """From now on, in this process."""
        read, reset = PerfEvent.read_values, PerfEvent._reset

        def read_values(event: PerfEvent) -> ReadValues:
            values = read(event)
            self.hear(event, values)
            return values

        def reset_count(event: PerfEvent) -> None:
            reset(event)
            self.reset(event)
            if event.parent is not None:
                self.reset(event.parent)

        PerfEvent.read_values = read_values  # type: ignore[method-assign]
        PerfEvent._reset = reset_count  # type: ignore[method-assign]

    def hear(self, event: PerfEvent, values: ReadValues) -> None:
        before = self._last.get(event, ReadValues(0, 0, 0, 0, 0))
        for name in ("value", "enabled", "running", "lost"):
            if getattr(values, name) < getattr(before, name):
                self.backward.append(f"{event}: {name} {getattr(before, name)}, then {getattr(values, name)}")
        if values.running > values.enabled:
            self.backward.append(f"{event}: runs {values.running} of {values.enabled} ns")
        self._last[event] = values

    def reset(self, event: PerfEvent) -> None:
        if event in self._last:
            self._last[event] = self._last[event]._replace(value=0)


def _watch(session: Session) -> Finish:
    counters = Counters()
    counters.begin()
    made: list[Any] = []
    for kind in (Bpf, PerfEvents):
        _note_instances(kind, made)
    descriptors = _descriptors()
    kernel = session.machine.kernel

    def finish() -> str:
        if counters.backward:
            return f"counters go backward: {counters.backward[:5]}"
        own = os.path.dirname(session.program.path)  # the guest's directory and program
        if new := sorted(path for path in _descriptors() - descriptors if not path.startswith(own)):
            return f"descriptors of the host's: {new}"
        if any(task.exit_code is None and not task.process.is_init for task in kernel.tasks.values()):
            return ""
        return "; ".join(filter(None, map(left_behind, made)))

    return finish


def _descriptors() -> Counter[str]:
    """What the emulator has open."""
    found = Counter[str]()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one with which they are listed
            found[os.readlink(f"/proc/self/fd/{name}")] += 1
    return found


def _note_instances(kind: type, made: list[Any]) -> None:
    begin = kind.__init__  # type: ignore[misc]

    def noted(self: object, *arguments: object, **named: object) -> None:
        begin(self, *arguments, **named)
        made.append(self)

    kind.__init__ = noted  # type: ignore[misc]


def left_behind(made: Bpf | PerfEvents) -> str:
    """What of it nobody has any more, and is there."""
    if isinstance(made, PerfEvents):
        return f"{made.locked_memory.pages} locked pages" if made.locked_memory.pages else ""
    counts = {name: len(getattr(made, name)) for name in ("maps", "programs", "links")}
    counts["types"] = sum(not types.is_kernels for types in made.types)
    return f"of no process any more: {counts}" if any(counts.values()) else ""


PERF = Kind(" --perf", PerfProgram, _rows, _watch)
