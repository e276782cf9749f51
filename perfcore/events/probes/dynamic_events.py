"""DynamicEvents: the probes that have been defined, and their events. As trace_dynevent.c."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from emulator.linux.errors import EBUSY, EEXIST, EINVAL, ENODEV, ENOENT, LinuxError
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.events.probes.error_log import TracingError
from perfcore.events.probes.fetch_args import Argument
from perfcore.events.probes.kernel_functions import KernelFunctions
from perfcore.events.probes.kprobe_definition import KprobeDefinition
from perfcore.events.probes.kprobes import Kprobes, TraceKprobe
from perfcore.events.probes.probe_event import Definition, ProbeEvent, described
from perfcore.events.probes.trace_uprobe import TraceUprobe
from perfcore.events.probes.uprobe_definition import UprobeDefinition
from perfcore.events.probes.uprobes import MOST_NESTED, ProbedLinux, Uprobes

AnyDefinition = UprobeDefinition | KprobeDefinition
Probe = TraceUprobe | TraceKprobe
Kind = tuple[type[Probe], ...]
ANY: Kind = (TraceUprobe, TraceKprobe)
FIRST_ID = 2000  # behind those of system calls
_MOST = 4096  # events and probes: more than anybody defines


def words_of(line: str) -> list[str]:
    """Without what is behind a #."""
    return line.partition("#")[0].split()


class DynamicEvents:
    """Of one subsystem."""

    def __init__(self, kernel: ProbedLinux, *, measures: bool = False) -> None:
        """`measures`: not for a guest. Returns are followed without a limit then."""
        self.architecture = kernel.architecture
        self.cpus = len(kernel.cpus)
        self.uprobes = Uprobes(kernel, None if measures else MOST_NESTED)
        self.kprobes = Kprobes(kernel)
        self.functions = KernelFunctions(kernel.architecture.isa)
        self._probes: list[Probe] = []  # in the order of their definition
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

    # ---- the definitions

    def lines(self, kind: Kind = ANY) -> Iterator[str]:
        return (probe.definition.line for probe in self._probes if isinstance(probe, kind))

    def profile(self, kind: Kind) -> Iterator[str]:
        """Of each how often it was hit."""
        for probe in self._probes:
            if isinstance(probe, kind):
                definition = probe.definition
                place = f"  {definition.path} " if isinstance(definition, UprobeDefinition) else "  "
                missed = "" if isinstance(definition, UprobeDefinition) else f"{0:16}"
                yield f"{place}{definition.event:<44} {probe.hits:15}{missed}"

    def command(self, text: str, parse: Callable[[Sequence[str]], AnyDefinition], kind: Kind = ANY) -> None:
        """A line of uprobe_events, or of kprobe_events. Raises LinuxError."""
        words = words_of(text)
        if not words:
            return
        if words[0].startswith("-"):
            self._remove(words, kind)
        else:
            self.define(parse(words))

    def define(self, definition: AnyDefinition) -> ProbeEvent:
        """register_trace_uprobe(), register_trace_kprobe()"""
        if isinstance(definition, UprobeDefinition):
            self._check_semaphore(definition)
        if len(self._probes) >= _MOST:
            raise LinuxError(ENODEV, f"there are {_MOST} probes, and no more can be")
        event = self._by_name.get((definition.group, definition.event))
        if event is None:
            event = self._new_event(definition)
        else:
            _check_fits(definition, event)
        probe = self._probe(definition, event)
        event.probes.append(probe)
        self._probes.append(probe)
        return event

    def _probe(self, definition: AnyDefinition, event: ProbeEvent) -> Probe:
        if isinstance(definition, UprobeDefinition):
            return TraceUprobe(definition, event, self.uprobes)
        return TraceKprobe(definition, event, self.kprobes)

    def local_event(self, definition: AnyDefinition) -> ProbeEvent:
        """Of a PMU's event: without a name, and in no list."""
        in_kernel = isinstance(definition, KprobeDefinition)
        event = ProbeEvent(described(0, definition.group, definition.event, definition.returns, ()), in_kernel)
        event.probes.append(self._probe(definition, event))
        return event

    def _check_semaphore(self, definition: UprobeDefinition) -> None:
        """validate_ref_ctr_offset()"""
        for probe in self._probes:
            other = probe.definition
            if not isinstance(other, UprobeDefinition):
                continue
            if other.place == definition.place and other.semaphore != definition.semaphore:
                raise LinuxError(EINVAL, f"{definition.at}: there is a probe with another semaphore")

    def _new_event(self, definition: AnyDefinition) -> ProbeEvent:
        group, name = definition.group, definition.event
        if f"{group}:{name}" in tracepoints_of(self.architecture.isa):
            told = "Given group/event name is already used by another event"
            raise TracingError(EEXIST, told, 0, 0, f"{group}/{name} is another event's name")
        id = next(number for number in range(FIRST_ID, FIRST_ID + _MOST) if number not in self._by_id)
        in_kernel = isinstance(definition, KprobeDefinition)
        event = ProbeEvent(described(id, group, name, definition.returns, definition.arguments), in_kernel)
        self._by_name[group, name] = self._by_id[id] = event
        return event

    def _remove(self, words: Sequence[str], kind: Kind) -> None:
        """dyn_event_release(): ``-:[GROUP/]EVENT``, or ``-:GROUP/`` for all of it."""
        group, slash, event = words[0][2:].rpartition("/")
        if words[0][1:2] != ":" or (not slash and not event):
            raise LinuxError(EINVAL, f"{words[0]}: a probe is removed by -:GROUP/EVENT")
        found = [
            probe
            for probe in self._probes
            if isinstance(probe, kind)
            if event in ("", probe.definition.event) and (not slash or group == probe.definition.group)
            if _is_that(probe.definition, words[1:])
        ]
        if not found:
            raise LinuxError(ENOENT, f"{words[0]}: there is no such probe")
        for probe in found:
            self._free(probe)

    def remove_all(self, kind: Kind = ANY) -> None:
        """dyn_events_release_all(): all of a kind, or if one is in use, none."""
        going = [probe for probe in self._probes if isinstance(probe, kind)]
        if any(self._by_name[probe.definition.group, probe.definition.event].is_busy for probe in going):
            raise LinuxError(EBUSY, "an event is open")
        for probe in going:
            self._free(probe)

    def _free(self, probe: Probe) -> None:
        """unregister_trace_uprobe(): of an event's last one the event goes, too."""
        name = probe.definition.group, probe.definition.event
        event = self._by_name[name]
        if event.is_busy:
            raise LinuxError(EBUSY, f"{'/'.join(name)} is open")
        event.probes.remove(probe)
        self._probes.remove(probe)
        if not event.probes:
            del self._by_name[name], self._by_id[event.described.id]


def _check_fits(definition: AnyDefinition, event: ProbeEvent) -> None:
    """append_trace_uprobe(): several places of one event tell the same."""
    name = f"{definition.group}/{definition.event}"
    first = event.probes[0].definition
    if definition.returns != first.returns or type(definition) is not type(first):
        told = "Probe type is different from existing probe"
        raise TracingError(EEXIST, told, 0, 0, f"{name} is there, of another kind")
    differs = _first_difference(definition.arguments, first.arguments)
    if differs is not None:
        told = "Argument type or name is different from existing probe"
        raise TracingError(EEXIST, told, differs + 2, 0, f"{name} is there, with other arguments")
    if any(_is_same_place(definition, probe.definition) for probe in event.probes):
        raise TracingError(EEXIST, "There is already the exact same probe event", 0, 0, f"{name} is there")


def _first_difference(own: Sequence[Argument], theirs: Sequence[Argument]) -> int | None:
    """trace_probe_compare_arg_type(): the argument that is not like the other's."""
    if len(own) != len(theirs):
        return min(len(own), len(theirs))
    pairs = zip(own, theirs, strict=True)
    return next((number for number, (one, other) in enumerate(pairs) if not one.is_like(other)), None)


def _is_same_place(one: AnyDefinition, other: Definition) -> bool:
    """trace_uprobe_has_same_uprobe()"""
    texts, others = ([argument.text for argument in each.arguments] for each in (one, other))
    return one.place == other.place and texts == others


def _is_that(definition: AnyDefinition, words: Sequence[str]) -> bool:
    """trace_uprobe_match_command_head(): what a line to remove it may say besides its name."""
    if not words:
        return True
    texts = [f"{argument.name}={argument.text}" for argument in definition.arguments]
    return words[0] == definition.at and list(words[1:]) == texts[: len(words) - 1]
