"""run: what trace does: run a program and write a line for each system call and signal, or a table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from perfemu.ending import Ending
from perfemu.guest import Guest
from perfemu.interruption import SignalKeys
from perfemu.session import Session
from perfemu.tracing.selection import parse
from perfemu.tracing.summary import Summary
from perfemu.tracing.tracer import Style, Tracer


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be written."""

    expressions: Iterable[str] = ()  # of -e
    only_failed: bool = False
    only_successful: bool = False
    style: Style = field(default_factory=Style)
    lines: bool = True
    summary_by: str | None = None  # the key that the table is sorted by; None: no table


@dataclass(frozen=True, slots=True)
class Traced:
    """How it ended, and the last signal that the user has sent, which the guest may have handled."""

    ending: Ending
    last_key: int | None = None


def trace(guest: Guest, wanted: Wanted, write: Callable[[str], object]) -> Traced:
    """Run the program; text goes to `write`, whole lines at a time."""
    session = Session(guest)
    selection = parse(wanted.expressions, failed=wanted.only_failed, successful=wanted.only_successful)
    summary = Summary() if wanted.summary_by is not None else None
    program = session.program
    first = program.path, tuple(program.argv), len(program.environment)
    tracer = Tracer(session.machine.kernel, write, selection, wanted.style, first, lines=wanted.lines, summary=summary)
    tracer.listen(session.machine.kernel.tracepoints)
    keys = SignalKeys(session.console)
    ending = session.run(keys)
    tracer.finish()
    if summary is not None and wanted.summary_by is not None:
        write(summary.text(wanted.summary_by))
    return Traced(ending, keys.last)
