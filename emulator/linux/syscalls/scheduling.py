"""Scheduling: CPUs, policies and priorities of tasks."""

from __future__ import annotations

import struct
from enum import IntEnum

from emulator.linux.errors import E2BIG, EINVAL, ENOSYS, ESRCH, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.sched.policies import (
    MOST_REAL_TIME_PRIORITY,
    POLICIES,
    REAL_TIME,
    ROUND_ROBIN_NS,
    SCHED_DEADLINE,
    SCHED_RR,
)
from emulator.linux.structures import U32, Timespec
from emulator.linux.syscalls.table import Address, In, Out, Support, UInt, ULong, syscall

CPU_MASK_BYTES = 8  # as a kernel for up to 64 CPUs has it
ATTR_SIZE = 56  # struct sched_attr, version 1
ATTR_MIN_SIZE = 48


class PriorityOf(IntEnum):
    """PRIO_* of getpriority(2)."""

    PROCESS = 0
    GROUP = 1
    USER = 2


def _find(task: Task, pid: int) -> Task:
    if pid < 0:
        raise LinuxError(EINVAL, f"process {pid}")
    found = task if pid == 0 else task.kernel.tasks.get(pid)
    if found is None:
        raise LinuxError(ESRCH, f"process {pid} does not exist")
    return found


@syscall(aarch64=124, x86_64=24)
def sched_yield(task: Task) -> int:
    task.kernel.dispatcher.yield_(task)
    return 0


@syscall(aarch64=123, x86_64=204)
def sched_getaffinity(task: Task, pid: int, len_: UInt, user_mask_ptr: Address) -> int:
    cpus = len(task.kernel.cpus)
    if len_ * 8 < cpus or len_ % 8:
        raise LinuxError(EINVAL, f"a mask of {len_} bytes for {cpus} CPUs")
    found = _find(task, pid)
    len_ = min(len_, CPU_MASK_BYTES)
    task.mm.write(user_mask_ptr, found.affinity.to_bytes(CPU_MASK_BYTES, "little")[:len_])
    return len_


@syscall(aarch64=122, x86_64=203)
def sched_setaffinity(task: Task, pid: int, len_: UInt, user_mask_ptr: Address) -> int:
    wanted = int.from_bytes(task.mm.read(user_mask_ptr, min(len_, CPU_MASK_BYTES)), "little")
    found = _find(task, pid)
    allowed = wanted & ((1 << len(task.kernel.cpus)) - 1)
    if not allowed:
        raise LinuxError(EINVAL, f"mask {wanted:#x} holds no CPU of this machine")
    task.kernel.dispatcher.set_affinity(found, allowed)
    return 0


@syscall(aarch64=168, x86_64=309)
def getcpu(task: Task, cpup: Out[U32], nodep: Out[U32], unused: Address) -> int:
    if cpup:
        cpup.write(U32(task.cpu.number))
    if nodep:
        nodep.write(U32(0))
    return 0


@syscall(aarch64=120, x86_64=145)
def sched_getscheduler(task: Task, pid: int) -> int:
    return _find(task, pid).policy


RESET_ON_FORK = 0x4000_0000  # SCHED_RESET_ON_FORK in a policy
FLAG_RESET_ON_FORK, FLAG_KEEP_POLICY, FLAG_KEEP_PARAMS = 1, 8, 16  # SCHED_FLAG_* of sched_attr
KNOWN_FLAGS = FLAG_RESET_ON_FORK | FLAG_KEEP_POLICY | FLAG_KEEP_PARAMS
MOST_NICE, LEAST_NICE = -20, 19


def _set_policy(task: Task, policy: int, priority: int) -> int:
    if policy not in POLICIES or policy == SCHED_DEADLINE:
        raise LinuxError(EINVAL, f"policy {policy}")
    if (policy in REAL_TIME) != (1 <= priority <= MOST_REAL_TIME_PRIORITY) or (policy not in REAL_TIME and priority):
        raise LinuxError(EINVAL, f"priority {priority} with policy {policy}")
    task.policy, task.priority = policy, priority
    task.kernel.dispatcher.reclassify(task)
    return 0


@syscall(aarch64=119, x86_64=144)
def sched_setscheduler(task: Task, pid: int, policy: int, param: In[U32]) -> int:
    return _set_policy(_find(task, pid), policy & ~RESET_ON_FORK, param.value)


@syscall(aarch64=121, x86_64=143)
def sched_getparam(task: Task, pid: int, param: Out[U32]) -> int:
    param.write(U32(_find(task, pid).priority))
    return 0


@syscall(aarch64=118, x86_64=142)
def sched_setparam(task: Task, pid: int, param: In[U32]) -> int:
    found = _find(task, pid)
    return _set_policy(found, found.policy, param.value)


@syscall(aarch64=275, x86_64=315)
def sched_getattr(task: Task, pid: int, uattr: Address, usize: UInt, flags: UInt) -> int:
    if not uattr or flags or not ATTR_MIN_SIZE <= usize <= 4096:
        raise LinuxError(EINVAL, f"sched_attr of {usize} bytes, flags {flags:#x}")
    found = _find(task, pid)
    used = min(usize, ATTR_SIZE)
    data = struct.pack("<IIQiIQQQII", used, found.policy, 0, found.nice, found.priority, 0, 0, 0, 0, 1024)
    task.mm.write(uattr, data[:used])
    return 0


@syscall(aarch64=274, x86_64=314)
def sched_setattr(task: Task, pid: int, uattr: Address, flags: UInt) -> int:
    size = task.mm.read_u32(uattr) or ATTR_MIN_SIZE
    if size < ATTR_MIN_SIZE or size > 4096:
        raise LinuxError(E2BIG, f"sched_attr of {size} bytes")
    _, policy, given_flags, nice, priority = struct.unpack("<IIQiI", task.mm.read(uattr, 24))
    if flags or given_flags & ~KNOWN_FLAGS:
        raise LinuxError(EINVAL, f"sched_attr with flags {flags or given_flags:#x}")
    found = _find(task, pid)
    if given_flags & FLAG_KEEP_POLICY:
        policy = found.policy
    if given_flags & FLAG_KEEP_PARAMS:
        nice, priority = found.nice, found.priority
    if policy not in REAL_TIME:
        found.nice = max(MOST_NICE, min(nice, LEAST_NICE))
    return _set_policy(found, policy, priority)


def _priority_range(policy: int) -> tuple[int, int]:
    if policy not in POLICIES:
        raise LinuxError(EINVAL, f"policy {policy}")
    return (1, MOST_REAL_TIME_PRIORITY) if policy in REAL_TIME else (0, 0)


@syscall(aarch64=125, x86_64=146)
def sched_get_priority_max(task: Task, policy: int) -> int:
    return _priority_range(policy)[1]


@syscall(aarch64=126, x86_64=147)
def sched_get_priority_min(task: Task, policy: int) -> int:
    return _priority_range(policy)[0]


@syscall(aarch64=127, x86_64=148)
def sched_rr_get_interval(task: Task, pid: int, interval: Out[Timespec]) -> int:
    found = _find(task, pid)
    interval.write(Timespec.from_ns(ROUND_ROBIN_NS if found.policy == SCHED_RR else 0))
    return 0


def _nice_targets(task: Task, which: int, who: int) -> list[Task]:
    """The threads that getpriority(2) is about: 0 is the caller's own thread, group or user."""
    tasks = [other for other in task.kernel.tasks.values() if other.exit_code is None]
    match which:
        case PriorityOf.PROCESS:  # a thread
            found = [other for other in tasks if other.tid == (who or task.tid)]
        case PriorityOf.GROUP:
            found = [other for other in tasks if other.pgid == (who or task.pgid)]
        case PriorityOf.USER:
            found = [other for other in tasks if other.credentials.uid == (who or task.credentials.uid)]
        case _:
            raise LinuxError(EINVAL, f"which {which}")
    if not found:
        raise LinuxError(ESRCH, f"nobody is {who}")
    return found


@syscall(aarch64=141, x86_64=140)
def getpriority(task: Task, which: int, who: int) -> int:
    """The system call gives 20 less the nice value, so that no result looks like an error."""
    return max(20 - other.nice for other in _nice_targets(task, which, who))


@syscall(aarch64=140, x86_64=141)
def setpriority(task: Task, which: int, who: int, niceval: int) -> int:
    for other in _nice_targets(task, which, who):
        other.nice = max(MOST_NICE, min(niceval, LEAST_NICE))
        task.kernel.dispatcher.reclassify(other)
    return 0


# ---- NUMA: a kernel without CONFIG_NUMA has none of these

NO_NUMA = "as a kernel without NUMA: ENOSYS"


@syscall(aarch64=236, x86_64=239, support=Support.REFUSED, note=NO_NUMA)
def get_mempolicy(task: Task, policy: Address, nmask: Address, maxnode: Address, addr: Address, flags: Address) -> int:
    raise LinuxError(ENOSYS, NO_NUMA)


@syscall(aarch64=237, x86_64=238, support=Support.REFUSED, note=NO_NUMA)
def set_mempolicy(task: Task, mode: int, nmask: Address, maxnode: Address) -> int:
    raise LinuxError(ENOSYS, NO_NUMA)


@syscall(aarch64=235, x86_64=237, support=Support.REFUSED, note=NO_NUMA)
def mbind(task: Task, start: ULong, len_: ULong, mode: ULong, nmask: Address, maxnode: ULong, flags: UInt) -> int:
    raise LinuxError(ENOSYS, NO_NUMA)
