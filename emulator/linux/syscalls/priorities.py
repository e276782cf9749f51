"""Priorities of input and output (ioprio_set(2)), and keys of memory protection (pkeys(7)), which this CPU has not."""

from __future__ import annotations

from emulator.linux.errors import EINVAL, ENOSPC, ESRCH, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.syscalls.memory import mprotect
from emulator.linux.syscalls.table import Address, Size, Support, ULong, syscall

IOPRIO_PROCESS, IOPRIO_GROUP, IOPRIO_USER = 1, 2, 3  # uapi/linux/ioprio.h: whose
CLASS_SHIFT = 13
NO_CLASS, REAL_TIME, BEST_EFFORT, IDLE = range(4)
DEFAULT = NO_CLASS << CLASS_SHIFT  # as ioprio_get says it of who has not asked for any
NO_DISK = "nobody waits for a disk: what is set is only shown"


def _meant(task: Task, which: int, who: int) -> list[Task]:
    tasks = [other for other in task.kernel.tasks.values() if other.exit_code is None]
    if which == IOPRIO_PROCESS:
        found = [other for other in tasks if other.tid == (who or task.tid)]
    elif which == IOPRIO_GROUP:
        found = [other for other in tasks if other.pgid == (who or task.pgid)]
    elif which == IOPRIO_USER:
        found = [other for other in tasks if other.credentials.uid == who]
    else:
        raise LinuxError(EINVAL, f"ioprio of {which}")
    if not found:
        raise LinuxError(ESRCH, f"nobody is {who}")
    return found


@syscall(aarch64=30, x86_64=251, support=Support.ACCEPTED, note=NO_DISK)
def ioprio_set(task: Task, which: int, who: int, ioprio: int) -> int:
    kind, level = ioprio >> CLASS_SHIFT, ioprio & (1 << CLASS_SHIFT) - 1
    known = kind in (REAL_TIME, BEST_EFFORT, IDLE) or (kind == NO_CLASS and not level)  # 0..7, and hints above
    if not known or ioprio >> 16:
        raise LinuxError(EINVAL, f"priority {ioprio:#x}")
    for other in _meant(task, which, who):
        other.io_priority = ioprio
    return 0


@syscall(aarch64=31, x86_64=252)
def ioprio_get(task: Task, which: int, who: int) -> int:
    """The best of theirs: the lowest number, where a class has been set."""
    priorities = [other.io_priority for other in _meant(task, which, who)]
    return min((priority for priority in priorities if priority != DEFAULT), default=DEFAULT)


NO_KEYS = "as on a CPU without protection keys: ENOSPC, and no key but -1"


@syscall(aarch64=289, x86_64=330, support=Support.REFUSED, note=NO_KEYS)
def pkey_alloc(task: Task, flags: ULong, init_val: ULong) -> int:
    if flags or init_val & ~3:
        raise LinuxError(EINVAL, f"pkey_alloc({flags:#x}, {init_val:#x})")
    raise LinuxError(ENOSPC, "this CPU has no protection keys")


@syscall(aarch64=290, x86_64=331, support=Support.REFUSED, note=NO_KEYS)
def pkey_free(task: Task, pkey: int) -> int:
    raise LinuxError(EINVAL, f"protection key {pkey}")


@syscall(aarch64=288, x86_64=329, support=Support.PARTIAL, note=NO_KEYS)
def pkey_mprotect(task: Task, start: Address, len_: Size, prot: ULong, pkey: int) -> int:
    if pkey != -1:
        raise LinuxError(EINVAL, f"protection key {pkey}")
    return mprotect(task, start, len_, prot)
