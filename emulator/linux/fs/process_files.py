"""ProcessFile: what pidfd_open(2) and CLONE_PIDFD make: a descriptor that means a process, and is ready at its end."""

from __future__ import annotations

from emulator.linux.errors import EBADF, LinuxError
from emulator.linux.fs.file import O_RDWR, POLLHUP, POLLIN, File
from emulator.linux.fs.open_files import OpenDirectory
from emulator.linux.proc.process_directory import ProcessDirectory
from emulator.linux.process.task import Process
from emulator.linux.sched.waiting import WaitQueue


class ProcessFile(File):
    """A pidfd. It keeps meaning this process, also when another one has its number."""

    def __init__(self, process: Process, flags: int = 0) -> None:
        super().__init__(O_RDWR | flags, "anon_inode:[pidfd]")
        self.process = process

    def details(self) -> str:
        pid = -1 if self.process.reaped else self.process.pid
        return f"Pid:\t{pid}\nNSpid:\t{pid}\n"

    def poll(self) -> int:
        """POLLIN at its end, POLLHUP when it has been waited for, too."""
        ended = self.process.exit_status is not None
        return (POLLIN if ended else 0) | (POLLHUP if self.process.reaped else 0)

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        return (self.process.ended,)


def process_of(file: File) -> Process:
    """Which process a descriptor means; EBADF if it means none."""
    if not isinstance(file, ProcessFile):
        raise LinuxError(EBADF, f"{file.path} is no pidfd")
    return file.process


def signalled_by(file: File) -> Process:
    """... for pidfd_send_signal(2), to which an open /proc/PID means a process, too (tgid_pidfd_to_pid())."""
    node = file.dentry.node if isinstance(file, OpenDirectory) and file.dentry is not None else None
    return node.process if isinstance(node, ProcessDirectory) else process_of(file)
