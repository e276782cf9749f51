"""Structures that several syscalls exchange with user memory: times (the same on both ISAs)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from emulator.linux.errors import EINVAL, LinuxError

NANOSECONDS = 1_000_000_000  # in a second
TICK_NS = 4_000_000  # CONFIG_HZ=250: the scheduler's tick, and the resolution of the coarse clocks
TICKS_PER_SECOND = 100  # USER_HZ, AT_CLKTCK: times(2), /proc

_TWO_LONGS = struct.Struct("<qq")
_FOUR_LONGS = struct.Struct("<4q")


@dataclass(frozen=True, slots=True)
class Timespec:
    """struct timespec."""

    seconds: int
    nanoseconds: int

    SIZE: ClassVar[int] = 16

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        return cls(*_TWO_LONGS.unpack(data))

    @classmethod
    def from_ns(cls, ns: int) -> Self:
        return cls(*divmod(ns, NANOSECONDS))

    def pack(self) -> bytes:
        return _TWO_LONGS.pack(self.seconds, self.nanoseconds)

    def ns(self) -> int:
        """Nanoseconds of a time that may be waited for; EINVAL for others."""
        if self.seconds < 0 or not 0 <= self.nanoseconds < NANOSECONDS:
            raise LinuxError(EINVAL, f"{self.seconds} s {self.nanoseconds} ns is no time")
        return self.seconds * NANOSECONDS + self.nanoseconds


@dataclass(frozen=True, slots=True)
class Timeval:
    """struct timeval."""

    seconds: int
    microseconds: int

    SIZE: ClassVar[int] = 16

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        return cls(*_TWO_LONGS.unpack(data))

    @classmethod
    def from_ns(cls, ns: int) -> Self:
        seconds, rest = divmod(ns, NANOSECONDS)
        return cls(seconds, rest // 1000)

    def pack(self) -> bytes:
        return _TWO_LONGS.pack(self.seconds, self.microseconds)

    def ns(self) -> int:
        if self.seconds < 0 or not 0 <= self.microseconds < 1_000_000:
            raise LinuxError(EINVAL, f"{self.seconds} s {self.microseconds} us is no time")
        return self.seconds * NANOSECONDS + self.microseconds * 1000


@dataclass(frozen=True, slots=True)
class TimerSetting:
    """struct itimerspec (or, with Timeval's resolution, itimerval), in nanoseconds."""

    interval_ns: int
    value_ns: int


@dataclass(frozen=True, slots=True)
class Itimerspec(TimerSetting):
    SIZE: ClassVar[int] = 32

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        interval, value = Timespec.unpack(data[:16]), Timespec.unpack(data[16:])
        return cls(interval.ns(), value.ns())

    def pack(self) -> bytes:
        return _FOUR_LONGS.pack(*divmod(self.interval_ns, NANOSECONDS), *divmod(self.value_ns, NANOSECONDS))


@dataclass(frozen=True, slots=True)
class Itimerval(TimerSetting):
    SIZE: ClassVar[int] = 32

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        interval, value = Timeval.unpack(data[:16]), Timeval.unpack(data[16:])
        return cls(interval.ns(), value.ns())

    def pack(self) -> bytes:
        return Timeval.from_ns(self.interval_ns).pack() + Timeval.from_ns(self.value_ns).pack()


@dataclass(frozen=True, slots=True)
class U32:
    """A 32-bit integer."""

    value: int

    SIZE: ClassVar[int] = 4

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        return cls(int.from_bytes(data, "little"))

    def pack(self) -> bytes:
        return (self.value & 0xFFFF_FFFF).to_bytes(4, "little")


@dataclass(frozen=True, slots=True)
class U64:
    """A 64-bit integer, or a pointer."""

    value: int

    SIZE: ClassVar[int] = 8

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        return cls(int.from_bytes(data, "little"))

    def pack(self) -> bytes:
        return (self.value & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little")
