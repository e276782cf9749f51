"""SortKeys: by what a report tells samples apart; one row of SORT_KEYS each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from perfemu.profile.places import Place
from perfemu.profile.tasks import Thread

_ADDRESS_WIDTH = 22  # "[.] " and 0x with 16 digits
_UNKNOWN_FILE_WIDTH = 16  # perf widens the file column so far if a row has no symbol
_COMM_WIDTH = 7


class Row(NamedTuple):
    """What a table's row was made from: the first sample of it."""

    comm: str  # at the time of the sample
    thread: Thread
    cpu: int
    place: Place
    address: int  # shown where there is no symbol


class SortKey(NamedTuple):
    """One way to tell rows apart. `identity` decides which samples share a row, `order` sorts rows of equal weight."""

    name: str
    title: str
    summary: str
    identity: Callable[[Row], Any]
    order: Callable[[Row], Any]
    text: Callable[[Row], str]
    align_right: bool = False
    padded: bool = True  # to the column's width even when it is the last column
    width: Callable[[Row], int] | None = None  # of a row; the text's length if not given


def _symbol_identity(row: Row) -> tuple[str, int, int]:
    """Symbols of one file by where they are, for names repeat; other addresses by themselves."""
    symbol = row.place.symbol
    if symbol is None:
        return ("", row.address, 0) if not row.place.path else (row.place.file_name, row.address, 0)
    return row.place.file_name, symbol.start, symbol.end


def _symbol_order(row: Row) -> tuple[bool, str]:
    symbol = row.place.symbol
    return symbol is None, symbol.shown if symbol else ""


def _symbol_text(row: Row) -> str:
    place = row.place
    if place.symbol:
        return f"[{place.level}] {place.symbol.shown}"
    return f"[{place.level}] 0x{row.address:016x}" if row.address else f"[{place.level}] {0:016x}"  # printf's %#


def _symbol_width(row: Row) -> int:
    return len(row.place.symbol.shown) + 4 if row.place.symbol else _ADDRESS_WIDTH


def _file_width(row: Row) -> int:
    return len(row.place.file_name) if row.place.symbol else max(len(row.place.file_name), _UNKNOWN_FILE_WIDTH)


def _task_text(number: int, comm: str) -> str:
    return f"{number:7}:{comm}"


def _cpu_text(cpu: int) -> str:
    """Three digits, a sign before them."""
    return f"{'-' if cpu < 0 else ''}{abs(cpu):03}"


SORT_KEYS = {
    key.name: key
    for key in (
        SortKey("comm", "Command", "command name of the task", lambda r: r.comm, lambda r: r.comm, lambda r: r.comm),
        SortKey(
            "pid",
            "    Pid:Command",
            "thread id and command name of the task, as in perf",
            lambda r: r.thread.tid,
            lambda r: r.thread.tid,
            lambda r: _task_text(r.thread.tid, r.thread.comm),
        ),
        SortKey(
            "tid",
            "    Tid:Command",
            "thread id and command name of the task",
            lambda r: r.thread.tid,
            lambda r: r.thread.tid,
            lambda r: _task_text(r.thread.tid, r.thread.comm),
        ),
        SortKey(
            "tgid",
            "   Tgid:Command",
            "process id of the task",
            lambda r: r.thread.pid,
            lambda r: r.thread.pid,
            lambda r: _task_text(r.thread.pid, r.thread.comm),
        ),
        SortKey(
            "cpu", "CPU", "CPU the task ran on", lambda r: r.cpu, lambda r: r.cpu, lambda r: _cpu_text(r.cpu), True
        ),
        SortKey(
            "dso",
            "Shared Object",
            "program or library",
            lambda r: r.place.file_name,
            lambda r: r.place.file_name,
            lambda r: r.place.file_name,
            width=_file_width,
        ),
        SortKey(
            "symbol",
            "Symbol",
            "function, or address where it is not known",
            _symbol_identity,
            _symbol_order,
            _symbol_text,
            padded=False,
            width=_symbol_width,
        ),
        SortKey(
            "srcline",
            "Source:Line",
            "source file and line",
            lambda r: r.place.source_line(),
            lambda r: r.place.source_line(),
            lambda r: r.place.source_line(),
            padded=False,
        ),
    )
}
ALIASES = {"sym": "symbol"}
DEFAULT_KEYS = ("comm", "dso", "symbol")


class UnknownKey(ValueError):
    """A --sort or --fields word that means nothing here."""


def sort_key(name: str) -> SortKey:
    key = SORT_KEYS.get(ALIASES.get(name, name))
    if key is None:
        raise UnknownKey(f"unknown sort key '{name}'; known are {', '.join(SORT_KEYS)}")
    return key
