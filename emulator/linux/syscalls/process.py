"""Processes and threads: their making, their end, their program."""

from __future__ import annotations

import struct

from emulator.linux.cgroup.cgroupfs import group_to_join
from emulator.linux.errors import E2BIG, EINVAL, ENOENT, EPERM, LinuxError
from emulator.linux.process.cloning import (
    CLONE_DETACHED,
    CLONE_FILES,
    CLONE_FS,
    CLONE_INTO_CGROUP,
    CLONE_PARENT,
    CLONE_PARENT_SETTID,
    CLONE_PIDFD,
    CLONE_SIGHAND,
    CLONE_SYSVSEM,
    CLONE_THREAD,
    CLONE_VFORK,
    CLONE_VM,
    CSIGNAL,
    NAMESPACES,
    check,
)
from emulator.linux.process.limits import MAX_ARG_STRLEN, RLIMIT_STACK, argument_limit
from emulator.linux.process.task import CloneRequest, FileContext, Task
from emulator.linux.sched.waiting import Sleep, Sleeping
from emulator.linux.signals.signal import NSIG, SIGCHLD
from emulator.linux.syscalls.at import AT_EMPTY_PATH, AT_FDCWD
from emulator.linux.syscalls.process_files import check_pidfd, install_pidfd
from emulator.linux.syscalls.table import Address, Path, Size, Support, UInt, ULong, syscall


@syscall(aarch64=93, x86_64=60)
def exit(task: Task, error_code: int) -> None:
    task.kernel.lifecycle.end_thread(task, (error_code & 0xFF) << 8)


@syscall(aarch64=94, x86_64=231)
def exit_group(task: Task, error_code: int) -> None:
    task.kernel.lifecycle.end_process(task.process, (error_code & 0xFF) << 8)


@syscall(aarch64=221, x86_64=59)
def execve(task: Task, filename: Path, argv: Address, envp: Address) -> None:
    if not filename:
        raise LinuxError(ENOENT, "an empty path")
    _execute(task, filename, argv, envp)


@syscall(aarch64=281, x86_64=322)
def execveat(task: Task, fd: int, filename: Path, argv: Address, envp: Address, flags: int) -> None:
    if not filename:
        if not flags & AT_EMPTY_PATH:
            raise LinuxError(ENOENT, "an empty path")
        filename = task.files.get(fd).path
    elif not filename.startswith("/") and fd != AT_FDCWD:
        filename = f"{task.files.get(fd).path}/{filename}"
    _execute(task, filename, argv, envp)


def _execute(task: Task, path: str, argv: int, environment: int) -> None:
    limit = argument_limit(task.limits.soft(RLIMIT_STACK))
    task.kernel.lifecycle.execute(task, path, _strings(task, argv, limit), _strings(task, environment, limit))


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


def _clone(task: Task, request: CloneRequest) -> int | Sleeping[int]:
    check(task, request)
    check_pidfd(task, request.flags, request.pidfd)
    child = task.kernel.lifecycle.clone(task, request)
    install_pidfd(task, child, request.flags, request.pidfd)
    return _until_released(child) if request.flags & CLONE_VFORK else child.tid


def _until_released(child: Task) -> Sleeping[int]:
    """vfork(2): the parent goes on when the child has another program or has ended; no signal changes that."""
    mm = child.mm
    while child.exit_code is None and child.mm is mm:
        yield Sleep((child.process.mm_released,), None, "vfork", interruptible=False)
    return child.birth_tid


CLONES = "no namespaces, or chosen tids"


@syscall(aarch64=220, x86_64=56, support=Support.PARTIAL, note=CLONES)
def clone(
    task: Task, clone_flags: ULong, newsp: Address, parent_tidptr: Address, a3: Address, a4: Address
) -> int | Sleeping[int]:
    tls, child_tid = (a3, a4) if task.architecture.clone_tls_first else (a4, a3)
    clone_flags &= 0xFFFF_FFFF
    if clone_flags & CLONE_PIDFD and clone_flags & CLONE_PARENT_SETTID:
        raise LinuxError(EINVAL, "clone(2) has one address for the pidfd and the tid")
    return _clone(
        task,
        CloneRequest(
            clone_flags & ~CSIGNAL, clone_flags & CSIGNAL, newsp, parent_tidptr, child_tid, tls, parent_tidptr
        ),
    )


CLONE_ARGS = struct.Struct("<11Q")  # struct clone_args
CLONE_ARGS_SIZES = (64, 4096)  # of the first version, and the largest that is looked at


@syscall(aarch64=435, x86_64=435, support=Support.PARTIAL, note=CLONES)
def clone3(task: Task, uargs: Address, size: Size) -> int | Sleeping[int]:
    if size < CLONE_ARGS_SIZES[0]:
        raise LinuxError(EINVAL, f"clone_args of {size} bytes")
    if size > CLONE_ARGS_SIZES[1]:
        raise LinuxError(E2BIG, f"clone_args of {size} bytes")
    data = task.mm.read(uargs, size)
    if any(data[CLONE_ARGS.size :]):
        raise LinuxError(E2BIG, "clone_args with members that nobody knows")
    fields = CLONE_ARGS.unpack(data[: CLONE_ARGS.size].ljust(CLONE_ARGS.size, b"\0"))
    flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, tids, tid_count, cgroup = fields
    if flags & (CSIGNAL | CLONE_DETACHED) or exit_signal > NSIG or bool(stack) != bool(stack_size):
        raise LinuxError(EINVAL, f"clone3 flags {flags:#x}, signal {exit_signal}, stack {stack:#x}+{stack_size:#x}")
    if stack + stack_size > task.mm.layout.task_size:  # access_ok() in clone3_stack_valid(), kernel/fork.c
        raise LinuxError(EINVAL, f"clone3 stack {stack:#x}+{stack_size:#x}")
    if flags & (CLONE_THREAD | CLONE_PARENT) and exit_signal:
        raise LinuxError(EINVAL, f"clone3 flags {flags:#x} with signal {exit_signal}")
    if tids or tid_count:
        task.kernel.name_once("clone3 with chosen tids is not modelled: EINVAL")
        raise LinuxError(EINVAL, "chosen tids")
    into = None
    if flags & CLONE_INTO_CGROUP:
        if size < CLONE_ARGS.size or cgroup >> 31:
            raise LinuxError(EINVAL, f"CLONE_INTO_CGROUP: descriptor {cgroup} in clone_args of {size} bytes")
        into = group_to_join(task, cgroup)
    request = CloneRequest(flags, exit_signal, stack + stack_size, parent_tid, child_tid, tls, pidfd, into)
    return _clone(task, request)


@syscall(x86_64=57)
def fork(task: Task) -> int | Sleeping[int]:
    return _clone(task, CloneRequest(0, SIGCHLD))


@syscall(x86_64=58)
def vfork(task: Task) -> int | Sleeping[int]:
    return _clone(task, CloneRequest(CLONE_VM | CLONE_VFORK, SIGCHLD))


@syscall(aarch64=97, x86_64=272, support=Support.PARTIAL, note="files and directories; there are no namespaces: EPERM")
def unshare(task: Task, unshare_flags: UInt) -> int:
    """Of threads that share memory nothing but files and directories can be parted."""
    if unshare_flags & NAMESPACES:
        raise LinuxError(EPERM, f"unshare {unshare_flags:#x}")
    if unshare_flags & ~(CLONE_FS | CLONE_FILES | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_SYSVSEM):
        raise LinuxError(EINVAL, f"unshare {unshare_flags:#x}")
    if unshare_flags & (CLONE_THREAD | CLONE_SIGHAND | CLONE_VM) and len(task.process.threads) > 1:
        raise LinuxError(EINVAL, "threads share their memory and handlers")
    if unshare_flags & CLONE_FILES:
        task.kernel.lifecycle.unshare_files(task)
    if unshare_flags & CLONE_FS:
        task.fs = FileContext(task.fs.system, task.fs.cwd, task.fs.umask)
    return 0
