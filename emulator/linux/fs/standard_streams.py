"""Standard streams: the guest's descriptors 0, 1 and 2, which are the user's own.

What they are connected to is part of what the user asked for, so the guest sees it: a terminal (with its size and
modes), a pipe, or a file with its position. They count as always ready: a read waits for the user, and no guest time
passes. How a pipe happens to deliver its bytes is no part of it: unless the program is in a dialogue with the other
end, a read waits until it has all that it asked for, or the pipe ends, so that the same bytes give the same run.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import select
import stat as file_mode
import termios
from functools import cache

from emulator.linux.errors import EACCES, EINVAL, ENOTTY, ESPIPE, LinuxError, host_errors
from emulator.linux.fs.attributes import Attributes, FileSystemStatistics
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_ACCMODE, O_RDONLY, O_RDWR, O_WRONLY, POLLIN, POLLOUT, Caller
from emulator.linux.fs.host_body import host_attributes
from emulator.linux.fs.nodes import DEV_DEVICE, HOST_STATISTICS, PIPE_DEVICE, PIPE_STATISTICS, Node, Superblock
from emulator.linux.fs.open_files import SEEK_DATA, NodeFile
from emulator.linux.fs.paths import Dentry
from emulator.linux.signals.signal import SIGTTOU
from emulator.linux.tty.console import Console
from emulator.linux.tty.terminal_modes import TERMIOS, WINDOW_BYTES
from emulator.linux.tty.terminal_requests import (
    FIONREAD,
    TCGETS,
    TCSETS,
    TCSETSF,
    TCSETSW,
    TIOCGPGRP,
    TIOCGSID,
    TIOCGWINSZ,
    TIOCSPGRP,
)

TERMINAL_DEVICE = (136, 0)  # /dev/pts/0
PIPE_BYTES = 1 << 16  # pipe(7): what a pipe holds, and the most that a read of a full one returns


class StandardStream(NodeFile):
    """One of the host descriptors that the user gave the guest. It is never closed, and never opened again by name."""

    writes_all = False  # `write` writes all that it may
    _has_moved = False  # the position, by lseek: a write there may leave a hole

    def __init__(
        self,
        superblock: Superblock,
        console: Console,
        host_descriptor: int,
        flags: int,
        interactive: bool = True,
        inode: int | None = None,
    ) -> None:
        super().__init__(flags)
        self._superblock = superblock
        self._console = console
        self._descriptor = host_descriptor
        status = os.fstat(host_descriptor)
        self._kind = file_mode.S_IFMT(status.st_mode)
        self._special = (os.major(status.st_rdev), os.minor(status.st_rdev))
        self.is_terminal = os.isatty(host_descriptor)
        self._interactive = interactive or self._kind not in (file_mode.S_IFIFO, file_mode.S_IFSOCK)
        identity = status.st_dev, status.st_ino
        self._inode = superblock.inodes.of_stream(*identity) if inode is None else inode
        self.dentry = Dentry(StreamNode(self), "", None)
        self.path = self._name()

    def _name(self) -> str:
        if self.is_terminal:
            return "/dev/tty"
        if self._kind == file_mode.S_IFIFO:
            return f"pipe:[{self._inode}]"
        if self._kind == file_mode.S_IFSOCK:
            return f"socket:[{self._inode}]"
        if self._kind == file_mode.S_IFCHR:
            return "/dev/null"
        return os.readlink(f"/proc/self/fd/{self._descriptor}")

    @classmethod
    def of_host(
        cls, superblock: Superblock, console: Console, host_descriptor: int, interactive: bool = True
    ) -> StandardStream:
        """Flags as the host's descriptor has them: a shell gives a program its terminal for reading and writing."""
        mode = fcntl.fcntl(host_descriptor, fcntl.F_GETFL) & (O_ACCMODE | os.O_APPEND)
        return cls(superblock, console, host_descriptor, mode, interactive)

    def read(self, task: Caller, destination: Destination) -> int:
        data = self._console.unread.pop(self._descriptor, b"")
        if not data:
            data = self._next_bytes(destination.left)
        count = destination.put(data[: destination.left])
        if count < len(data):
            self._keep(data[count:])
            if not count and destination.left:
                raise destination.fault()
        return count

    def _keep(self, rest: bytes) -> None:
        """What did not arrive is what the next read finds."""
        if self._kind == file_mode.S_IFREG:
            os.lseek(self._descriptor, -len(rest), os.SEEK_CUR)
        else:
            self._console.unread[self._descriptor] = rest

    def _next_bytes(self, size: int) -> bytes:
        """From the user."""
        if self._interactive:
            if self.is_terminal:
                self._console.check_reader()
            self._console.wait_for_input(self._descriptor)
            return self._read_some(size)
        size = min(size, PIPE_BYTES)
        data = b""
        while len(data) < size and (more := self._read_some(size - len(data))):
            data += more
        return data

    def _read_some(self, size: int) -> bytes:
        while True:
            try:
                return os.read(self._descriptor, min(size, 1 << 20))
            except BlockingIOError:
                select.select([self._descriptor], [], [])
            except OSError as error:
                raise LinuxError.from_host(error) from error

    def write(self, task: Caller, data: bytes) -> int:
        if self.is_terminal:
            self._console.note_output(data)
        if self._has_moved:
            self._superblock.output.take_all(self._growth(os.lseek(self._descriptor, 0, os.SEEK_CUR)))
            self._has_moved = False
        data = data[: self._superblock.output.take(len(data))]
        rest = data
        while True:
            try:
                written = os.write(self._descriptor, rest)
            except BlockingIOError:
                select.select([], [self._descriptor], [])
                continue
            except OSError as error:
                raise LinuxError.from_host(error) from error
            if written == len(rest):
                return len(data)
            rest = rest[written:]

    def _check_seekable(self) -> None:
        if self._kind != file_mode.S_IFREG:
            raise LinuxError(ESPIPE, f"{self.path} has no offsets")

    def read_at(self, task: Caller, offset: int, destination: Destination) -> int:
        self._check_seekable()
        with host_errors:
            data = os.pread(self._descriptor, min(destination.left, 1 << 24), offset)
        return destination.give(data)

    def write_at(self, task: Caller, offset: int, data: bytes) -> int:
        self._check_seekable()
        self._superblock.output.take_all(self._growth(offset))
        granted = self._superblock.output.take(len(data))
        with host_errors:
            return os.pwrite(self._descriptor, data[:granted], offset)

    def seek(self, offset: int, whence: int) -> int:
        self._check_seekable()
        if not 0 <= whence <= SEEK_DATA + 1:
            raise LinuxError(EINVAL, f"whence {whence} is not one of 0..4")
        self._has_moved = True
        with host_errors:
            return os.lseek(self._descriptor, offset, whence)

    def truncate(self, size: int) -> None:
        if self._kind != file_mode.S_IFREG:
            raise LinuxError(EINVAL, f"{self.path} is not a regular file")
        self._superblock.output.take_all(self._growth(size))
        with host_errors:
            os.ftruncate(self._descriptor, size)

    def _growth(self, size: int) -> int:
        """By how much the file grows before anything is written there."""
        return max(0, size - os.fstat(self._descriptor).st_size)

    def poll(self) -> int:
        return (POLLIN if self.readable else 0) | (POLLOUT if self.writable else 0)

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        if request == FIONREAD and self._kind == file_mode.S_IFREG:
            rest = os.fstat(self._descriptor).st_size - os.lseek(self._descriptor, 0, os.SEEK_CUR)
            task.mm.write(argument, max(0, min(rest, 0x7FFFFFFF)).to_bytes(4, "little"))
            return 0
        if not self.is_terminal:
            raise LinuxError(ENOTTY, f"{self.path} has no ioctl {request:#x}")
        if request == TCGETS:
            task.mm.write(argument, self._host_ioctl(request, bytes(TERMIOS.size)))
        elif request == TIOCGWINSZ:
            task.mm.write(argument, self._host_ioctl(request, bytes(WINDOW_BYTES)))
        elif request in (TCSETS, TCSETSW, TCSETSF):
            self._console.check_background(SIGTTOU)
            _restore_at_exit(self._descriptor)
            self._host_ioctl(request, task.mm.read(argument, TERMIOS.size))
        elif request == TIOCGPGRP:
            self._console.check_controls()
            task.mm.write(argument, self._console.foreground.to_bytes(4, "little"))
        elif request == TIOCGSID:
            self._console.check_controls()
            task.mm.write(argument, self._console.session.to_bytes(4, "little"))
        elif request == TIOCSPGRP:
            self._console.check_background(SIGTTOU)
            self._console.check_controls()
            self._console.set_foreground(int.from_bytes(task.mm.read(argument, 4), "little", signed=True))
        else:
            raise LinuxError(ENOTTY, f"the terminal's ioctl {request:#x} is not modelled")
        return 0

    def _host_ioctl(self, request: int, data: bytes) -> bytes:
        with host_errors:
            return fcntl.ioctl(self._descriptor, request, data)

    def attributes(self) -> Attributes:
        superblock = self._superblock
        if self._kind == file_mode.S_IFREG:
            return host_attributes(superblock, os.fstat(self._descriptor))
        is_device = self._kind == file_mode.S_IFCHR
        mode = self._kind | (0o620 if self.is_terminal else 0o666 if is_device else 0o600)
        special = TERMINAL_DEVICE if self.is_terminal else self._special if is_device else (0, 0)
        device = DEV_DEVICE if is_device else PIPE_DEVICE
        owner = superblock.owner
        return Attributes(self._inode, mode, 0, 1, owner, owner, device, special, superblock.now(), superblock.now())

    def statistics(self) -> FileSystemStatistics:
        return HOST_STATISTICS if self._kind == file_mode.S_IFREG else PIPE_STATISTICS

    def again(self, flags: int) -> StandardStream:
        """An open of /dev/stdin and the like: the same stream, with no more rights than the user gave."""
        allowed = self.flags & O_ACCMODE
        wanted = flags & O_ACCMODE
        if allowed != O_RDWR and wanted != allowed:
            asked = {O_RDONLY: "reading", O_WRONLY: "writing"}.get(wanted, "reading and writing")
            raise LinuxError(EACCES, f"{self.path} is not open for {asked}")
        return StandardStream(self._superblock, self._console, self._descriptor, flags, self._interactive, self._inode)


class StreamNode(Node):
    """What /proc/self/fd/0 leads to."""

    __slots__ = ("stream",)

    def __init__(self, stream: StandardStream) -> None:
        self.stream = stream

    @property
    def file_type(self) -> int:
        return file_mode.S_IFMT(self.attributes().mode)

    def attributes(self) -> Attributes:
        return self.stream.attributes()

    def open_file(self, task: Caller, flags: int, path: str) -> StandardStream:
        return self.stream.again(flags)


@cache
def _restore_at_exit(descriptor: int) -> None:
    """The user gets the terminal back as it was before the first change."""
    atexit.register(termios.tcsetattr, descriptor, termios.TCSADRAIN, termios.tcgetattr(descriptor))
