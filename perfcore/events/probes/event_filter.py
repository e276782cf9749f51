"""EventFilter: the file `filter` of an event, of what would be traced into a buffer. perf's events have their own.

As apply_event_filter(), kernel/trace/trace_events_filter.c.
"""

from __future__ import annotations

from perfcore.abi.tracepoints import TracepointEvent
from perfcore.events.probes.error_log import ErrorLog
from perfcore.events.tracepoint_filter import FilterError, parse_filter

_PLACE = "event filter parse error"


class EventFilter:
    """Nothing is traced; it is kept, and what is wrong with it said."""

    def __init__(self, event: TracepointEvent, errors: ErrorLog) -> None:
        self._event, self._errors = event, errors
        self._text = "none\n"

    def text(self) -> str:
        return self._text

    def store(self, data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape").strip(" \n\0")
        if text == "0":
            self._text = "none\n"
            return
        self._text = f"{text}\n"
        try:
            parse_filter(text, self._event)
        except FilterError as error:
            at = min(error.at, len(text))
            said = "Error: (0)" if error.told == "Error" else f"{' ' * at}^\nparse_error: {error.told}"
            self._text += f"{said}\n\n"
            self._errors.add(_PLACE, error.told, text, error.at)
            raise
