"""user_probes: ``-e uprobe:PATH:FUNCTION ARGUMENTS``: events at instructions of programs and libraries.

    uprobe:./prog:work              each entry of a function; without PATH, of the program's own
    uprobe:./prog:work+0x10         an instruction of it; uprobe:./prog:0x1159 one of the file, by its offset
    uretprobe:./prog:work           each return
    uprobe:work n=%di:s32 name=+0(%si):string      what samples tell besides, in the kernel's fetch-arg grammar

The events are called as perf probe would call them: probe_prog:work, probe_prog:work__return.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from emulator.linux.arch import architecture
from emulator.linux.errors import LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.constants import PerfType
from perfcore.events.probes.dynamic_events import FIRST_ID, DynamicEvents
from perfcore.events.probes.fetch_args import Argument, parse_arguments
from perfcore.events.probes.fetch_values import Where
from perfcore.events.probes.probe_event import described
from perfcore.events.probes.probed_file import find_probed_file
from perfcore.events.probes.uprobe_definition import UprobeDefinition
from perfemu.errors import EventSyntaxError
from perfemu.events.spec import EventSpec
from perfemu.locate import Located
from perfemu.namespace import Namespace
from perfemu.symbols.demangle import demangle
from perfemu.symbols.elf import ElfFile, ElfProblem
from perfemu.symbols.finder import SymbolFinder
from perfemu.symbols.named import functions_named
from perfemu.symbols.table import Symbol

_PROBE = re.compile(r"(?P<kind>uprobe|uretprobe):((?P<path>[^:\s]+):(?!:))?(?P<place>\S+)(?P<arguments>(\s+\S+)*)\s*\Z")
_PLACE = re.compile(r"(?P<function>.*?)(\+(?P<offset>0[xX][0-9a-fA-F]+|[0-9]+))?\Z")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
_MOST_LETTERS = 63
_NEAR = 3  # names


@dataclass(frozen=True, slots=True)
class _Probe:
    """What a text says."""

    spec: EventSpec
    group: str
    event: str
    returns: bool
    path: str  # as the program could open it
    offsets: tuple[int, ...]
    arguments: tuple[Argument, ...]


class UserProbes:
    """Those of one run."""

    def __init__(self, isa: str, space: Namespace, program: Located, directory: str) -> None:
        """`directory`: the guest's current one."""
        self._architecture = architecture(isa)
        self._space, self._program, self._directory = space, program, directory
        self._probes: dict[str, _Probe] = {}  # by text
        self._defined = 0

    def spec(self, text: str, group: int) -> EventSpec:
        """Raises EventSyntaxError."""
        probe = self._probes.get(text)
        if probe is None:
            probe = self._probes[text] = self._understand(text, group)
        return probe.spec

    def define(self, events: DynamicEvents, task: Task) -> None:
        """Those that are new, on the machine, whose `task` finds the files. Raises LinuxError."""
        new = list(self._probes.values())[self._defined :]
        self._defined += len(new)
        for probe in new:
            file = find_probed_file(task, probe.path)
            for offset in probe.offsets:
                names = probe.group, probe.event
                definition = UprobeDefinition(*names, probe.returns, probe.path, file, offset, 0, probe.arguments)
                defined = events.define(definition)
                assert defined.described.id == probe.spec.config, f"{probe.event} is not the event that was parsed"

    def _understand(self, text: str, group: int) -> _Probe:
        match = _PROBE.match(text)
        if match is None:
            raise EventSyntaxError(f"'{text}': a probe is written uprobe:PATH:FUNCTION[+OFFSET] [ARGUMENTS]")
        returns = match["kind"] == "uretprobe"
        path = match["path"] or self._program.guest_path
        name, offsets = self._offsets(path, match["place"], returns, text)
        try:
            arguments = parse_arguments(match["arguments"].split(), Where(self._architecture, returns))
        except LinuxError as problem:
            raise EventSyntaxError(f"'{text}': {problem.why}") from None
        base = re.split(r"[-._]", path.rpartition("/")[2])[0]
        names = _identifier(f"probe_{base}"), self._free_name(_identifier(name) + ("__return" if returns else ""))
        event = described(FIRST_ID + len(self._probes), *names, returns, arguments)
        spec = EventSpec(event.full_name, PerfType.TRACEPOINT, event.id, group, tracepoint=event)
        return _Probe(spec, *names, returns, path, offsets, arguments)

    def _free_name(self, name: str) -> str:
        """As perf has it where one place is probed twice."""
        taken = {probe.event for probe in self._probes.values()}
        numbered = (f"{name}_{number}" for number in range(1, len(taken) + 2))
        return name if name not in taken else next(other for other in numbered if other not in taken)

    # ---- where

    def _offsets(self, path: str, place: str, returns: bool, text: str) -> tuple[str, tuple[int, ...]]:
        """The name of a place, and its offsets in the file."""
        if _NUMBER.fullmatch(place):
            return f"abs_{place}", (int(place, 0),)
        match = _PLACE.match(place)
        assert match is not None, "anything is a function's name"
        name, offset = match["function"], int(match["offset"] or "0", 0)
        if returns and offset:
            raise EventSyntaxError(f"'{text}': a return is of a whole function, not of +{match['offset']}")
        functions = self._functions(path, text)
        found = list(functions_named(name, functions))
        if not found:
            raise EventSyntaxError(f"'{text}': {path} has no function {name}{_near(name, functions)}")
        if any(symbol.is_indirect for symbol in found):
            raise EventSyntaxError(f"'{text}': {name} is an IFUNC: name one of the functions that it chooses from")
        apart, size = self._architecture.instruction_alignment, min(symbol.end - symbol.start for symbol in found)
        if offset % apart:
            raise EventSyntaxError(f"'{text}': instructions are {apart} bytes apart: +{match['offset']} is none")
        if offset >= max(size, 1):
            raise EventSyntaxError(f"'{text}': {name} has {size} bytes")
        return name, tuple(dict.fromkeys(symbol.start + offset for symbol in found))

    def _functions(self, path: str, text: str) -> list[Symbol]:
        whole = path if path.startswith("/") else f"{self._directory.rstrip('/')}/{path}"
        own = path == self._program.guest_path
        host = self._program.host_path if own else self._space.on_host(whole) or whole
        try:
            with ElfFile(host) as elf:
                return SymbolFinder(self._space.sysroot or "", lambda complaint: None).functions(whole, elf)
        except (OSError, ElfProblem) as problem:
            why = problem.strerror if isinstance(problem, OSError) else problem
            raise EventSyntaxError(f"'{text}': {path}: {why}") from None


def _identifier(name: str) -> str:
    """A name of the kernel's events."""
    word = re.sub(r"\W", "_", name.partition("(")[0], flags=re.ASCII)
    return (word if not word[:1].isdecimal() else f"_{word}")[:_MOST_LETTERS]


def _near(name: str, functions: Iterable[Symbol]) -> str:
    names = {demangle(symbol.name) for symbol in functions}
    if not names:
        return ": it has no symbols"
    near = difflib.get_close_matches(name, names, _NEAR)
    return f"; near: {', '.join(near)}" if near else ""
