"""Resource limits and usage."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, Self

from emulator.linux.errors import EINVAL, EPERM, ESRCH, LinuxError
from emulator.linux.process.limits import MAX_OPEN_FILES, RLIM_NLIMITS, RLIMIT_NOFILE
from emulator.linux.process.task import Task
from emulator.linux.process.usage import Usage
from emulator.linux.structures import Timeval
from emulator.linux.syscalls.table import In, OptionalIn, Out, UInt, syscall

RUSAGE_SELF, RUSAGE_CHILDREN, RUSAGE_THREAD = 0, -1, 1


@dataclass(frozen=True, slots=True)
class Rlimit:
    """struct rlimit64, which is struct rlimit on 64-bit machines."""

    soft: int
    hard: int

    SIZE: ClassVar[int] = 16

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        return cls(*struct.unpack("<QQ", data))

    def pack(self) -> bytes:
        return struct.pack("<QQ", self.soft, self.hard)


@dataclass(frozen=True, slots=True)
class Rusage:
    """struct rusage: what is counted; the rest is zero in Linux, too."""

    user_ns: int
    system_ns: int
    maximum_resident_kib: int
    minor_faults: int
    major_faults: int

    @classmethod
    def of(cls, usage: Usage) -> Self:
        pages = usage.largest_pages
        return cls(usage.user_ns, usage.system_ns, 4 * pages, usage.minor_faults, usage.major_faults)

    def pack(self) -> bytes:
        return (
            Timeval.from_ns(self.user_ns).pack()
            + Timeval.from_ns(self.system_ns).pack()
            + struct.pack("<14Q", self.maximum_resident_kib, 0, 0, 0, self.minor_faults, self.major_faults, *[0] * 8)
        )


def _limit(task: Task, resource: int) -> Rlimit:
    if not 0 <= resource < RLIM_NLIMITS:
        raise LinuxError(EINVAL, f"resource {resource} is not in 0..{RLIM_NLIMITS - 1}")
    return Rlimit(*task.limits.get(resource))


def _set_limit(task: Task, resource: int, new: Rlimit) -> None:
    if new.soft > new.hard:
        raise LinuxError(EINVAL, f"limit {new.soft} above the hard limit {new.hard}")
    if resource == RLIMIT_NOFILE and new.hard > MAX_OPEN_FILES:
        raise LinuxError(EPERM, f"{new.hard} open files; {MAX_OPEN_FILES} may be")
    if new.hard > task.limits.get(resource)[1] and task.credentials.uid:
        raise LinuxError(EPERM, "only root raises a hard limit")
    task.limits.set(resource, new.soft, new.hard)
    if resource == RLIMIT_NOFILE:
        task.files.limit = new.soft


@syscall(aarch64=261, x86_64=302)
def prlimit64(task: Task, pid: int, resource: UInt, new_rlim: OptionalIn[Rlimit], old_rlim: Out[Rlimit]) -> int:
    found = task if pid == 0 else task.kernel.tasks.get(pid)
    if found is None:
        raise LinuxError(ESRCH, f"process {pid} does not exist")
    before = _limit(found, resource)
    if new_rlim is not None:
        _set_limit(found, resource, new_rlim)
    if old_rlim:
        old_rlim.write(before)
    return 0


@syscall(aarch64=163, x86_64=97)
def getrlimit(task: Task, resource: UInt, rlim: Out[Rlimit]) -> int:
    rlim.write(_limit(task, resource))
    return 0


@syscall(aarch64=164, x86_64=160)
def setrlimit(task: Task, resource: UInt, rlim: In[Rlimit]) -> int:
    _limit(task, resource)
    _set_limit(task, resource, rlim)
    return 0


@syscall(aarch64=165, x86_64=98)
def getrusage(task: Task, who: int, ru: Out[Rusage]) -> int:
    if who not in (RUSAGE_SELF, RUSAGE_CHILDREN, RUSAGE_THREAD):
        raise LinuxError(EINVAL, f"who {who}")
    used = {
        RUSAGE_SELF: task.process.usage,
        RUSAGE_CHILDREN: lambda: task.process.waited_usage,
        RUSAGE_THREAD: task.usage,
    }[who]()
    ru.write(Rusage.of(used))
    return 0
