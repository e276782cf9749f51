"""SignalFile: what signalfd(2) makes: the signals of whoever reads it, as a file."""

from __future__ import annotations

import struct
from collections.abc import Callable

from emulator.linux.errors import EAGAIN, EINVAL, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_RDWR, POLLIN, Caller, File
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import WaitQueue
from emulator.linux.signals.dequeuing import dequeue
from emulator.linux.signals.signal import SI_TIMER, SIGCHLD, SignalInfo
from emulator.linux.twos_complement import INT, signed

# uapi/linux/signalfd.h: signo errno code pid uid fd tid band overrun trapno status int ptr utime stime addr; 128 bytes
SIGNALFD_SIGINFO = struct.Struct("<IiiIIiIIIIiiQQQQ48x")


class SignalFile(File):
    """signalfd(2). `calling` is who reads or polls: it sees its own signals, also through an inherited descriptor."""

    reads_each_piece = True

    def __init__(self, calling: Callable[[], Task], flags: int, mask: int) -> None:
        super().__init__(O_RDWR | flags, "anon_inode:[signalfd]")
        self._calling = calling
        self._mask = mask

    def change(self, mask: int) -> None:
        self._mask = mask
        self._calling().signals.shared.arrived.wake()

    def read(self, task: Caller, destination: Destination) -> int:
        """As many signals as fit. One that does not arrive is lost."""
        size = SIGNALFD_SIGINFO.size
        if destination.left < size:
            raise LinuxError(EINVAL, f"a signalfd is read in pieces of {size} bytes, not {destination.left}")
        calling = self._calling()
        done = 0
        while destination.left >= size:
            info = dequeue(calling, self._mask)
            if info is None:
                break
            if destination.put(_pack(info)) < size:
                if not done:
                    raise destination.fault()
                break
            done += size
        if not done:
            raise LinuxError(EAGAIN, "no signal of the set is pending")
        return done

    def poll(self) -> int:
        return POLLIN if self._calling().signals.pending_mask() & self._mask else 0

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        return (self._calling().signals.shared.arrived,)


def _pack(info: SignalInfo) -> bytes:
    """fs/signalfd.c, signalfd_copyinfo"""
    pid, uid, value = struct.unpack_from("<IIQ", info.pack(), 16)
    number = signed(value, INT)
    head = info.signal, 0, info.code
    if info.is_fault:
        return SIGNALFD_SIGINFO.pack(*head, 0, 0, 0, 0, 0, 0, info.trap_number, 0, 0, 0, 0, 0, info.address)
    if info.code == SI_TIMER:
        return SIGNALFD_SIGINFO.pack(*head, 0, 0, 0, pid, 0, uid, 0, 0, number, value, 0, 0, 0)
    if info.signal == SIGCHLD and info.code > 0:
        times = info.user_ticks, info.system_ticks
        return SIGNALFD_SIGINFO.pack(*head, pid, uid, 0, 0, 0, 0, 0, number, 0, 0, *times, 0)
    return SIGNALFD_SIGINFO.pack(*head, pid, uid, 0, 0, 0, 0, 0, 0, number, value, 0, 0, 0)
