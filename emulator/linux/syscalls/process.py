"""Processes: their making, their end and who waits for it, their program, what their one thread needs."""

from __future__ import annotations

from collections.abc import Callable

from emulator.linux.errors import (
    E2BIG,
    EAGAIN,
    ECHILD,
    EINTR,
    EINVAL,
    ENOENT,
    ENOSYS,
    ERESTARTSYS,
    ESRCH,
    ETIMEDOUT,
    LinuxError,
)
from emulator.linux.lifecycle import (
    CLONE_CHILD_CLEARTID,
    CLONE_CHILD_SETTID,
    CLONE_PARENT_SETTID,
    CLONE_SETTLS,
    CLONE_VFORK,
    CLONE_VM,
)
from emulator.linux.limits import MAX_ARG_STRLEN, RLIMIT_STACK, argument_limit
from emulator.linux.signal import NSIG, SIGCHLD
from emulator.linux.structures import U32, U64, Timespec
from emulator.linux.syscalls.at import AT_EMPTY_PATH, AT_FDCWD
from emulator.linux.syscalls.limits import Rusage
from emulator.linux.syscalls.table import Address, Out, Path, Size, Support, UInt, ULong, syscall
from emulator.linux.task import CloneRequest, Process, Task
from emulator.linux.waiting import Sleep, Sleeping, sleep_until, wait_until

ROBUST_LIST_SIZE = 24  # sizeof(struct robust_list_head)


@syscall(aarch64=93, x86_64=60)
def exit(task: Task, status: int) -> None:
    task.kernel.lifecycle.end_thread(task, (status & 0xFF) << 8)


@syscall(aarch64=94, x86_64=231)
def exit_group(task: Task, status: int) -> None:
    task.kernel.exit_group(task, (status & 0xFF) << 8)


@syscall(aarch64=221, x86_64=59, support=Support.PARTIAL, note="for processes of one thread")
def execve(task: Task, path: Path, argv: Address, environment: Address) -> None:
    if not path:
        raise LinuxError(ENOENT, "an empty path")
    _execute(task, path, argv, environment)


@syscall(aarch64=281, x86_64=322, support=Support.PARTIAL, note="for processes of one thread")
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


CSIGNAL = 0xFF  # of the flags: the signal at the child's end
KNOWN_FLAGS = CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_SETTLS
FORKS_ONLY = "processes; no threads, no namespaces: ENOSYS, named"


def _clone(task: Task, request: CloneRequest) -> int | Sleeping[int]:
    other = request.flags & ~KNOWN_FLAGS
    shared = request.flags & (CLONE_VM | CLONE_VFORK)
    if other or shared == CLONE_VM:
        task.kernel.name_once(f"clone with flags {request.flags:#x} is not modelled: ENOSYS")
        raise LinuxError(ENOSYS, f"clone flags {request.flags:#x}")
    if request.exit_signal > NSIG:
        raise LinuxError(EINVAL, f"signal {request.exit_signal}")
    child = task.kernel.lifecycle.clone(task, request)
    return _until_released(child) if request.flags & CLONE_VFORK else child.tid


def _until_released(child: Task) -> Sleeping[int]:
    """vfork(2): the parent goes on when the child has another program or has ended; no signal changes that."""
    mm = child.mm
    while child.exit_code is None and child.mm is mm:
        yield Sleep((child.process.mm_released,), None, "vfork", interruptible=False)
    return child.tid


@syscall(aarch64=220, x86_64=56, support=Support.PARTIAL, note=FORKS_ONLY)
def clone(
    task: Task, flags: ULong, stack: Address, parent_tid: Address, a3: Address, a4: Address
) -> int | Sleeping[int]:
    tls, child_tid = (a3, a4) if task.architecture.clone_tls_first else (a4, a3)
    flags &= 0xFFFF_FFFF
    return _clone(task, CloneRequest(flags & ~CSIGNAL, flags & CSIGNAL, stack, parent_tid, child_tid, tls))


@syscall(aarch64=435, x86_64=435, support=Support.REFUSED, note="as a kernel before 5.3: libraries then ask clone")
def clone3(task: Task, arguments: Address, size: Size) -> int:
    """Not named: libraries fall back to clone."""
    raise LinuxError(ENOSYS, "clone3")


@syscall(x86_64=57)
def fork(task: Task) -> int | Sleeping[int]:
    return _clone(task, CloneRequest(0, SIGCHLD))


@syscall(x86_64=58)
def vfork(task: Task) -> int | Sleeping[int]:
    return _clone(task, CloneRequest(CLONE_VM | CLONE_VFORK, SIGCHLD))


WNOHANG, WUNTRACED, WEXITED, WCONTINUED, WNOWAIT = 1, 2, 4, 8, 0x0100_0000  # uapi/linux/wait.h
WNOTHREAD, WALL, WCLONE = 0x2000_0000, 0x4000_0000, 0x8000_0000
WAIT_OPTIONS = WNOHANG | WUNTRACED | WCONTINUED | WNOTHREAD | WALL | WCLONE


def _children(task: Task, pid: int) -> list[Process]:
    """Those that wait4's first argument is about."""
    children = task.process.children.values()
    if pid > 0:
        return [child for child in children if child.pid == pid]
    if pid == -1:
        return list(children)
    group = -pid or task.pgid
    return [child for child in children if child.pgid == group]


@syscall(aarch64=260, x86_64=61, support=Support.PARTIAL, note="for children that have ended, not stopped ones")
def wait4(task: Task, pid: int, status: Out[U32], options: UInt, usage: Out[Rusage]) -> Sleeping[int]:
    if options & ~WAIT_OPTIONS:
        raise LinuxError(EINVAL, f"wait4 options {options:#x}")
    if pid == -(1 << 31):
        raise LinuxError(ESRCH, "no process group has that number")

    def ended() -> Process | None:
        children = _children(task, pid)
        if not children:
            raise LinuxError(ECHILD, f"there is no child {pid}")
        return next((child for child in children if child.exit_status is not None), None)

    child = ended()
    if child is None and options & WNOHANG:
        return 0
    yield from wait_until(task, lambda: ended() is not None, lambda: (task.process.child_ended,), "wait4")
    child = ended()
    assert child is not None, "it has ended"
    assert child.exit_status is not None, "it has ended"
    used = child.ended_usage + child.waited_usage
    task.kernel.lifecycle.reap(child)
    if status:
        status.write(U32(child.exit_status))
    if usage:
        usage.write(Rusage.of(used))
    return child.pid


@syscall(aarch64=95, x86_64=247, support=Support.REFUSED, note="wait4 is modelled: ENOSYS, named, where a child exists")
def waitid(task: Task, kind: int, pid: int, info: Address, options: int, usage: Address) -> int:
    if not task.process.children:
        raise LinuxError(ECHILD, "there are no children")
    task.kernel.name_once("waitid is not modelled yet: ENOSYS")
    raise LinuxError(ENOSYS, "waitid")


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
FUTEX_OP_SHIFT = 8  # in the operation: the argument is a bit's number
FUTEX_OPERATIONS: tuple[Callable[[int, int], int], ...] = (  # FUTEX_OP_SET, ADD, OR, ANDN, XOR
    lambda old, argument: argument,
    lambda old, argument: old + argument,
    lambda old, argument: old | argument,
    lambda old, argument: old & ~argument,
    lambda old, argument: old ^ argument,
)
FUTEX_COMPARISONS = 6  # FUTEX_OP_CMP_EQ and so on: whom else to wake


@syscall(aarch64=98, x86_64=202, support=Support.PARTIAL, note="for one thread: nobody waits, nobody wakes; no PI")
def futex(
    task: Task, address: Address, operation: int, value: UInt, timeout: Address, other: Address, v3: UInt
) -> int | Sleeping[int]:
    command = operation & FUTEX_COMMAND
    if command in (FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_REQUEUE):
        if address & 3:
            raise LinuxError(EINVAL, f"futex at {address:#x}")
        return 0
    if command == FUTEX_WAKE_OP:
        return _wake_op(task, address, other, v3)
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
    return _futex_wait(task, wake_ns)


def _futex_wait(task: Task, wake_ns: int | None) -> Sleeping[int]:
    if (yield from sleep_until(wake_ns, f"{task.comm}'s futex")):
        raise LinuxError(ETIMEDOUT, "nobody woke it")
    raise LinuxError(ERESTARTSYS if wake_ns is None else EINTR, "a signal came")


def _wake_op(task: Task, address: int, other: int, encoded: int) -> int:
    """Change the word at `other`; then there is nobody to wake. kernel/futex/waitwake.c, futex_atomic_op_inuser."""
    if address & 3 or other & 3:
        raise LinuxError(EINVAL, f"futexes at {address:#x} and {other:#x}")
    operation, comparison = encoded >> 28, encoded >> 24 & 0xF
    argument = (encoded >> 12 & 0xFFF ^ 0x800) - 0x800  # 12 bits with their sign
    if operation & FUTEX_OP_SHIFT:
        operation, argument = operation & ~FUTEX_OP_SHIFT, 1 << (argument & 31)
    if operation >= len(FUTEX_OPERATIONS):
        raise LinuxError(ENOSYS, f"FUTEX_WAKE_OP {operation}")
    old = task.mm.read_u32(other)
    task.mm.write(other, (FUTEX_OPERATIONS[operation](old, argument) & 0xFFFF_FFFF).to_bytes(4, "little"))
    if comparison >= FUTEX_COMPARISONS:
        raise LinuxError(ENOSYS, f"FUTEX_WAKE_OP with comparison {comparison}")
    return 0


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
