"""Benchmark: a program whose counts are guarded; benchmarks are read from a TOML file."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfemu.checking.tolerance import Tolerance
from perfemu.errors import UsageError
from perfemu.guest import Guest
from perfemu.guest_options import OPTIONS
from perfemu.regions import within
from perfemu.scope import PROGRAM, Scope

DEFAULT_EVENTS = ("instructions",)
DEFAULT_TOLERANCE = "0.1%"
_GUEST_KEYS = (*OPTIONS, "environment", "cwd")
_PATHS = ("sysroot", "cwd")  # relative to the file, as are programs
_OWN_KEYS = ("command", "events", "tolerance", "exit_status", "input", "from_symbol", "to_symbol")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One table of the file."""

    name: str
    events: tuple[str, ...]
    tolerances: Mapping[str, Tolerance]  # by event's name without modifiers; "" is for the others
    guest: Guest
    exit_status: int = 0
    input: str | None = None  # a file
    from_symbol: str | None = None  # of the region that is counted, if not all of it is
    to_symbol: str | None = None

    def tolerance(self, event: str) -> Tolerance:
        return self.tolerances.get(event, self.tolerances[""])

    def scope(self) -> Scope:
        return within(PROGRAM, self.from_symbol, self.to_symbol)


def read_benchmarks(path: str) -> list[Benchmark]:
    """UsageError says what is wrong, and where."""
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as problem:  # TOML's, and of text that is no UTF-8
        raise UsageError(f"{path}: {problem}") from None
    unknown = sorted(document.keys() - {"defaults", "benchmark"})
    if unknown:
        raise UsageError(f"{path}: {unknown[0]}: there are [defaults] and [benchmark.NAME]")
    defaults, tables = document.get("defaults", {}), document.get("benchmark", {})
    if not isinstance(defaults, dict) or not isinstance(tables, dict) or not tables:
        raise UsageError(f"{path}: no [benchmark.NAME]")
    directory = os.path.dirname(os.path.abspath(path))
    return [
        _benchmark(f"{path}: [benchmark.{name}]", name, defaults, table, directory) for name, table in tables.items()
    ]


def _benchmark(where: str, name: str, defaults: dict[str, Any], table: Any, directory: str) -> Benchmark:
    if not isinstance(table, dict):
        raise UsageError(f"{where}: is no table")
    merged = {**defaults, **table}
    known = {*_GUEST_KEYS, *_OWN_KEYS}
    for key in merged:
        if key not in known:
            raise UsageError(f"{where}: {key}: there is no such key, but {', '.join(sorted(known))}")
    guest = {key: value for key, value in merged.items() if key not in _OWN_KEYS}
    for key in _PATHS:
        if isinstance(guest.get(key), str):
            guest[key] = os.path.join(directory, guest[key])
    guest.setdefault("cwd", directory)
    try:
        made = Benchmark(
            name=name,
            events=_events(merged.get("events", DEFAULT_EVENTS)),
            tolerances=_tolerances(merged.get("tolerance", DEFAULT_TOLERANCE)),
            guest=Guest(_argv(merged.get("command")), **guest),
            exit_status=_status(merged.get("exit_status", 0)),
            input=os.path.join(directory, merged["input"]) if "input" in merged else None,
            from_symbol=_symbol("from_symbol", merged),
            to_symbol=_symbol("to_symbol", merged),
        )
        made.guest.space()
        made.scope()
    except (TypeError, ValueError, UsageError) as problem:
        raise UsageError(f"{where}: {problem}") from None
    return made


def _argv(command: Any) -> tuple[str, ...]:
    words = shlex.split(command) if isinstance(command, str) else command
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError("command: wants a program and its arguments, as a string or an array of strings")
    return tuple(words)


def _events(events: Any) -> tuple[str, ...]:
    if isinstance(events, str):
        return (events,)
    if not isinstance(events, (list, tuple)) or not events or not all(isinstance(event, str) for event in events):
        raise ValueError("events: wants an array of strings")
    return tuple(events)


def _tolerances(value: Any) -> dict[str, Tolerance]:
    table = value if isinstance(value, dict) else {"": value}
    return {"": Tolerance.parse(DEFAULT_TOLERANCE)} | {
        name.partition(":")[0]: Tolerance.parse(str(text)) for name, text in table.items()
    }


def _symbol(key: str, table: dict[str, Any]) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key}: {value!r} is not the name of a function")
    return value


def _status(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 256:
        raise ValueError(f"exit_status: {value!r} is not within 0..255")
    return value
