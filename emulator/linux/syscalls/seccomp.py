"""seccomp(2), and prctl's part of it: a task gives up calls (kernel/seccomp.c)."""

from __future__ import annotations

import struct
from collections.abc import Callable

from emulator.linux.errors import EACCES, EFAULT, EINVAL, ENOMEM, EOPNOTSUPP, ESRCH, LinuxError
from emulator.linux.process.credentials import CAP_SYS_ADMIN
from emulator.linux.process.task import Task
from emulator.linux.seccomp.classic_bpf import INSTRUCTION, MOST_INSTRUCTIONS, ClassicProgram, Malformed
from emulator.linux.seccomp.filters import MODE_FILTER, MODE_STRICT, MOST_ON_A_PATH, Action, Filter, Seccomp
from emulator.linux.structures import U32
from emulator.linux.syscalls.table import Address, Support, UInt, syscall

# uapi/linux/seccomp.h
SECCOMP_SET_MODE_STRICT, SECCOMP_SET_MODE_FILTER, SECCOMP_GET_ACTION_AVAIL, SECCOMP_GET_NOTIF_SIZES = range(4)
TSYNC, LOG, SPEC_ALLOW, NEW_LISTENER, TSYNC_ESRCH, WAIT_KILLABLE_RECV = (1 << bit for bit in range(6))
FLAGS = TSYNC | LOG | SPEC_ALLOW | NEW_LISTENER | TSYNC_ESRCH | WAIT_KILLABLE_RECV
SOCK_FPROG = struct.Struct("<H6xQ")  # len, filter
NOTIFICATION_SIZES = struct.pack("<3H", 80, 24, 64)  # struct seccomp_notif, seccomp_notif_resp, seccomp_data
MASK = (1 << 32) - 1
NOTE = "no notification of another process (SECCOMP_FILTER_FLAG_NEW_LISTENER)"


def _check_change(task: Task, mode: int) -> None:
    """seccomp_may_assign_mode()"""
    if task.seccomp is not None and task.seccomp.mode != mode:
        raise LinuxError(EINVAL, f"seccomp mode {task.seccomp.mode} does not become {mode}")


def _set_strict(task: Task, flags: int, address: int) -> int:
    if flags or address:
        raise LinuxError(EINVAL, "SECCOMP_SET_MODE_STRICT has no flags or arguments")
    _check_change(task, MODE_STRICT)
    task.seccomp = Seccomp(MODE_STRICT)
    return 0


def _program(task: Task, address: int) -> ClassicProgram:
    """Of a struct sock_fprog."""
    length, instructions = SOCK_FPROG.unpack(task.mm.read(address, SOCK_FPROG.size))
    if not 0 < length <= MOST_INSTRUCTIONS:
        raise LinuxError(EINVAL, f"a filter of {length} instructions; there are 1 to {MOST_INSTRUCTIONS}")
    if not task.no_new_privileges and not task.credentials.has(CAP_SYS_ADMIN):
        raise LinuxError(EACCES, "a filter needs no_new_privs or CAP_SYS_ADMIN")
    if not instructions:
        raise LinuxError(EFAULT, "no instructions")
    try:
        return ClassicProgram(task.mm.read(instructions, length * INSTRUCTION.size))
    except Malformed as error:
        raise LinuxError(EINVAL, f"seccomp filter: {error}") from None


def _keeps_from_sync(task: Task, thread: Task) -> bool:
    """Whether the filters of another thread are not those of `task`, or some of them (seccomp_can_sync_threads)."""
    own = thread.seccomp
    if own is None:
        return False
    if own.mode != MODE_FILTER or task.seccomp is None:
        return True
    return own.filter is not None and own.filter not in task.seccomp.filters()


def _set_filter(task: Task, flags: int, address: int) -> int:
    """seccomp_set_mode_filter(): 0, or with TSYNC the thread that is in the way."""
    if flags & ~FLAGS:
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    if flags & NEW_LISTENER:
        task.kernel.name_once("seccomp: SECCOMP_FILTER_FLAG_NEW_LISTENER is not modelled: EINVAL")
        raise LinuxError(EINVAL, "SECCOMP_FILTER_FLAG_NEW_LISTENER")
    if flags & WAIT_KILLABLE_RECV:
        raise LinuxError(EINVAL, "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV is of a listener")
    program = _program(task, address)
    _check_change(task, MODE_FILTER)
    before = task.seccomp
    if program.length + (0 if before is None else before.cost()) > MOST_ON_A_PATH:
        raise LinuxError(ENOMEM, f"filters of more than {MOST_ON_A_PATH} instructions")
    others = [thread for thread in task.process.threads if thread is not task] if flags & TSYNC else []
    for thread in others:
        if _keeps_from_sync(task, thread):
            if flags & TSYNC_ESRCH:
                raise LinuxError(ESRCH, f"thread {thread.tid} has other filters")
            return thread.tid
    own = Seccomp(MODE_FILTER, Filter(program, None if before is None else before.filter))
    task.seccomp = own
    for thread in others:
        thread.seccomp = own
        thread.no_new_privileges |= task.no_new_privileges
    return 0


def _is_available(task: Task, flags: int, address: int) -> int:
    if flags:
        raise LinuxError(EINVAL, "SECCOMP_GET_ACTION_AVAIL has no flags")
    action = U32.unpack(task.mm.read(address, U32.SIZE)).value
    if action not in {one.value & MASK for one in Action}:
        raise LinuxError(EOPNOTSUPP, f"action {action:#x}")
    return 0


def _sizes(task: Task, flags: int, address: int) -> int:
    if flags:
        raise LinuxError(EINVAL, "SECCOMP_GET_NOTIF_SIZES has no flags")
    task.mm.write(address, NOTIFICATION_SIZES)
    return 0


OPERATIONS: dict[int, Callable[[Task, int, int], int]] = {
    SECCOMP_SET_MODE_STRICT: _set_strict,
    SECCOMP_SET_MODE_FILTER: _set_filter,
    SECCOMP_GET_ACTION_AVAIL: _is_available,
    SECCOMP_GET_NOTIF_SIZES: _sizes,
}


@syscall(aarch64=277, x86_64=317, support=Support.PARTIAL, note=NOTE)
def seccomp(task: Task, op: UInt, flags: UInt, uargs: Address) -> int:
    operation = OPERATIONS.get(op)
    if operation is None:
        raise LinuxError(EINVAL, f"seccomp operation {op}")
    return operation(task, flags, uargs)


def set_mode(task: Task, mode: int, address: int) -> int:
    """PR_SET_SECCOMP"""
    if mode == MODE_STRICT:
        return _set_strict(task, 0, 0)
    if mode == MODE_FILTER:
        return _set_filter(task, 0, address)
    raise LinuxError(EINVAL, f"PR_SET_SECCOMP {mode}")
