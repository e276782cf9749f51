"""What ioctl(2) does with pseudo-terminals: a row for each request, of one end or of both (ioctl_tty(2)).

What asks for modes, window or groups means the slave, whichever end it is asked of.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeAlias

from emulator.linux.errors import EINVAL, ENOTTY, LinuxError
from emulator.linux.fs.file import Caller
from emulator.linux.signals.signal import SIGTTOU
from emulator.linux.tty import terminal_modes as modes
from emulator.linux.tty import terminal_requests as requests
from emulator.linux.tty.terminal import Terminal
from emulator.linux.tty.terminal_modes import WINDOW_BYTES, TerminalModes

Row: TypeAlias = Callable[[Terminal, Caller, int], int | None]
OF_BOTH: dict[int, Row] = {}
OF_MASTER: dict[int, Row] = {}
OF_SLAVE: dict[int, Row] = {}


def _row(table: dict[int, Row], *numbers: int) -> Callable[[Row], Row]:
    def declare(row: Row) -> Row:
        table.update(dict.fromkeys(numbers, row))
        return row

    return declare


def call(terminal: Terminal, own: dict[int, Row], task: Caller, request: int, argument: int) -> int:
    """`own`: the rows of the end that is asked."""
    row = own.get(request) or OF_BOTH.get(request)
    if row is None:
        if request in requests.TERMINAL_REQUESTS:
            terminal.processes.name_once(f"ioctl {request:#x} of terminals is not modelled (ENOTTY)")
        raise LinuxError(ENOTTY, f"{terminal.path} has no ioctl {request:#x}")
    return row(terminal, task, argument) or 0


def _write_int(task: Caller, address: int, value: int) -> None:
    task.mm.write(address, struct.pack("<i", value))


def _read_int(task: Caller, address: int) -> int:
    value: int = struct.unpack("<i", task.mm.read(address, 4))[0]
    return value


# ---- modes, window, groups


@_row(OF_BOTH, requests.TCGETS)
def _get_modes(terminal: Terminal, task: Caller, argument: int) -> None:
    task.mm.write(argument, terminal.discipline.modes.pack())


@_row(OF_BOTH, requests.TCGETS2)
def _get_modes_and_speeds(terminal: Terminal, task: Caller, argument: int) -> None:
    task.mm.write(argument, terminal.discipline.modes.pack2())


def _set_modes(terminal: Terminal, task: Caller, argument: int, *, flush: bool = False) -> None:
    terminal.processes.check_background(terminal, SIGTTOU)
    terminal.set_modes(TerminalModes.unpack(task.mm.read(argument, modes.TERMIOS.size)), flush=flush)


@_row(OF_BOTH, requests.TCSETS, requests.TCSETSW, requests.TCSETS2, requests.TCSETSW2)
def _set_modes_now(terminal: Terminal, task: Caller, argument: int) -> None:
    """What was written before has long appeared: there is nothing to wait for."""
    _set_modes(terminal, task, argument)


@_row(OF_BOTH, requests.TCSETSF, requests.TCSETSF2)
def _flush_and_set_modes(terminal: Terminal, task: Caller, argument: int) -> None:
    _set_modes(terminal, task, argument, flush=True)


@_row(OF_BOTH, requests.TIOCGWINSZ)
def _get_window(terminal: Terminal, task: Caller, argument: int) -> None:
    task.mm.write(argument, terminal.window)


@_row(OF_BOTH, requests.TIOCSWINSZ)
def _set_window(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.set_window(task.mm.read(argument, WINDOW_BYTES))


@_row(OF_BOTH, requests.TIOCSPGRP)
def _set_foreground(terminal: Terminal, task: Caller, argument: int) -> None:
    processes = terminal.processes
    processes.check_background(terminal, SIGTTOU)
    processes.check_controls(terminal)
    processes.set_foreground(terminal, _read_int(task, argument))


@_row(OF_SLAVE, requests.TIOCGPGRP)
def _get_foreground(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.processes.check_controls(terminal)
    _write_int(task, argument, terminal.foreground)


@_row(OF_MASTER, requests.TIOCGPGRP)
def _get_foreground_of_slave(terminal: Terminal, task: Caller, argument: int) -> None:
    _write_int(task, argument, terminal.foreground)


@_row(OF_SLAVE, requests.TIOCGSID)
def _get_session(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.processes.check_controls(terminal)
    _write_int(task, argument, terminal.session)


@_row(OF_MASTER, requests.TIOCGSID)
def _get_session_of_slave(terminal: Terminal, task: Caller, argument: int) -> None:
    if not terminal.session:
        raise LinuxError(ENOTTY, f"{terminal.path} controls no session")
    _write_int(task, argument, terminal.session)


@_row(OF_SLAVE, requests.TIOCSCTTY)
def _take_control(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.processes.take_control(terminal, steal=argument == 1)


@_row(OF_SLAVE, requests.TIOCNOTTY)
def _give_up_control(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.processes.give_up_control(terminal)


@_row(OF_SLAVE, requests.TIOCVHANGUP)
def _hang_up(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.hang_up()


# ---- the line


@_row(OF_BOTH, requests.TIOCGETD)
def _get_discipline(terminal: Terminal, task: Caller, argument: int) -> None:
    _write_int(task, argument, 0)  # N_TTY


@_row(OF_BOTH, requests.TIOCSETD)
def _set_discipline(terminal: Terminal, task: Caller, argument: int) -> None:
    if _read_int(task, argument):
        raise LinuxError(EINVAL, f"{terminal.path} has one line discipline, N_TTY")


@_row(OF_BOTH, requests.TIOCEXCL, requests.TIOCNXCL)
def _exclude(terminal: Terminal, task: Caller, argument: int) -> None:
    """Root may open it all the same, and the guest is root."""


@_row(OF_BOTH, requests.TCSBRK, requests.TCSBRKP)
def _drain(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.processes.check_background(terminal, SIGTTOU)


@_row(OF_SLAVE, requests.TCFLSH)
def _flush(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.processes.check_background(terminal, SIGTTOU)
    _check_queue(argument)
    if argument != requests.TCOFLUSH:
        terminal.flush_input()
    if argument != requests.TCIFLUSH:
        terminal.flush_output()


@_row(OF_MASTER, requests.TCFLSH)
def _flush_as_master(terminal: Terminal, task: Caller, argument: int) -> None:
    _check_queue(argument)
    if argument != requests.TCOFLUSH:
        terminal.shown.clear()
        terminal.at_slave.wake()
    if argument != requests.TCIFLUSH:
        terminal.arriving.clear()
        terminal.at_master.wake()


def _check_queue(argument: int) -> None:
    if argument not in (requests.TCIFLUSH, requests.TCOFLUSH, requests.TCIOFLUSH):
        raise LinuxError(EINVAL, f"tcflush of queue {argument}")


@_row(OF_SLAVE, requests.TCXONC)
def _flow(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.processes.check_background(terminal, SIGTTOU)
    if argument in (requests.TCOOFF, requests.TCOON):
        terminal.set_flow(stopped=argument == requests.TCOOFF)
    elif argument not in (requests.TCIOFF, requests.TCION):
        raise LinuxError(EINVAL, f"tcflow action {argument}")


@_row(OF_SLAVE, requests.FIONREAD)
def _count_typed(terminal: Terminal, task: Caller, argument: int) -> None:
    _write_int(task, argument, terminal.discipline.readable_bytes())


@_row(OF_MASTER, requests.FIONREAD)
def _count_shown(terminal: Terminal, task: Caller, argument: int) -> None:
    _write_int(task, argument, len(terminal.shown))


@_row(OF_BOTH, requests.TIOCOUTQ)
def _count_unsent(terminal: Terminal, task: Caller, argument: int) -> None:
    """What is written arrives at once."""
    _write_int(task, argument, 0)


# ---- the master's own


@_row(OF_MASTER, requests.TIOCGPTN)
def _get_number(terminal: Terminal, task: Caller, argument: int) -> None:
    _write_int(task, argument, terminal.number)


@_row(OF_MASTER, requests.TIOCSPTLCK)
def _lock(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.locked = bool(_read_int(task, argument))


@_row(OF_MASTER, requests.TIOCGPTLCK)
def _is_locked(terminal: Terminal, task: Caller, argument: int) -> None:
    _write_int(task, argument, terminal.locked)


@_row(OF_MASTER, requests.TIOCGPTPEER)
def _open_peer(terminal: Terminal, task: Caller, argument: int) -> int:
    return terminal.processes.open_peer(terminal, argument)


@_row(OF_MASTER, requests.TIOCPKT)
def _set_packets(terminal: Terminal, task: Caller, argument: int) -> None:
    terminal.packets, terminal.statuses = bool(_read_int(task, argument)), 0


@_row(OF_MASTER, requests.TIOCGPKT)
def _has_packets(terminal: Terminal, task: Caller, argument: int) -> None:
    _write_int(task, argument, terminal.packets)
