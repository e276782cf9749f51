"""What an administrator asks: how the clock is adjusted (adjtimex(2)), and what the kernel has said (syslog(2))."""

from __future__ import annotations

import struct

from emulator.linux.clock_ids import CLOCK_REALTIME
from emulator.linux.errors import EINVAL, EPERM, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.structures import NANOSECONDS
from emulator.linux.syscalls.table import Address, Support, syscall

# struct timex: modes, offset freq maxerror esterror, status, constant precision tolerance, time, tick, ppsfreq jitter,
# shift, stabil jitcnt calcnt errcnt stbcnt, tai
TIMEX = struct.Struct("<I4x4qi4x3q2qq2qi4x5qi44x")
STA_UNSYNC, TIME_ERROR = 0x40, 5  # uapi/linux/timex.h: nobody has set the clock
WORST_ERROR_US, TIME_CONSTANT, TOLERANCE, TICK_US = 16_000_000, 2, 32_768_000, 10_000  # as after boot
PINNED = "the machine's time is pinned: what would change it is EPERM"


def _adjust(task: Task, address: int) -> int:
    modes = task.mm.read_u32(address)
    if modes:
        raise LinuxError(EPERM, f"adjtimex modes {modes:#x}: the machine's time is pinned")
    seconds, nanoseconds = divmod(task.clock.realtime_ns(), NANOSECONDS)
    state = 0, 0, 0, WORST_ERROR_US, WORST_ERROR_US, STA_UNSYNC, TIME_CONSTANT, 1, TOLERANCE
    data = TIMEX.pack(*state, seconds, nanoseconds // 1000, TICK_US, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    task.mm.write(address, data)
    return TIME_ERROR


@syscall(aarch64=171, x86_64=159, support=Support.PARTIAL, note=PINNED)
def adjtimex(task: Task, txc_p: Address) -> int:
    return _adjust(task, txc_p)


@syscall(aarch64=266, x86_64=305, support=Support.PARTIAL, note=PINNED)
def clock_adjtime(task: Task, which_clock: int, utx: Address) -> int:
    if which_clock != CLOCK_REALTIME:
        raise LinuxError(EINVAL, f"clock {which_clock} cannot be adjusted")
    return _adjust(task, utx)


SYSLOG_READ, SYSLOG_READ_ALL, SYSLOG_READ_CLEAR, SYSLOG_CONSOLE_LEVEL = 2, 3, 4, 8
SYSLOG_SIZE_UNREAD, SYSLOG_SIZE_BUFFER = 9, 10
BUFFER_BYTES = 1 << 18


@syscall(aarch64=116, x86_64=103, support=Support.PARTIAL, note="the kernel says nothing: a read is at its end at once")
def syslog(task: Task, type_: int, buf: Address, len_: int) -> int:
    if not 0 <= type_ <= SYSLOG_SIZE_BUFFER:
        raise LinuxError(EINVAL, f"syslog type {type_}")
    if type_ in (SYSLOG_READ, SYSLOG_READ_ALL, SYSLOG_READ_CLEAR) and (not buf or len_ < 0):
        raise LinuxError(EINVAL, f"{len_} bytes at {buf:#x}")
    if type_ == SYSLOG_CONSOLE_LEVEL and not 1 <= len_ <= 8:
        raise LinuxError(EINVAL, f"console level {len_}")
    return BUFFER_BYTES if type_ == SYSLOG_SIZE_BUFFER else 0
