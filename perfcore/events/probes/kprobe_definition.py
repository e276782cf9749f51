"""A line of kprobe_events, and what it says. As __trace_kprobe_create() in trace_kprobe.c.

``p[:[GROUP/][EVENT]] FUNCTION[+0][%return] [ARGUMENTS]``, or ``r[MOST_ACTIVE]`` for its return. Where it is can be told
by an address, or from _text on, as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.linux.arch.architecture import Architecture
from emulator.linux.errors import EINVAL, ENOENT, LinuxError
from perfcore.events.kstrtox import unsigned
from perfcore.events.probes.error_log import TracingError
from perfcore.events.probes.fetch_args import Argument, parse_arguments
from perfcore.events.probes.fetch_values import Where
from perfcore.events.probes.kernel_functions import KernelFunction, KernelFunctions
from perfcore.events.probes.uprobe_definition import parse_name

GROUP = "kprobes"  # where nothing is said
_HEAD = re.compile(r"(?P<kind>[pr])(?P<active>[0-9]*)(:(?P<name>.*))?\Z")
_PLACE = re.compile(r"(?P<symbol>[^+%]+)(\+(?P<offset>[^%]*))?(?P<suffix>%.*)?\Z")
_NO_PLACE = "Invalid probed address or symbol"
_MOST_ACTIVE = 4096  # KRETPROBE_MAXACTIVE_MAX
_NOT_A_NAME = re.compile(r"[^\w]", re.ASCII)


@dataclass(frozen=True)
class KprobeDefinition:
    """One function, and what is told of it."""

    group: str
    event: str
    returns: bool
    function: KernelFunction
    address: int
    at: str  # as it was written
    most_active: int  # of returns
    arguments: tuple[Argument, ...]

    @property
    def place(self) -> str:
        return self.function.name

    @property
    def line(self) -> str:
        arguments = "".join(f" {argument.name}={argument.text}" for argument in self.arguments)
        return f"{f'r{self.most_active}' if self.returns else 'p'}:{self.group}/{self.event} {self.at}{arguments}"


def parse_kprobe(
    words: Sequence[str], functions: KernelFunctions, architecture: Architecture, cpus: int
) -> KprobeDefinition:
    """Raises LinuxError."""
    head, place = _HEAD.match(words[0]), _PLACE.match(words[1]) if len(words) > 1 else None
    if head is None or place is None or "/" in words[1]:
        raise LinuxError(EINVAL, f"{' '.join(words)!r}: a kprobe is written p[:GROUP/EVENT] FUNCTION [ARGUMENTS]")
    active = _most_active(head["kind"], head["active"], cpus)
    symbol, offset_text, suffix = place["symbol"], place["offset"] or "0", place["suffix"]
    if suffix not in (None, "%return"):
        why = f"{words[1]}: {suffix} is not %return"
        raise TracingError(EINVAL, "Invalid probed address suffix", 1, place.start("suffix"), why)
    returns = head["kind"] == "r" or suffix is not None
    try:
        function = find_function(functions, symbol, offset_text, returns)
        check_returns(function, returns)
    except LinuxError as error:
        told = error.told if isinstance(error, TracingError) else "Failed to register probe event"
        raise TracingError(error.code, told, 1, 0, error.why) from None
    group, event = (GROUP, "")
    if head["name"] is not None:
        group, event = parse_name(head["name"], GROUP, head.start("name"))
    offset = unsigned(place["offset"] or "0")
    at = place["symbol"] + (f"+{offset}" if offset else "")
    event = event or _NOT_A_NAME.sub("_", f"{'r' if returns else 'p'}_{place['symbol']}_{place['offset'] or 0}")[:63]
    address = functions.addresses[function.name]
    arguments = parse_arguments(words[2:], Where(architecture, returns, function, address))
    return KprobeDefinition(group, event, returns, function, address, at, active, arguments)


def _most_active(kind: str, text: str, cpus: int) -> int:
    """Of returns: what stands behind r, or Linux's own."""
    if not text:
        return max(10, 2 * cpus)
    active = unsigned(text)
    told = "Maxactive is only for function exit" if kind == "p" else "" if active else "Invalid maxactive number"
    if not told and active and active > _MOST_ACTIVE:
        told = "Maxactive is too big"
    if told or not active:
        raise TracingError(EINVAL, told, 0, 1, f"{kind}{text}: r may have a number of 1 to {_MOST_ACTIVE}, p none")
    return active


def find_function(functions: KernelFunctions, symbol: str, offset_text: str, returns: bool = False) -> KernelFunction:
    """By its name, or where its address is from another's; or by the address alone."""
    offset, address = unsigned(offset_text), unsigned(symbol)
    if offset is None:
        raise TracingError(EINVAL, _NO_PLACE, 1, 0, f"{symbol}+{offset_text}: {offset_text} is no offset")
    if address is None:
        address = functions.addresses.get(symbol)
        if address is None:
            why = f"the modelled kernel has no function {symbol}: see available_filter_functions"
            raise TracingError(EINVAL, _NO_PLACE, 1, 0, why)
    found = functions.find(address + offset)
    if found is None:
        raise LinuxError(
            ENOENT if address else EINVAL, f"{symbol}+{offset_text} is in no function of the modelled kernel"
        )
    function, inside = found
    if inside and returns:
        told = "Retprobe address must be an function entry"
        raise TracingError(EINVAL, told, 1, 0, f"{function.name}+{inside}: a return is one of a function's beginning")
    if inside:
        raise LinuxError(EINVAL, f"{function.name}+{inside}: of a function there is no more than its first instruction")
    return function


def check_returns(function: KernelFunction, returns: bool) -> None:
    if returns and not function.returns:
        raise LinuxError(EINVAL, f"{function.name}: when it returns the modelled kernel does not know")
