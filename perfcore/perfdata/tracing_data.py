"""tracing_data: the TRACING_DATA blob: tracepoints described as tracefs does, so that readers can print raw data.

As perf writes it (tools/perf/util/trace-event-info.c) and libtraceevent reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from perfcore.abi.tracepoints import HEADER_EVENT, HEADER_PAGE, TracepointEvent

_MAGIC = b"\x17\x08\x44tracing"
_VERSION = b"0.6\0"
_MACHINE = struct.pack("<BBI", 0, 8, 4096)  # little-endian; bytes of a long, of a page
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


def _sized(text: str) -> bytes:
    data = text.encode()
    return _U64.pack(len(data)) + data


def tracing_data(events: Iterable[TracepointEvent]) -> bytes:
    """The blob that describes `events`. There are no symbols, printk formats and names of tasks."""
    systems: dict[str, list[TracepointEvent]] = {}
    for event in events:
        systems.setdefault(event.system, []).append(event)
    blob = _MAGIC + _VERSION + _MACHINE
    blob += b"header_page\0" + _sized(HEADER_PAGE) + b"header_event\0" + _sized(HEADER_EVENT)
    blob += _U32.pack(0) + _U32.pack(len(systems))  # no formats of ftrace's own
    for system, members in systems.items():
        blob += system.encode() + b"\0" + _U32.pack(len(members)) + b"".join(_sized(event.text) for event in members)
    return blob + _U32.pack(0) + _U32.pack(0) + _U64.pack(0)
