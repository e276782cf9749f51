"""Threads: what the kernel keeps for each, and barriers between them."""

from __future__ import annotations

from emulator.linux.errors import EINVAL, ENOSYS, EPERM, ESRCH, LinuxError
from emulator.linux.futexes import ROBUST_LIST_SIZE
from emulator.linux.structures import U64
from emulator.linux.syscalls.table import Address, Out, Size, Support, UInt, syscall
from emulator.linux.task import Task


@syscall(aarch64=96, x86_64=218)
def set_tid_address(task: Task, address: Address) -> int:
    task.clear_child_tid = address
    return task.tid


@syscall(aarch64=99, x86_64=273)
def set_robust_list(task: Task, head: Address, length: Size) -> int:
    if length != ROBUST_LIST_SIZE:
        raise LinuxError(EINVAL, f"a robust list head of {length} bytes; it has {ROBUST_LIST_SIZE}")
    task.robust_list = head, length
    return 0


@syscall(aarch64=100, x86_64=274)
def get_robust_list(task: Task, tid: int, head: Out[U64], length: Out[U64]) -> int:
    target = task.kernel.tasks.get(tid) if tid else task
    if target is None:
        raise LinuxError(ESRCH, f"thread {tid} does not exist")
    length.write(U64(ROBUST_LIST_SIZE))
    head.write(U64(target.robust_list[0]))
    return 0


@syscall(aarch64=293, x86_64=334, support=Support.REFUSED, note="as a kernel without it: libc then asks getcpu")
def rseq(task: Task, area: Address, length: UInt, flags: int, signature: UInt) -> int:
    raise LinuxError(ENOSYS, "rseq")


# uapi/linux/membarrier.h: command -> the registration that it needs
MEMBARRIER_QUERY, MEMBARRIER_GET_REGISTRATIONS = 0, 512
MEMBARRIER_GLOBAL, MEMBARRIER_GLOBAL_EXPEDITED, MEMBARRIER_REGISTER_GLOBAL_EXPEDITED = 1, 2, 4
MEMBARRIER_PRIVATE_EXPEDITED, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED = 8, 16
MEMBARRIER_PRIVATE_SYNC_CORE, MEMBARRIER_REGISTER_PRIVATE_SYNC_CORE = 32, 64
NEEDED_REGISTRATIONS = {
    MEMBARRIER_GLOBAL: 0,
    MEMBARRIER_GLOBAL_EXPEDITED: 0,
    MEMBARRIER_PRIVATE_EXPEDITED: MEMBARRIER_REGISTER_PRIVATE_EXPEDITED,
    MEMBARRIER_PRIVATE_SYNC_CORE: MEMBARRIER_REGISTER_PRIVATE_SYNC_CORE,
}
REGISTRATIONS = (
    MEMBARRIER_REGISTER_GLOBAL_EXPEDITED,
    MEMBARRIER_REGISTER_PRIVATE_EXPEDITED,
    MEMBARRIER_REGISTER_PRIVATE_SYNC_CORE,
)
SUPPORTED = sum(NEEDED_REGISTRATIONS) + sum(REGISTRATIONS)


@syscall(aarch64=283, x86_64=324, support=Support.PARTIAL, note="without those for rseq, as a kernel without it")
def membarrier(task: Task, command: int, flags: UInt, cpu: int) -> int:
    """While the kernel works no CPU executes, and what one wrote all see: every barrier has been passed."""
    if flags:
        raise LinuxError(EINVAL, f"membarrier flags {flags:#x}")
    if command == MEMBARRIER_QUERY:
        return SUPPORTED
    if command == MEMBARRIER_GET_REGISTRATIONS:
        return task.mm.barriers
    if command in REGISTRATIONS:
        task.mm.barriers |= command
        return 0
    needed = NEEDED_REGISTRATIONS.get(command)
    if needed is None:
        raise LinuxError(EINVAL, f"membarrier command {command}")
    if needed & ~task.mm.barriers:
        raise LinuxError(EPERM, f"membarrier command {command} without its registration {needed}")
    return 0
