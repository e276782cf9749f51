"""Probes in the guest's tracefs: where they are defined and listed, and the files of their events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.abi.tracepoints import TracepointEvent
from perfcore.events.probes.dynamic_events import ANY, AnyDefinition, DynamicEvents, Kind, words_of
from perfcore.events.probes.error_log import ErrorLog, TracingError
from perfcore.events.probes.event_filter import EventFilter
from perfcore.events.probes.kprobe_definition import KprobeDefinition, parse_kprobe
from perfcore.events.probes.kprobes import TraceKprobe
from perfcore.events.probes.probed_file import find_probed_file
from perfcore.events.probes.trace_uprobe import TraceUprobe
from perfcore.events.probes.tracing_files import FILES, enable
from perfcore.events.probes.uprobe_definition import UprobeDefinition, parse_definition
from perfcore.events.probes.uprobes import ProbedLinux

_MOST_LINE = 4095  # WRITE_BUFSIZE - 1: bytes of a definition


class FileTree(Protocol):
    def register_text(
        self,
        path: str,
        text: str | Callable[[], str | bytes],
        store: Callable[[bytes], None] | None = None,
        clear: Callable[[], None] | None = None,
    ) -> None: ...

    def unregister(self, path: str) -> None: ...


class TracingKernel(ProbedLinux, Protocol):
    """A kernel with files."""

    @property
    def file_tree(self) -> FileTree: ...

    def calling(self) -> Task:
        """The task that makes a system call."""


# What programs look for, to know which kinds of arguments they may ask for: perf's probe-file.c
README = """The modelled kernel's tracefs: events for perf_event_open(2). Nothing is traced into a buffer of its own.

  kprobe_events - Create/append/remove/show the kernel dynamic events
  uprobe_events - Create/append/remove/show the user-space dynamic events
    place: <symbol>, of available_filter_functions
    place (kretprobe): <symbol>%return
    place (uprobe): <path>:<offset>[%return][(ref_ctr_offset)]
    fetcharg: %<register>, @<address>, @+<offset>, $stack<index>, $stack, $retval, $comm, $arg<N>,
              +|-[u]<offset>(<fetcharg>), \\imm-value, \\"imm-string"
    type: s8/16/32/64, u8/16/32/64, x8/16/32/64, char, string, ustring,
          b<bit-width>@<bit-offset>/<container-size>, <type>\\[<array-size>\\]
"""


Parse = Callable[[Sequence[str]], AnyDefinition]
"""Of a definition's words. Raises LinuxError."""


def _is_in_a_file(words: Sequence[str]) -> bool:
    return len(words) > 1 and "/" in words[1]


class ProbeFiles:
    """The files, which come and go with the events."""

    def __init__(
        self, tree: FileTree, tracing: str, calling: Callable[[], Task], events: DynamicEvents, errors: ErrorLog
    ) -> None:
        """`tracing`: where tracefs is. `calling`: the task that makes a system call. `errors`: what is refused."""
        self._tree, self._tracing, self._calling = tree, tracing, calling
        self._events = events
        self._errors = errors
        self._shown: dict[str, None] = {}  # directories
        self._kinds: dict[str, tuple[Parse, Kind]] = {  # of a file where they are defined
            "uprobe_events": (self._uprobe, (TraceUprobe,)),
            "kprobe_events": (self._kprobe, (TraceKprobe,)),
            "dynamic_events": (lambda words: (self._uprobe if _is_in_a_file(words) else self._kprobe)(words), ANY),
        }
        self._texts: dict[str, Callable[[], str]] = {
            **{name: partial(self._lines, kind) for name, (_, kind) in self._kinds.items()},
            "uprobe_profile": partial(self._profile, (TraceUprobe,)),
            "kprobe_profile": partial(self._profile, (TraceKprobe,)),
            "error_log": errors.text,
            "README": lambda: README,
            "available_events": self._available,
            "available_filter_functions": events.functions.names,
            "kallsyms": events.functions.kallsyms,
            **{name: partial(str, text) for name, (text, _) in FILES.items()},
        }

    def text(self, name: str) -> str:
        return self._texts[name]()

    def _available(self) -> str:
        named = [event.full_name for event in tracepoints_of(self._events.architecture.isa).values()]
        named += [f"{group}:{name}" for group, events in self._events.groups().items() for name in events]
        return _text(named)

    def _lines(self, kind: Kind) -> str:
        return _text(self._events.lines(kind))

    def _profile(self, kind: Kind) -> str:
        return _text(self._events.profile(kind))

    def clear(self, name: str) -> None:
        if name == "error_log":
            self._errors.clear()
        if name not in self._kinds:
            return
        self._events.remove_all(self._kinds[name][1])
        self._update()

    def _uprobe(self, words: Sequence[str]) -> UprobeDefinition:
        task = self._calling()
        return parse_definition(words, lambda path: find_probed_file(task, path), self._events.architecture)

    def _kprobe(self, words: Sequence[str]) -> KprobeDefinition:
        events = self._events
        return parse_kprobe(words, events.functions, events.architecture, events.cpus)

    def store(self, name: str, data: bytes) -> None:
        """trace_parse_run_command(): up to the first line that cannot be. What is written to error_log is nothing."""
        if name == "error_log":
            return
        if name in FILES:
            FILES[name][1](data)
            return
        parse, kind = self._kinds[name]
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        try:
            for line in lines:
                if len(line) > _MOST_LINE:
                    raise LinuxError(EINVAL, f"a definition of {len(line)} bytes: at most {_MOST_LINE}")
                self._command(line, parse, kind)
        finally:
            self._update()

    def _command(self, line: str, parse: Parse, kind: Kind) -> None:
        try:
            self._events.command(line, parse, kind)
        except TracingError as error:
            words = words_of(line)
            place = "trace_uprobe" if parse == self._uprobe or _is_in_a_file(words) else "trace_kprobe"
            self._errors.add(place, error.told, " ".join(words), error.position(words))
            raise

    def _update(self) -> None:
        """Show the events that there are."""
        there: dict[str, TracepointEvent] = {}
        for group, events in self._events.groups().items():
            for name, event in events.items():
                there[f"{self._tracing}/events/{group}/{name}"] = event.described
        for directory in [directory for directory in self._shown if directory not in there]:
            del self._shown[directory]
            self._tree.unregister(directory)
        for directory, described in there.items():
            if directory not in self._shown:
                self._shown[directory] = None
                self._show(directory, described)

    def _show(self, directory: str, event: TracepointEvent) -> None:
        register = self._tree.register_text
        register(f"{directory}/id", f"{event.id}\n")
        register(f"{directory}/format", event.text)
        register(f"{directory}/enable", "0\n", enable)
        filter = EventFilter(event, self._errors)
        register(f"{directory}/filter", filter.text, filter.store)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
