"""Terminal: a pseudo-terminal (pty(7)), between who has its master, and who has its slave open.

What is written to the master is typed at the slave (``LineDiscipline``), what is written to the slave appears at the
master. A terminal is the controlling one of at most one session, whose leader hears when it is hung up, and knows which
process group of that is in the foreground. drivers/tty: pty.c, tty_io.c, tty_jobctrl.c.
"""

from __future__ import annotations

from typing import Protocol

from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import WaitQueue
from emulator.linux.signals.signal import SIGCONT, SIGHUP, SIGWINCH
from emulator.linux.tty.line_discipline import INPUT_BYTES, LineDiscipline
from emulator.linux.tty.terminal_modes import CHARACTERS, IXON, VSTART, VSTOP, WINDOW_BYTES, TerminalModes

CAPACITY_BYTES = 65_536  # what is under way in each direction
# asm-generic/ioctls.h: what the first byte of a packet says
TIOCPKT_FLUSHREAD, TIOCPKT_FLUSHWRITE, TIOCPKT_STOP, TIOCPKT_START, TIOCPKT_NOSTOP, TIOCPKT_DOSTOP = 1, 2, 4, 8, 16, 32


class Processes(Protocol):
    """Who may use a terminal (``Terminals``)."""

    def caller(self) -> Task: ...

    def take_control(self, terminal: Terminal, *, steal: bool) -> None:
        """The caller's session wants it as its controlling terminal."""

    def give_up_control(self, terminal: Terminal) -> None:
        """... and has had enough of it."""

    def open_peer(self, terminal: Terminal, flags: int) -> int:
        """The slave's descriptor, new for the caller."""

    def signal_group(self, group: int, signal: int) -> None: ...

    def signal_leader(self, session: int, signal: int) -> None: ...

    def remember(self, session: int, group: int) -> None:
        """The session has lost its terminal, in whose foreground the group was."""

    def check_background(self, terminal: Terminal, signal: int) -> None:
        """A caller that is not in the foreground gets `signal`, and its call starts again later."""

    def check_controls(self, terminal: Terminal) -> None:
        """ENOTTY for a caller of a session whose terminal it is not."""

    def set_foreground(self, terminal: Terminal, group: int) -> None:
        """... to a group of the terminal's session."""

    def forget(self, terminal: Terminal) -> None:
        """It has no master any more."""

    def name_once(self, message: str) -> None: ...


class OpenSlave(Protocol):
    """One of those who have it open."""

    hung_up: bool


class Terminal:
    """A pair."""

    def __init__(self, processes: Processes, number: int) -> None:
        self.processes = processes
        self.number = number
        self.discipline = LineDiscipline(self._appear, lambda signal: processes.signal_group(self.foreground, signal))
        self.shown = bytearray()  # what the master has yet to read
        self.arriving = bytearray()  # what was written to the master and does not fit the discipline's buffer
        self.window = bytes(WINDOW_BYTES)
        self.locked = True
        self.session = 0  # whose controlling terminal it is
        self.foreground = 0  # process group
        self.packets = False
        self.statuses = 0  # TIOCPKT_*: what the master is to be told
        self.master_open = True
        self.slaves: list[OpenSlave] = []  # open, also those that are hung up
        self.left = False  # there were such, and are no more
        self.at_master = WaitQueue()
        self.at_slave = WaitQueue()

    @property
    def path(self) -> str:
        return f"/dev/pts/{self.number}"

    def set_flow(self, *, stopped: bool) -> None:
        """tcflow(3) of what is written."""
        if stopped:
            self.discipline.stop()
        else:
            self.discipline.start()
        self.tell_flow()
        self.at_slave.wake()

    def tell_flow(self) -> None:
        status = TIOCPKT_STOP if self.discipline.stopped else TIOCPKT_START
        self.tell(status, instead_of=TIOCPKT_STOP | TIOCPKT_START)

    def tell(self, status: int, instead_of: int = 0) -> None:
        """The master, if it reads packets."""
        if self.packets:
            self.statuses = self.statuses & ~instead_of | status
            self.at_master.wake()

    def _appear(self, data: bytes) -> None:
        if self.master_open and len(self.shown) < 4 * CAPACITY_BYTES:  # echoes of what nobody reads
            self.shown += data
            self.at_master.wake()

    def type_arrived(self) -> None:
        was_stopped = self.discipline.stopped
        while self.arriving and (room := self.discipline.room()):
            del self.arriving[: self.discipline.type(bytes(self.arriving[:room]))]
        if self.discipline.stopped != was_stopped:
            self.tell_flow()
        self.at_slave.wake()

    def flush_input(self) -> None:
        """What was typed and not read is forgotten."""
        self.discipline.flush()
        self.tell(TIOCPKT_FLUSHREAD)
        self.arriving.clear()
        self.at_master.wake()
        self.at_slave.wake()

    def flush_output(self) -> None:
        """What was written and did not yet arrive is forgotten; the master's buffer is as large as the slave's."""
        del self.shown[INPUT_BYTES - 1 :]
        self.tell(TIOCPKT_FLUSHWRITE)
        self.at_slave.wake()
        self.at_master.wake()

    # ---- who has it

    def opened(self, slave: OpenSlave) -> None:
        self.slaves.append(slave)
        self.left = False

    def control(self, leader: Task) -> None:
        self.session, self.foreground = leader.sid, leader.pgid

    def slave_closed(self, slave: OpenSlave) -> None:
        self.slaves.remove(slave)
        self.left = not self.slaves
        self.at_master.wake()

    def hang_up(self) -> None:
        """The session loses it, its leader hears, and who has it open finds the end."""
        session, group = self.session, self.foreground
        self.session = self.foreground = 0
        for slave in self.slaves:
            slave.hung_up = True
        self.discipline.flush()
        self.at_slave.wake()
        self.at_master.wake()
        if not session:
            return
        for signal in (SIGHUP, SIGCONT):
            self.processes.signal_leader(session, signal)
        self.processes.remember(session, group)

    def close_master(self) -> None:
        self.master_open = False
        self.processes.forget(self)
        self.shown.clear()
        self.hang_up()

    def set_modes(self, changed: TerminalModes, *, flush: bool) -> None:
        if flush:
            self.flush_input()
        before = _has_usual_flow(self.discipline.modes)
        self.discipline.set_modes(changed)
        if before != _has_usual_flow(changed):
            self.tell(TIOCPKT_NOSTOP if before else TIOCPKT_DOSTOP, instead_of=TIOCPKT_NOSTOP | TIOCPKT_DOSTOP)
        self.type_arrived()

    def set_window(self, window: bytes) -> None:
        """struct winsize; the foreground hears of another one."""
        if window != self.window:
            self.window = window
            self.processes.signal_group(self.foreground, SIGWINCH)


def _has_usual_flow(current: TerminalModes) -> bool:
    """Whether ^S and ^Q stop and start what is written, so that the master may do so itself."""
    stop, start = current.characters[VSTOP], current.characters[VSTART]
    return bool(current.input & IXON) and (stop, start) == (CHARACTERS[VSTOP], CHARACTERS[VSTART])
