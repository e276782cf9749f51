"""tracefs's files of what would trace into a buffer: there is no buffer and no tracer, and they say so. Those of each
tracepoint are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from emulator.linux.fs.virtual_files import Row
from perfcore.abi.kernel_tracepoints import PRINT
from perfcore.abi.syscall_tracepoints import tracepoints_of
from perfcore.abi.tracepoints import HEADER_EVENT, HEADER_PAGE, TracepointEvent
from perfcore.events.probes.error_log import ErrorLog
from perfcore.events.probes.event_filter import EventFilter

Store = Callable[[bytes], None]


def trace_event_files(isa: str, errors: ErrorLog) -> Iterator[Row]:
    """(path, text) of every file below events/, and what is done with what is written there. Nothing is traced
    into a buffer, and so nothing is enabled. `errors`: of filters."""
    yield "header_page", HEADER_PAGE
    yield "header_event", HEADER_EVENT
    systems = dict.fromkeys(event.system for event in tracepoints_of(isa).values())
    for directory in ("", *(f"{system}/" for system in systems)):
        yield f"{directory}enable", "0\n", enable
    for event in (PRINT, *tracepoints_of(isa).values()):
        directory = f"{event.system}/{event.name}"
        yield f"{directory}/id", f"{event.id}\n"
        yield f"{directory}/format", partial(_format, event)
        if event is not PRINT:
            filter = EventFilter(event, errors)
            yield f"{directory}/enable", "0\n", enable
            yield f"{directory}/filter", filter.text, filter.store


def _format(event: TracepointEvent) -> str:
    return event.text


def _no_buffer() -> LinuxError:
    return LinuxError(EOPNOTSUPP, "there is no buffer to trace into: open the event by perf_event_open")


def enable(data: bytes) -> None:
    """Of `enable`: 0 changes nothing."""
    text = data.strip(b" \n\0")
    if text == b"1":
        raise _no_buffer()
    if text != b"0":
        raise LinuxError(EINVAL, f"{text!r}: 0 or 1")


def _current_tracer(data: bytes) -> None:
    if data.strip(b" \n\0") != b"nop":
        raise LinuxError(EINVAL, "there is one tracer, nop")


def _tracing_on(data: bytes) -> None:
    if data.strip(b" \n\0") != b"1":
        raise _no_buffer()


def _refuse(data: bytes) -> None:
    if data.strip(b" \n\0"):
        raise _no_buffer()


def _nothing(data: bytes) -> None:
    raise LinuxError(EINVAL, "the file is read only")


# The text of each, and what is done with what is written. bpf_trace_printk's lines come out of trace_pipe, so that
# tracing is on.
FILES: Mapping[str, tuple[str, Store]] = {
    "available_tracers": ("nop\n", _nothing),
    "current_tracer": ("nop\n", _current_tracer),
    "tracing_on": ("1\n", _tracing_on),
    "set_event": ("", _refuse),
    "set_event_pid": ("", _refuse),
    "synthetic_events": ("", _refuse),
    "trace_clock": ("[local]\n", _refuse),
}
