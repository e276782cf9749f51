"""tracefs's files of what would trace into a buffer: there is no buffer and no tracer, and they say so."""

from __future__ import annotations

from collections.abc import Callable

from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError

Store = Callable[[bytes], None]


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


# Name, text, what is done with what is written. bpf_trace_printk's lines come out of trace_pipe, so that tracing is on.
FILES: tuple[tuple[str, str, Store], ...] = (
    ("available_tracers", "nop\n", _nothing),
    ("current_tracer", "nop\n", _current_tracer),
    ("tracing_on", "1\n", _tracing_on),
    ("set_event", "", _refuse),
    ("set_event_pid", "", _refuse),
    ("synthetic_events", "", _refuse),
    ("trace_clock", "[local]\n", _refuse),
)
