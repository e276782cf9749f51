"""What trace does of a board: a line for each system call of its Linux's processes, or a table of them."""

from __future__ import annotations

from collections.abc import Callable

from perfemu.board_calls import CALLS, BoardLinux
from perfemu.boards import BoardSession
from perfemu.ending import Ending
from perfemu.tracing.run import Wanted
from perfemu.tracing.selection import parse
from perfemu.tracing.summary import Summary
from perfemu.tracing.tracer import Tracer


def trace_board(session: BoardSession, wanted: Wanted, write: Callable[[str], object]) -> Ending:
    """Run it to its end; text goes to `write`, whole lines at a time."""
    selection = parse(wanted.expressions, failed=wanted.only_failed, successful=wanted.only_successful)
    summary = Summary() if wanted.summary_by is not None else None
    kernel = BoardLinux(session.hardware.clock, session.isa)
    tracer = Tracer(kernel, write, selection, wanted.style, lines=wanted.lines, summary=summary)
    assert session.linux is not None, "its system calls are asked for"
    session.call_watcher = CALLS[session.isa](session.linux, kernel, tracer)
    ending = session.run()
    tracer.finish()
    if summary is not None and wanted.summary_by is not None:
        write(summary.text(wanted.summary_by))
    return ending
