"""Terminals: all pseudo-terminals of a machine, their names below /dev, and which session has which."""

from __future__ import annotations

import stat as file_mode
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from emulator.linux.errors import EINVAL, EIO, ENOSPC, ENOTTY, ENXIO, EPERM, ERESTARTSYS, ESRCH, LinuxError
from emulator.linux.fs.attributes import Attributes, device_number
from emulator.linux.fs.file import O_CLOEXEC, O_NOCTTY, Caller, File
from emulator.linux.fs.file_tree import FileTree
from emulator.linux.fs.nodes import DEVPTS_DEVICE, DEVPTS_STATISTICS
from emulator.linux.fs.open_files import NodeFile
from emulator.linux.fs.paths import Dentry
from emulator.linux.fs.standard_streams import TERMINAL_DEVICE
from emulator.linux.fs.virtual_files import FileNode, VirtualDirectory, Volume
from emulator.linux.process.task import Process, Task
from emulator.linux.signals.signal import SIG_IGN, SIGCONT, SIGHUP, SIGTTIN, SignalInfo, bit
from emulator.linux.signals.signal_sending import is_orphaned
from emulator.linux.tty.console import Controlling
from emulator.linux.tty.terminal import Terminal
from emulator.linux.tty.terminal_ends import Master, Slave

PTS_MAJOR = 136  # admin-guide/devices.txt
PTMX_DEVICE, TTY_DEVICE = (5, 2), (5, 0)
FIRST_NUMBER = 1  # pts/0 is the user's own
MOST_TERMINALS = 256
TTY_GROUP = 5  # Debian's gid of tty, to which devpts gives terminals


class Kernel(Protocol):
    """Whose terminals they are."""

    @property
    def file_tree(self) -> FileTree: ...
    @property
    def tasks(self) -> dict[int, Task]: ...

    def calling(self) -> Task: ...

    def signal_process(self, process: Process, info: SignalInfo) -> bool: ...

    def name_once(self, message: str) -> None: ...


class TerminalNode(FileNode):
    """A terminal's inode, or /dev/ptmx, or /dev/tty."""

    __slots__ = ("_group",)

    def __init__(
        self,
        volume: Volume,
        factory: Callable[[Caller, int], File],
        permissions: int,
        special: tuple[int, int],
        group: int = 0,
    ) -> None:
        super().__init__(volume, factory, file_mode.S_IFCHR | permissions, special)
        self._group = group

    def attributes(self) -> Attributes:
        return replace(super().attributes(), gid=self._group)

    def permits(self, wanted: int) -> bool:
        return not wanted & 1

    def set_mode(self, permissions: int) -> None:
        self.mode = file_mode.S_IFCHR | permissions

    def open_file(self, task: Caller, flags: int, path: str) -> File:
        file = super().open_file(task, flags, path)
        if isinstance(file, NodeFile):
            file.dentry = Dentry(self, path.rpartition("/")[2], None)
        return file


class Terminals:
    """The pseudo-terminals of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._by_number: dict[int, Terminal] = {}
        self._left: dict[int, int] = {}  # session that lost its terminal -> group that was in its foreground
        tree = kernel.file_tree
        self._volume = Volume(tree.superblock, DEVPTS_DEVICE, DEVPTS_STATISTICS)
        self._directory = VirtualDirectory(self._volume)
        self._directory.add("ptmx", TerminalNode(self._volume, self._open_master, 0, PTMX_DEVICE))
        tree.dev.add("pts", self._directory)
        tree.dev.add("ptmx", TerminalNode(tree.dev.volume, self._open_master, 0o666, PTMX_DEVICE, TTY_GROUP))
        tree.dev.add("tty", TerminalNode(tree.dev.volume, self._open_controlling, 0o666, TTY_DEVICE, TTY_GROUP))

    # ---- opening

    def _open_master(self, task: Caller, flags: int) -> Master:
        number = next(number for number in range(FIRST_NUMBER, MOST_TERMINALS + 2) if number not in self._by_number)
        if number > MOST_TERMINALS:
            raise LinuxError(ENOSPC, f"there are {MOST_TERMINALS} pseudo-terminals")
        terminal = self._by_number[number] = Terminal(self, number)
        node = TerminalNode(
            self._volume, lambda task, flags: self.open_slave(terminal, flags), 0o620, (PTS_MAJOR, number), TTY_GROUP
        )
        self._directory.add(str(number), node)
        return Master(terminal, flags)

    def open_slave(self, terminal: Terminal, flags: int) -> Slave:
        """The leader of a session that has no terminal gets this one, unless it is another's."""
        if terminal.locked or not terminal.master_open:
            raise LinuxError(EIO, f"{terminal.path} is locked")
        slave = Slave(terminal, flags)
        terminal.opened(slave)
        caller = self.caller()
        may_take = caller.pid == caller.sid and not terminal.session and self.of_session(caller.sid) is None
        if may_take and not flags & O_NOCTTY:
            terminal.control(caller)
        return slave

    def open_peer(self, terminal: Terminal, flags: int) -> int:
        slave = self.open_slave(terminal, flags & ~O_CLOEXEC)
        name = str(terminal.number)
        slave.dentry = Dentry(self._directory.children[name], name, None)
        return self.caller().files.install(slave, bool(flags & O_CLOEXEC))

    def _open_controlling(self, task: Caller, flags: int) -> File:
        """/dev/tty: the terminal of the caller's session."""
        caller = self.caller()
        terminal = self.of_session(caller.sid)
        if terminal is not None:
            return self.open_slave(terminal, flags)
        tree = self._kernel.file_tree
        stream = tree.user_terminal
        if stream is None or caller.sid != tree.console.session:
            raise LinuxError(ENXIO, f"session {caller.sid} has no terminal")
        return stream.again(flags)

    def forget(self, terminal: Terminal) -> None:
        """Its master is closed: it has no name any more."""
        del self._by_number[terminal.number]
        del self._directory.children[str(terminal.number)]

    # ---- sessions and groups

    def caller(self) -> Task:
        return self._kernel.calling()

    def of_session(self, session: int) -> Terminal | None:
        for terminal in self._by_number.values():
            if terminal.session == session:
                return terminal
        return None

    def told_of(self, process: Process) -> tuple[int, int]:
        """What /proc/PID/stat says: the device number of its terminal, and the group in the foreground of that."""
        terminal = self.of_session(process.sid)
        if terminal is not None:
            return device_number(PTS_MAJOR, terminal.number), terminal.foreground
        tree = self._kernel.file_tree
        if tree.user_terminal is not None and tree.console.session == process.sid:
            return device_number(*TERMINAL_DEVICE), tree.console.foreground
        return 0, -1

    def _alive(self) -> list[Process]:
        """In the order of their making."""
        processes = (task.process for task in self._kernel.tasks.values() if task is task.process.leader)
        return [process for process in processes if process.exit_status is None]

    def members(self, group: int) -> list[Process]:
        return [process for process in self._alive() if process.pgid == group]

    def signal_group(self, group: int, signal: int) -> None:
        if group:
            self._signal(self.members(group), signal)

    def signal_foreground(self, group: int, signal: int) -> None:
        """The user's signal keys: to the group, or to the machine's first process where that has nobody left."""
        self._signal(self.members(group) or self._alive()[:1], signal)

    def _signal(self, processes: Sequence[Process], signal: int) -> None:
        for process in processes:
            self._kernel.signal_process(process, SignalInfo(signal))

    def signal_leader(self, session: int, signal: int) -> None:
        leader = self._kernel.tasks.get(session)
        if leader is not None and leader.process.sid == session:
            self._kernel.signal_process(leader.process, SignalInfo(signal))

    def check_background(self, terminal: Controlling, signal: int) -> None:
        """__tty_check_change(), drivers/tty/tty_jobctrl.c"""
        caller = self.caller()
        if terminal.session != caller.sid or not terminal.foreground or caller.pgid == terminal.foreground:
            return
        if caller.signals.blocked & bit(signal) or caller.signals.action(signal).handler == SIG_IGN:
            if signal == SIGTTIN:
                raise LinuxError(EIO, f"{terminal.path} is not read from the background")
            return
        if is_orphaned(caller.process):
            raise LinuxError(EIO, f"{terminal.path}: nobody could bring the group to the foreground")
        self.signal_group(caller.pgid, signal)
        raise LinuxError(ERESTARTSYS, f"{terminal.path}: in the background")

    def check_controls(self, terminal: Controlling) -> None:
        session = self.caller().sid
        if terminal.session != session:
            raise LinuxError(ENOTTY, f"{terminal.path} does not control session {session}")

    def set_foreground(self, terminal: Controlling, group: int) -> None:
        """session_of_pgrp(): as long as nobody has waited for a process, it is in its group; a process will do, too."""
        if group < 0:
            raise LinuxError(EINVAL, f"process group {group}")
        tasks = self._kernel.tasks
        member = next((task for task in tasks.values() if task.pgid == group), tasks.get(group))
        if member is None:
            raise LinuxError(ESRCH, f"there is no process group {group}")
        if member.sid != terminal.session:
            raise LinuxError(EPERM, f"process group {group} is of another session")
        terminal.foreground = group

    def take_control(self, terminal: Terminal, *, steal: bool) -> None:
        """tiocsctty(). The guest is root, and may take a terminal from another session."""
        caller = self.caller()
        is_leader = caller.process.pid == caller.sid
        if is_leader and terminal.session == caller.sid:
            return
        if not is_leader or self.of_session(caller.sid) is not None or (terminal.session and not steal):
            raise LinuxError(EPERM, f"session {caller.sid} cannot have {terminal.path}")
        terminal.control(caller)

    def give_up_control(self, terminal: Terminal) -> None:
        """no_tty()"""
        caller = self.caller()
        if self.of_session(caller.sid) is not terminal:
            raise LinuxError(ENOTTY, f"{terminal.path} does not control session {caller.sid}")
        if caller.process.pid != caller.sid:
            self.name_once("TIOCNOTTY of who leads no session is not modelled (ENOTTY)")
            raise LinuxError(ENOTTY, "the session keeps its terminal")
        group, terminal.session, terminal.foreground = terminal.foreground, 0, 0
        for signal in (SIGHUP, SIGCONT):
            self.signal_group(group, signal)

    def remember(self, session: int, group: int) -> None:
        self._left[session] = group

    def session_ends(self, session: int) -> None:
        """Its leader has ended (disassociate_ctty()): who works at its terminal hears, and may go on."""
        terminal = self.of_session(session)
        group = self._left.pop(session, 0)
        if terminal is not None:
            group, terminal.session, terminal.foreground = terminal.foreground, 0, 0
        self.signal_group(group, SIGHUP)

    def name_once(self, message: str) -> None:
        self._kernel.name_once(message)
