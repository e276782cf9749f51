"""DynamicEvents: the probes that have been defined, and their events. As trace_dynevent.c and trace_uprobe.c."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emulator.linux.errors import EBUSY, EEXIST, EINVAL, ENODEV, ENOENT, LinuxError
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.events.probes.probe_event import Listening, ProbeEvent, TraceUprobe, described
from perfcore.events.probes.uprobe_definition import FindFile, UprobeDefinition, parse_definition
from perfcore.events.probes.uprobes import MOST_NESTED, ProbedLinux, Uprobes

FIRST_ID = 2000  # behind those of system calls
_MOST = 4096  # events and probes: more than anybody defines


class DynamicEvents:
    """Of one subsystem."""

    def __init__(self, kernel: ProbedLinux, *, measures: bool = False) -> None:
        """`measures`: not for a guest. Returns are followed without a limit then."""
        self._architecture = kernel.architecture
        self.uprobes = Uprobes(kernel, None if measures else MOST_NESTED)
        self._probes: list[TraceUprobe] = []  # in the order of their definition
        self._by_name: dict[tuple[str, str], ProbeEvent] = {}
        self._by_id: dict[int, ProbeEvent] = {}

    # ---- the events

    def find(self, id: int) -> ProbeEvent | None:
        return self._by_id.get(id)

    def groups(self) -> dict[str, dict[str, ProbeEvent]]:
        """By group and name."""
        found: dict[str, dict[str, ProbeEvent]] = {}
        for (group, name), event in self._by_name.items():
            found.setdefault(group, {})[name] = event
        return found

    def open(self, event: ProbeEvent, listening: Listening) -> None:
        event.open(self.uprobes, listening)

    def close(self, event: ProbeEvent, listening: Listening) -> None:
        event.close(self.uprobes, listening)

    # ---- the definitions

    def lines(self) -> Iterator[str]:
        return (probe.definition.line for probe in self._probes)

    def profile(self) -> Iterator[str]:
        """Of each how often it was hit."""
        for probe in self._probes:
            definition = probe.definition
            yield f"  {definition.path} {definition.event:<44} {probe.hits:15}"

    def command(self, text: str, find_file: FindFile) -> None:
        """A line of uprobe_events. Raises LinuxError."""
        words = text.partition("#")[0].split()
        if not words:
            return
        if words[0].startswith("-"):
            self._remove(words)
        else:
            self.define(parse_definition(words, find_file, self._architecture))

    def define(self, definition: UprobeDefinition) -> ProbeEvent:
        """register_trace_uprobe()"""
        self._check_semaphore(definition)
        if len(self._probes) >= _MOST:
            raise LinuxError(ENODEV, f"there are {_MOST} probes, and no more can be")
        event = self._by_name.get((definition.group, definition.event))
        if event is None:
            event = self._new_event(definition)
        else:
            _check_fits(definition, event)
        probe = TraceUprobe(definition, event)
        event.probes.append(probe)
        self._probes.append(probe)
        return event

    def _check_semaphore(self, definition: UprobeDefinition) -> None:
        """validate_ref_ctr_offset()"""
        for probe in self._probes:
            other = probe.definition
            if other.place == definition.place and other.semaphore != definition.semaphore:
                raise LinuxError(EINVAL, f"{definition.at}: there is a probe with another semaphore")

    def _new_event(self, definition: UprobeDefinition) -> ProbeEvent:
        group, name = definition.group, definition.event
        if f"{group}:{name}" in tracepoints_of(self._architecture.isa):
            raise LinuxError(EEXIST, f"{group}/{name} is another event's name")
        id = next(number for number in range(FIRST_ID, FIRST_ID + _MOST) if number not in self._by_id)
        event = ProbeEvent(described(id, group, name, definition.returns, definition.arguments))
        self._by_name[group, name] = self._by_id[id] = event
        return event

    def _remove(self, words: Sequence[str]) -> None:
        """dyn_event_release(): ``-:[GROUP/]EVENT``, or ``-:GROUP/`` for all of it."""
        group, slash, event = words[0][2:].rpartition("/")
        if words[0][1:2] != ":" or (not slash and not event):
            raise LinuxError(EINVAL, f"{words[0]}: a probe is removed by -:GROUP/EVENT")
        found = [
            probe
            for probe in self._probes
            if event in ("", probe.definition.event) and (not slash or group == probe.definition.group)
            if _is_that(probe.definition, words[1:])
        ]
        if not found:
            raise LinuxError(ENOENT, f"{words[0]}: there is no such probe")
        for probe in found:
            self._free(probe)

    def remove_all(self) -> None:
        """dyn_events_release_all(): all of them, or if one is in use, none."""
        if any(event.is_busy for event in self._by_id.values()):
            raise LinuxError(EBUSY, "an event is open")
        self._probes.clear()
        self._by_name.clear()
        self._by_id.clear()

    def _free(self, probe: TraceUprobe) -> None:
        """unregister_trace_uprobe(): of an event's last one the event goes, too."""
        name = probe.definition.group, probe.definition.event
        event = self._by_name[name]
        if event.is_busy:
            raise LinuxError(EBUSY, f"{'/'.join(name)} is open")
        event.probes.remove(probe)
        self._probes.remove(probe)
        if not event.probes:
            del self._by_name[name], self._by_id[event.described.id]


def _check_fits(definition: UprobeDefinition, event: ProbeEvent) -> None:
    """append_trace_uprobe(): several places of one event tell the same."""
    name = f"{definition.group}/{definition.event}"
    first = event.probes[0].definition
    if definition.returns != first.returns:
        raise LinuxError(EEXIST, f"{name} is there, of another kind")
    if len(first.arguments) != len(definition.arguments) or not all(
        own.is_like(theirs) for own, theirs in zip(definition.arguments, first.arguments, strict=True)
    ):
        raise LinuxError(EEXIST, f"{name} is there, with other arguments")
    if any(definition.is_same_place(probe.definition) for probe in event.probes):
        raise LinuxError(EEXIST, f"{name} is there")


def _is_that(definition: UprobeDefinition, words: Sequence[str]) -> bool:
    """trace_uprobe_match_command_head(): what a line to remove it may say besides its name."""
    if not words:
        return True
    texts = [f"{argument.name}={argument.text}" for argument in definition.arguments]
    return words[0] == definition.at and list(words[1:]) == texts[: len(words) - 1]
