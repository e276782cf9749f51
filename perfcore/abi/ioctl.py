"""The ioctls of an event's file descriptor: the same numbers on AArch64 and x86-64 (both use asm-generic/ioctl.h)."""

from __future__ import annotations

from enum import IntEnum

PERF_IOC_FLAG_GROUP = 1  # the argument of ENABLE, DISABLE and RESET: the whole group

_WRITE = 1 << 30  # user space writes, the kernel reads
_READ = 2 << 30


def _io(number: int, direction: int = 0, size_bytes: int = 0) -> int:
    return direction | size_bytes << 16 | ord("$") << 8 | number


class PerfIoctl(IntEnum):
    """PERF_EVENT_IOC_*."""

    ENABLE = _io(0)
    DISABLE = _io(1)
    REFRESH = _io(2)
    RESET = _io(3)
    PERIOD = _io(4, _WRITE, 8)
    SET_OUTPUT = _io(5)
    SET_FILTER = _io(6, _WRITE, 8)
    ID = _io(7, _READ, 8)
    SET_BPF = _io(8, _WRITE, 4)
    PAUSE_OUTPUT = _io(9, _WRITE, 4)
    QUERY_BPF = _io(10, _READ | _WRITE, 8)
    MODIFY_ATTRIBUTES = _io(11, _WRITE, 8)
