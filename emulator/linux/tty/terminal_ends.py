"""The two ends of a pseudo-terminal, as open files: what /dev/ptmx and /dev/pts/N give."""

from __future__ import annotations

from emulator.linux.errors import EAGAIN, EIO, ENOTTY, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_NONBLOCK, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLPRI, Caller
from emulator.linux.fs.open_files import NodeFile
from emulator.linux.sched.waiting import WaitQueue
from emulator.linux.signals.signal import SIGTTIN, SIGTTOU
from emulator.linux.tty import terminal_modes as modes
from emulator.linux.tty.terminal import CAPACITY_BYTES, Terminal
from emulator.linux.tty.terminal_calls import OF_MASTER, OF_SLAVE, call
from emulator.linux.tty.terminal_requests import TIOCSPGRP

PIECE_BYTES = 64  # of what is read: each is taken before it arrives (iterate_tty_read(), drivers/tty/tty_io.c)
HUNG_UP = POLLIN | POLLOUT | POLLERR | POLLHUP


def _give(destination: Destination, data: bytes) -> tuple[int, int]:
    """How many bytes arrive, and how many are taken for that. EFAULT is the caller's."""
    arrived = destination.put(data)
    return arrived, min(len(data), -(-(arrived + 1) // PIECE_BYTES) * PIECE_BYTES)


class End(NodeFile):
    """One end of a pseudo-terminal."""

    def __init__(self, terminal: Terminal, flags: int) -> None:
        super().__init__(flags, terminal.path)
        self.terminal = terminal


class Master(End):
    """What opening /dev/ptmx gives."""

    @property
    def changed(self) -> WaitQueue:
        return self.terminal.at_master

    def read(self, task: Caller, destination: Destination) -> int:
        terminal = self.terminal
        if terminal.packets and terminal.statuses and destination.left:
            status, terminal.statuses = terminal.statuses, 0
            return destination.give(bytes((status,)))
        if not terminal.shown:
            if terminal.left:
                raise LinuxError(EIO, f"nobody has {terminal.path} open any more")
            raise LinuxError(EAGAIN, f"nothing is written to {terminal.path}")
        head = b"\0" if terminal.packets else b""
        found = head + terminal.shown[: max(destination.left - len(head), 0)]
        arrived, taken = _give(destination, found)
        del terminal.shown[: taken - len(head)]
        terminal.at_slave.wake()
        if found and not arrived:
            raise destination.fault()
        return arrived

    def write(self, task: Caller, data: bytes) -> int:
        terminal = self.terminal
        room = CAPACITY_BYTES - len(terminal.arriving)
        if room <= 0 < len(data):
            raise LinuxError(EAGAIN, f"nobody reads what is typed at {terminal.path}")
        terminal.arriving += data[:room]
        terminal.type_arrived()
        return min(len(data), room)

    def poll(self) -> int:
        terminal = self.terminal
        status = POLLIN | POLLPRI if terminal.packets and terminal.statuses else 0
        return (
            status
            | (POLLIN if terminal.shown else 0)
            | (POLLOUT if len(terminal.arriving) < CAPACITY_BYTES else 0)
            | (POLLHUP if terminal.left else 0)
        )

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        return call(self.terminal, OF_MASTER, task, request, argument)

    def close(self) -> None:
        self.terminal.close_master()


class Slave(End):
    """What opening /dev/pts/N gives: a terminal."""

    silence_ends = True

    def __init__(self, terminal: Terminal, flags: int) -> None:
        super().__init__(terminal, flags)
        self.hung_up = False

    @property
    def changed(self) -> WaitQueue:
        return self.terminal.at_slave

    @property
    def read_timeout_ns(self) -> int | None:  # type: ignore[override]
        return self.terminal.discipline.silence_ns

    def read(self, task: Caller, destination: Destination) -> int:
        terminal = self.terminal
        if self.hung_up:
            return 0
        terminal.processes.check_background(terminal, SIGTTIN)
        found = terminal.discipline.look(destination.left, at_once=bool(self.flags & O_NONBLOCK))
        if found is None:
            raise LinuxError(EAGAIN, f"nothing has been typed at {terminal.path}")
        arrived, taken = _give(destination, found)
        terminal.discipline.take(taken)
        if terminal.arriving:
            terminal.type_arrived()
            terminal.at_master.wake()
        if found and not arrived:
            raise destination.fault()
        return arrived

    def write(self, task: Caller, data: bytes) -> int:
        terminal = self.terminal
        if self.hung_up:
            raise LinuxError(EIO, f"{terminal.path} is hung up")
        if terminal.discipline.modes.local & modes.TOSTOP:
            terminal.processes.check_background(terminal, SIGTTOU)
        if not data:
            return 0
        room = CAPACITY_BYTES - len(terminal.shown)
        if room <= 0 or terminal.discipline.stopped:
            raise LinuxError(EAGAIN, f"nobody reads what {terminal.path} shows")
        terminal.discipline.write(data[:room])
        return min(len(data), room)

    def poll(self) -> int:
        if self.hung_up:
            return HUNG_UP
        terminal = self.terminal
        writable = len(terminal.shown) < CAPACITY_BYTES and not terminal.discipline.stopped
        return (POLLIN if terminal.discipline.ready() else 0) | (POLLOUT if writable else 0)

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        if self.hung_up:
            raise LinuxError(ENOTTY if request == TIOCSPGRP else EIO, f"{self.terminal.path} is hung up")
        return call(self.terminal, OF_SLAVE, task, request, argument)

    def close(self) -> None:
        self.terminal.slave_closed(self)
