"""mem:ADDRESS[/LENGTH][:rwx]: hardware breakpoints, by perf's grammar (tools/perf/util/parse-events.l and .c)."""

from __future__ import annotations

import re

from emulator.linux.debug_registers import HW_BREAKPOINT_R, HW_BREAKPOINT_RW, HW_BREAKPOINT_W, HW_BREAKPOINT_X
from perfcore.abi.constants import PerfType
from perfemu.errors import EventSyntaxError
from perfemu.events.spec import EventSpec

PREFIX = "mem:"
_NUMBER = r"0[xX][0-9a-fA-F]+|[0-9]+"
_MEMORY = re.compile(
    rf"mem:(?P<address>{_NUMBER})(/(?P<length>{_NUMBER}))?(:(?P<accesses>[rwx]{{1,3}}))?(:(?P<modifiers>\w*))?\Z"
)
_ACCESSES = {"r": HW_BREAKPOINT_R, "w": HW_BREAKPOINT_W, "x": HW_BREAKPOINT_X}
_DATA_BYTES = 4  # where nothing is said
_CODE_BYTES = {"aarch64": 4}  # default_breakpoint_len(): elsewhere sizeof(long)
_MOST = (1 << 64) - 1


def breakpoint_event(text: str, isa: str, group: int) -> tuple[EventSpec, str]:
    """The event, and the modifiers behind it. EventSyntaxError."""
    match = _MEMORY.match(text)
    if match is None:
        raise EventSyntaxError(f"'{text}': a breakpoint is written mem:ADDRESS[/LENGTH][:rwx], of numbers, as 0x401000")
    letters = match["accesses"] or "rw"
    if len(set(letters)) < len(letters):
        raise EventSyntaxError(f"'{text}': '{letters}' says one kind of access twice")
    type = sum(_ACCESSES[letter] for letter in letters)
    if type & HW_BREAKPOINT_X and type & HW_BREAKPOINT_RW:
        raise EventSyntaxError(f"'{text}': one breakpoint is for an instruction (x) or for data (r, w, rw)")
    address = int(match["address"], 0)
    default = _CODE_BYTES.get(isa, 8) if type == HW_BREAKPOINT_X else _DATA_BYTES
    length = int(match["length"], 0) if match["length"] else default
    if max(address, length) > _MOST:
        raise EventSyntaxError(f"'{text}': an address has 64 bits")
    name = f"{PREFIX}{address:#x}:" + "".join(letter for letter in "rwx" if letter in letters)  # evsel__bp_name()
    spec = EventSpec(name, PerfType.BREAKPOINT, 0, group, config1=address, config2=length, bp_type=type)
    return spec, match["modifiers"] or ""
