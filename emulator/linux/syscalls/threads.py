"""Threads: what the kernel keeps for each, and barriers between them."""

from __future__ import annotations

from emulator.linux.errors import EBUSY, EFAULT, EINVAL, EPERM, ESRCH, LinuxError
from emulator.linux.process.task import Registration, Task
from emulator.linux.sched.futexes import ROBUST_LIST_SIZE
from emulator.linux.sched.restartable import erase, write_cpu
from emulator.linux.structures import U64
from emulator.linux.syscalls.table import Address, Out, Size, UInt, syscall


@syscall(aarch64=96, x86_64=218)
def set_tid_address(task: Task, tidptr: Address) -> int:
    task.clear_child_tid = tidptr
    return task.tid


@syscall(aarch64=99, x86_64=273)
def set_robust_list(task: Task, head: Address, len_: Size) -> int:
    if len_ != ROBUST_LIST_SIZE:
        raise LinuxError(EINVAL, f"a robust list head of {len_} bytes; it has {ROBUST_LIST_SIZE}")
    task.robust_list = head, len_
    return 0


@syscall(aarch64=100, x86_64=274)
def get_robust_list(task: Task, pid: int, head_ptr: Out[U64], len_ptr: Out[U64]) -> int:
    target = task.kernel.tasks.get(pid) if pid else task
    if target is None:
        raise LinuxError(ESRCH, f"thread {pid} does not exist")
    len_ptr.write(U64(ROBUST_LIST_SIZE))
    head_ptr.write(U64(target.robust_list[0]))
    return 0


RSEQ_FLAG_UNREGISTER = 1  # uapi/linux/rseq.h
RSEQ_BYTES = 32  # of struct rseq as it began, and its alignment


@syscall(aarch64=293, x86_64=334)
def rseq(task: Task, rseq: Address, rseq_len: UInt, flags: int, sig: UInt) -> int:
    """rseq(2)"""
    registration = task.rseq
    if registration is not None:
        if (registration.address, registration.length) != (rseq, rseq_len):
            raise LinuxError(EINVAL, f"restartable sequences are registered at {registration.address:#x}")
        if flags & ~RSEQ_FLAG_UNREGISTER:
            raise LinuxError(EINVAL, f"rseq flags {flags:#x}")
        if registration.signature != sig:
            raise LinuxError(EPERM, f"the signature is {registration.signature:#x}")
        if not flags:
            raise LinuxError(EBUSY, "restartable sequences are registered already")
        erase(task, registration)
        task.rseq = None
        return 0
    if flags or rseq_len < RSEQ_BYTES or rseq % RSEQ_BYTES:
        raise LinuxError(EINVAL, f"rseq of {rseq_len} bytes at {rseq:#x}, flags {flags:#x}")
    if rseq > task.mm.layout.task_size - rseq_len:
        raise LinuxError(EFAULT, f"{rseq:#x} is not the user's")
    made = Registration(rseq, rseq_len, sig)
    write_cpu(task, made)
    task.rseq = made
    return 0


# uapi/linux/membarrier.h: command -> the registration that it needs
MEMBARRIER_QUERY, MEMBARRIER_GET_REGISTRATIONS = 0, 512
MEMBARRIER_GLOBAL, MEMBARRIER_GLOBAL_EXPEDITED, MEMBARRIER_REGISTER_GLOBAL_EXPEDITED = 1, 2, 4
MEMBARRIER_PRIVATE_EXPEDITED, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED = 8, 16
MEMBARRIER_PRIVATE_SYNC_CORE, MEMBARRIER_REGISTER_PRIVATE_SYNC_CORE = 32, 64
MEMBARRIER_PRIVATE_RSEQ, MEMBARRIER_REGISTER_PRIVATE_RSEQ = 128, 256
MEMBARRIER_FLAG_CPU = 1
NEEDED_REGISTRATIONS = {
    MEMBARRIER_GLOBAL: 0,
    MEMBARRIER_GLOBAL_EXPEDITED: 0,
    MEMBARRIER_PRIVATE_EXPEDITED: MEMBARRIER_REGISTER_PRIVATE_EXPEDITED,
    MEMBARRIER_PRIVATE_SYNC_CORE: MEMBARRIER_REGISTER_PRIVATE_SYNC_CORE,
    MEMBARRIER_PRIVATE_RSEQ: MEMBARRIER_REGISTER_PRIVATE_RSEQ,
}
REGISTRATIONS = (
    MEMBARRIER_REGISTER_GLOBAL_EXPEDITED,
    MEMBARRIER_REGISTER_PRIVATE_EXPEDITED,
    MEMBARRIER_REGISTER_PRIVATE_SYNC_CORE,
    MEMBARRIER_REGISTER_PRIVATE_RSEQ,
)
SUPPORTED = sum(NEEDED_REGISTRATIONS) + sum(REGISTRATIONS)


@syscall(aarch64=283, x86_64=324)
def membarrier(task: Task, cmd: int, flags: UInt, cpu_id: int) -> int:
    """While the kernel works no CPU executes, and what one wrote all see: every barrier has been passed."""
    if flags and (cmd != MEMBARRIER_PRIVATE_RSEQ or flags != MEMBARRIER_FLAG_CPU):
        raise LinuxError(EINVAL, f"membarrier flags {flags:#x}")
    if cmd == MEMBARRIER_QUERY:
        return SUPPORTED
    if cmd == MEMBARRIER_GET_REGISTRATIONS:
        return task.mm.barriers
    if cmd in REGISTRATIONS:
        task.mm.barriers |= cmd
        return 0
    needed = NEEDED_REGISTRATIONS.get(cmd)
    if needed is None:
        raise LinuxError(EINVAL, f"membarrier command {cmd}")
    if needed & ~task.mm.barriers:
        raise LinuxError(EPERM, f"membarrier command {cmd} without its registration {needed}")
    if cmd == MEMBARRIER_PRIVATE_RSEQ:
        _restart_sequences(task, cpu_id if flags else None)
    return 0


def _restart_sequences(task: Task, cpu: int | None) -> None:
    """Threads of the same memory that are on CPUs begin again what they were in; `cpu`: only on that one."""
    for other in task.kernel.tasks.values():
        on_cpu = other.running_since is not None and (cpu is None or other.cpu.number == cpu)
        if on_cpu and other is not task and other.mm is task.mm and other.rseq is not None:
            other.rseq.stale = True
            task.kernel.dispatcher.interrupt(other)
