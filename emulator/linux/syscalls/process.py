"""Processes: their end, their program, what prctl says about them. More than one task is not modelled yet."""

from __future__ import annotations

from collections.abc import Callable

from emulator.arch.x86_64 import FS_BASE, GS_BASE
from emulator.linux.errors import (
    E2BIG,
    EAGAIN,
    ECHILD,
    EINTR,
    EINVAL,
    ENODEV,
    ENOENT,
    ENOSYS,
    EPERM,
    ERESTARTSYS,
    ESRCH,
    ETIMEDOUT,
    LinuxError,
)
from emulator.linux.limits import MAX_ARG_STRLEN, RLIMIT_STACK, argument_limit
from emulator.linux.signal import NSIG
from emulator.linux.structures import U32, U64, Timespec
from emulator.linux.syscalls.at import AT_EMPTY_PATH, AT_FDCWD
from emulator.linux.syscalls.table import Address, Out, Path, Size, Support, UInt, ULong, syscall
from emulator.linux.task import COMM_LENGTH, Task

ROBUST_LIST_SIZE = 24  # sizeof(struct robust_list_head)


@syscall(aarch64=93, x86_64=60)
def exit(task: Task, status: int) -> None:
    """The only thread of its process: the process ends, too."""
    task.kernel.exit_group(task, (status & 0xFF) << 8)


@syscall(aarch64=94, x86_64=231)
def exit_group(task: Task, status: int) -> None:
    task.kernel.exit_group(task, (status & 0xFF) << 8)


@syscall(aarch64=221, x86_64=59, support=Support.PARTIAL, note="for the machine's one process")
def execve(task: Task, path: Path, argv: Address, environment: Address) -> None:
    if not path:
        raise LinuxError(ENOENT, "an empty path")
    _execute(task, path, argv, environment)


@syscall(aarch64=281, x86_64=322, support=Support.PARTIAL, note="for the machine's one process")
def execveat(task: Task, directory: int, path: Path, argv: Address, environment: Address, flags: int) -> None:
    if not path:
        if not flags & AT_EMPTY_PATH:
            raise LinuxError(ENOENT, "an empty path")
        path = task.files.get(directory).path
    elif not path.startswith("/") and directory != AT_FDCWD:
        path = f"{task.files.get(directory).path}/{path}"
    _execute(task, path, argv, environment)


def _execute(task: Task, path: str, argv: int, environment: int) -> None:
    limit = argument_limit(task.limits.soft(RLIMIT_STACK))
    task.kernel.execute(task, path, _strings(task, argv, limit), _strings(task, environment, limit))


def _strings(task: Task, address: int, limit: int) -> list[bytes]:
    """A vector of strings that ends with NULL; NULL itself is an empty one, as in Linux. Not read beyond `limit`."""
    strings: list[bytes] = []
    read_u64, read_string = task.mm.read_u64, task.mm.read_string
    while address and (pointer := read_u64(address)):
        string = read_string(pointer, MAX_ARG_STRLEN)
        limit -= len(string) + 9  # with the NUL and the pointer
        if len(string) >= MAX_ARG_STRLEN or limit < 0:
            raise LinuxError(E2BIG, f"arguments or environment are too long at {address:#x}")
        strings.append(string)
        address += 8
    return strings


def _no_more_tasks(task: Task, call: str) -> int:
    task.kernel.name_once(f"{call}: more than one process or thread is not modelled yet: ENOSYS")
    raise LinuxError(ENOSYS, call)


NOT_YET = "more than one process or thread is not modelled yet: ENOSYS"


@syscall(aarch64=220, x86_64=56, support=Support.REFUSED, note=NOT_YET)
def clone(task: Task, flags: ULong, stack: Address, parent_tid: Address, a3: ULong, a4: ULong) -> int:
    return _no_more_tasks(task, "clone")


@syscall(aarch64=435, x86_64=435, support=Support.REFUSED, note=NOT_YET)
def clone3(task: Task, arguments: Address, size: Size) -> int:
    """Not named: libraries fall back to clone."""
    raise LinuxError(ENOSYS, "clone3")


@syscall(x86_64=57, support=Support.REFUSED, note=NOT_YET)
def fork(task: Task) -> int:
    return _no_more_tasks(task, "fork")


@syscall(x86_64=58, support=Support.REFUSED, note=NOT_YET)
def vfork(task: Task) -> int:
    return _no_more_tasks(task, "vfork")


@syscall(aarch64=260, x86_64=61)
def wait4(task: Task, pid: int, status: Address, options: int, usage: Address) -> int:
    raise LinuxError(ECHILD, "there are no children")


@syscall(aarch64=95, x86_64=247)
def waitid(task: Task, kind: int, pid: int, info: Address, options: int, usage: Address) -> int:
    raise LinuxError(ECHILD, "there are no children")


# ---- threads: what one thread needs


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
    if tid not in (0, task.tid):
        raise LinuxError(ESRCH, f"thread {tid} does not exist")
    length.write(U64(ROBUST_LIST_SIZE))
    head.write(U64(task.robust_list[0]))
    return 0


@syscall(aarch64=293, x86_64=334, support=Support.REFUSED, note="as a kernel without it: libc then asks getcpu")
def rseq(task: Task, area: Address, length: UInt, flags: int, signature: UInt) -> int:
    raise LinuxError(ENOSYS, "rseq")


FUTEX_WAIT, FUTEX_WAKE, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP = 0, 1, 3, 4, 5
FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET = 9, 10
FUTEX_COMMAND = 0x7F
FUTEX_CLOCK_REALTIME = 256


@syscall(aarch64=98, x86_64=202, support=Support.PARTIAL, note="for one thread: nobody waits, nobody wakes; no PI")
def futex(task: Task, address: Address, operation: int, value: UInt, timeout: Address, other: Address, v3: UInt) -> int:
    command = operation & FUTEX_COMMAND
    if command in (FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_REQUEUE, FUTEX_WAKE_OP):
        if address & 3:
            raise LinuxError(EINVAL, f"futex at {address:#x}")
        return 0
    if command not in (FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_CMP_REQUEUE):
        task.kernel.name_once(f"futex operation {command} is not modelled: ENOSYS")
        raise LinuxError(ENOSYS, f"futex operation {command}")
    if address & 3 or (command == FUTEX_WAIT_BITSET and v3 == 0):
        raise LinuxError(EINVAL, f"futex at {address:#x}")
    if command == FUTEX_CMP_REQUEUE:
        if task.mm.read_u32(address) != v3:
            raise LinuxError(EAGAIN, "the futex has changed")
        return 0
    wake_ns = _futex_deadline(task, command, operation, timeout)
    if task.mm.read_u32(address) != value:
        raise LinuxError(EAGAIN, "the futex has changed")
    if task.kernel.sleep_until(task, wake_ns):
        raise LinuxError(ETIMEDOUT, "nobody woke it")
    raise LinuxError(ERESTARTSYS if wake_ns is None else EINTR, "a signal came")


def _futex_deadline(task: Task, command: int, operation: int, timeout: int) -> int | None:
    """When FUTEX_WAIT gives up, on the machine's clock: relative for WAIT, absolute for WAIT_BITSET."""
    if not timeout:
        return None
    ns = Timespec.unpack(task.mm.read(timeout, Timespec.SIZE)).ns()
    now = task.clock.elapsed_ns()
    if command == FUTEX_WAIT:
        return now + ns
    clock_now = task.clock.realtime_ns() if operation & FUTEX_CLOCK_REALTIME else task.clock.monotonic_ns()
    return now + ns - clock_now


# ---- arch_prctl (x86)

ARCH_SET_GS, ARCH_SET_FS, ARCH_GET_FS, ARCH_GET_GS = 0x1001, 0x1002, 0x1003, 0x1004
ARCH_GET_CPUID, ARCH_SET_CPUID = 0x1011, 0x1012
_SET_BASE = {ARCH_SET_FS: FS_BASE, ARCH_SET_GS: GS_BASE}
_GET_BASE = {ARCH_GET_FS: FS_BASE, ARCH_GET_GS: GS_BASE}


@syscall(x86_64=158, support=Support.PARTIAL, note="FS and GS base; no CPUID faulting, no shadow stacks")
def arch_prctl(task: Task, code: int, address: Address) -> int:
    core = task.cpu.core
    if code in _SET_BASE:
        if address >= task.mm.layout.task_size:
            raise LinuxError(EPERM, f"a base of {address:#x} is not the user's")
        core.write_register(_SET_BASE[code], address)
        return 0
    if code in _GET_BASE:
        task.mm.write(address, core.read_register(_GET_BASE[code]).to_bytes(8, "little"))
        return 0
    if code == ARCH_GET_CPUID:
        return 1
    if code == ARCH_SET_CPUID:
        raise LinuxError(ENODEV, "CPUID faulting")
    raise LinuxError(EINVAL, f"arch_prctl {code:#x}")


# ---- prctl

PrctlHandler = Callable[[Task, int, int], int]
PR_SET_NAME, PR_GET_NAME = 15, 16
LAST_CAPABILITY = 40  # CAP_CHECKPOINT_RESTORE


def _set_death_signal(task: Task, signal: int, _: int) -> int:
    if not 0 <= signal <= NSIG:
        raise LinuxError(EINVAL, f"signal {signal}")
    task.parent_death_signal = signal
    return 0


def _set_dumpable(task: Task, value: int, _: int) -> int:
    if value not in (0, 1):
        raise LinuxError(EINVAL, f"dumpable {value}")
    task.dumpable = value
    return 0


def _set_name(task: Task, address: int, _: int) -> int:
    task.kernel.rename(task, task.mm.read_string(address, COMM_LENGTH).decode("utf-8", "surrogateescape"))
    return 0


def _get_name(task: Task, address: int, _: int) -> int:
    task.mm.write(address, task.comm.encode("utf-8", "surrogateescape").ljust(16, b"\0"))
    return 0


def _has_capability(task: Task, capability: int, _: int) -> int:
    if not 0 <= capability <= LAST_CAPABILITY:
        raise LinuxError(EINVAL, f"capability {capability}")
    return 1


def _set_timer_slack(task: Task, ns: int, _: int) -> int:
    task.timer_slack_ns = ns or 50_000
    return 0


def _set_no_new_privileges(task: Task, value: int, other: int) -> int:
    if value != 1 or other:
        raise LinuxError(EINVAL, f"no_new_privs {value}")
    task.no_new_privileges = True
    return 0


def _write_u32(value: Callable[[Task], int]) -> PrctlHandler:
    def write(task: Task, address: int, _: int) -> int:
        task.mm.write(address, U32(value(task)).pack())
        return 0

    return write


def _get_tid_address(task: Task, address: int, _: int) -> int:
    task.mm.write(address, task.clear_child_tid.to_bytes(8, "little"))
    return 0


def _zero(task: Task, _: int, __: int) -> int:
    """A state that this machine has and cannot leave: asked for or set, it is 0."""
    return 0


PRCTL: dict[int, PrctlHandler] = {  # uapi/linux/prctl.h
    1: _set_death_signal,
    2: _write_u32(lambda task: task.parent_death_signal),
    3: lambda task, _, __: task.dumpable,
    4: _set_dumpable,
    7: _zero,  # PR_GET_KEEPCAPS
    PR_SET_NAME: _set_name,
    PR_GET_NAME: _get_name,
    21: _zero,  # PR_GET_SECCOMP
    23: _has_capability,  # PR_CAPBSET_READ
    25: _write_u32(lambda task: 1),  # PR_GET_TSC: PR_TSC_ENABLE
    27: _zero,  # PR_GET_SECUREBITS
    29: _set_timer_slack,
    30: lambda task, _, __: task.timer_slack_ns,
    36: _zero,  # PR_SET_CHILD_SUBREAPER: there are no children
    37: _write_u32(lambda task: 0),
    38: _set_no_new_privileges,
    39: lambda task, _, __: int(task.no_new_privileges),
    40: _get_tid_address,
    41: _zero,  # PR_SET_THP_DISABLE: there are no huge pages
    42: _zero,
}


@syscall(aarch64=167, x86_64=157, support=Support.PARTIAL, note="an option that is not modelled is EINVAL, and named")
def prctl(task: Task, option: int, a2: ULong, a3: ULong, a4: ULong, a5: ULong) -> int:
    handler = PRCTL.get(option)
    if handler is None:
        task.kernel.name_once(f"prctl option {option} is not modelled: EINVAL")
        raise LinuxError(EINVAL, f"prctl option {option}")
    return handler(task, a2, a3)


@syscall(aarch64=92, x86_64=135, support=Support.PARTIAL, note="PER_LINUX only; flags are kept, without effect")
def personality(task: Task, persona: UInt) -> int:
    before = task.personality
    if persona != 0xFFFF_FFFF:
        if persona & 0xFF:
            raise LinuxError(EINVAL, f"personality {persona:#x}: only Linux' own is modelled")
        task.personality = persona
    return before
