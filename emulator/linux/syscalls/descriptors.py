"""Descriptors: duplicates, fcntl, pipes, memory files."""

from __future__ import annotations

import struct
from collections.abc import Callable

from emulator.linux.errors import EBADF, EBUSY, EINVAL, ENOTDIR, EPERM, ESRCH, LinuxError
from emulator.linux.fs.file import O_APPEND, O_ASYNC, O_CLOEXEC, O_NOATIME, O_NONBLOCK, O_RDWR, File
from emulator.linux.fs.memory_files import F_SEAL_WRITE, MemoryRegular
from emulator.linux.fs.nodes import F_SEAL_SEAL
from emulator.linux.fs.open_files import NodeFile, OpenDirectory, OpenFile
from emulator.linux.fs.pipes import MOST_CAPACITY_BYTES, PipeEnd
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.signals.signal import NSIG
from emulator.linux.syscalls import locks
from emulator.linux.syscalls.at import tree
from emulator.linux.syscalls.table import Address, Path, Support, UInt, ULong, syscall


@syscall(aarch64=23, x86_64=32)
def dup(task: Task, fildes: int) -> int:
    """dup(2)"""
    return task.files.dup(fildes)


@syscall(x86_64=33)
def dup2(task: Task, oldfd: int, newfd: int) -> int:
    """dup2(2)"""
    file = task.files.get(oldfd)
    return newfd if newfd == oldfd else task.files.install_at(newfd, file)


@syscall(aarch64=24, x86_64=292)
def dup3(task: Task, oldfd: int, newfd: int, flags: int) -> int:
    """dup3(2)"""
    if flags & ~O_CLOEXEC or newfd == oldfd:
        raise LinuxError(EINVAL, f"dup3({oldfd}, {newfd}, {flags:#x})")
    return task.files.install_at(newfd, task.files.get(oldfd), bool(flags & O_CLOEXEC))


# uapi/asm-generic/fcntl.h, uapi/linux/fcntl.h
F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW = range(8)
F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW = 36, 37, 38
F_SETOWN, F_GETOWN, F_SETSIG, F_GETSIG, F_SETOWN_EX, F_GETOWN_EX = 8, 9, 10, 11, 15, 16
F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS = 1030, 1031, 1032, 1033, 1034
FD_CLOEXEC = 1
F_NOTIFY, DN_MULTISHOT = 1026, 1 << 31
NOT_MODELLED = {1024: "F_SETLEASE", 1025: "F_GETLEASE", 1035: "F_GET_RW_HINT", 1036: "F_SET_RW_HINT"}
ALL_SEALS = 0x3F  # up to F_SEAL_EXEC
SETTABLE = O_APPEND | O_NONBLOCK | O_ASYNC | O_NOATIME  # by F_SETFL

Command = Callable[[Task, int, File, int], int | Sleeping[int]]  # task, descriptor, what it has open, third argument


def _duplicate(task: Task, descriptor: int, file: File, argument: int) -> int:
    lowest = argument & 0xFFFFFFFF
    if lowest >= task.files.limit:
        raise LinuxError(EINVAL, f"descriptor {lowest} is not in 0..{task.files.limit - 1}")
    return task.files.install(file, lowest=lowest)


def _duplicate_cloexec(task: Task, descriptor: int, file: File, argument: int) -> int:
    duplicate = _duplicate(task, descriptor, file, argument)
    task.files.set_cloexec(duplicate, True)
    return duplicate


def _get_descriptor_flags(task: Task, descriptor: int, file: File, argument: int) -> int:
    return FD_CLOEXEC if task.files.cloexec(descriptor) else 0


def _set_descriptor_flags(task: Task, descriptor: int, file: File, argument: int) -> int:
    task.files.set_cloexec(descriptor, bool(argument & FD_CLOEXEC))
    return 0


def _get_flags(task: Task, descriptor: int, file: File, argument: int) -> int:
    """A 64-bit kernel opens every file with O_LARGEFILE and shows it."""
    large = isinstance(file, NodeFile) and not isinstance(file, PipeEnd)
    return file.flags | (task.architecture.open_flags.largefile if large else 0)


def _set_flags(task: Task, descriptor: int, file: File, argument: int) -> int:
    file.flags = file.flags & ~SETTABLE | argument & SETTABLE
    return 0


def _set_owner(task: Task, descriptor: int, file: File, argument: int) -> int:
    owner = (argument & 0xFFFFFFFF) - ((argument & 0x80000000) << 1)
    if owner == -(1 << 31):  # f_setown(), fs/fcntl.c: there is no such group
        raise LinuxError(EINVAL, f"F_SETOWN {owner}")
    file.signal_owner = owner
    return 0


def _get_owner(task: Task, descriptor: int, file: File, argument: int) -> int:
    return file.signal_owner


def _set_owner_ex(task: Task, descriptor: int, file: File, argument: int) -> int:
    """struct f_owner_ex: thread (0), process (1) or group (2), and its id."""
    kind, owner = struct.unpack("<ii", task.mm.read(argument, 8))
    if kind not in range(3):
        raise LinuxError(EINVAL, f"F_SETOWN_EX type {kind}")
    if owner < 0:
        raise LinuxError(ESRCH, f"F_SETOWN_EX of {owner}: there is no such process")
    file.signal_owner = -owner if kind == 2 else owner
    return 0


def _get_owner_ex(task: Task, descriptor: int, file: File, argument: int) -> int:
    owner = file.signal_owner
    task.mm.write(argument, struct.pack("<ii", 2 if owner < 0 else 1, abs(owner)))
    return 0


def _set_signal(task: Task, descriptor: int, file: File, argument: int) -> int:
    if not 0 <= argument <= NSIG:
        raise LinuxError(EINVAL, f"F_SETSIG {argument}")
    file.signal = argument
    return 0


def _get_signal(task: Task, descriptor: int, file: File, argument: int) -> int:
    return file.signal


def _get_pipe_size(task: Task, descriptor: int, file: File, argument: int) -> int:
    if not isinstance(file, PipeEnd):
        raise LinuxError(EBADF, f"{file.path} is not a pipe of the guest's")
    return file.pipe.capacity


def _set_pipe_size(task: Task, descriptor: int, file: File, argument: int) -> int:
    if not isinstance(file, PipeEnd):
        raise LinuxError(EBADF, f"{file.path} is not a pipe of the guest's")
    if not 0 < argument <= MOST_CAPACITY_BYTES:
        raise LinuxError(EPERM, f"a pipe of {argument} bytes; at most {MOST_CAPACITY_BYTES}")
    file.pipe.capacity = max(4096, 1 << (argument - 1).bit_length())
    return file.pipe.capacity


def _get_seals(task: Task, descriptor: int, file: File, argument: int) -> int:
    return _sealable(file).seals


def _sealable(file: File) -> MemoryRegular:
    if not isinstance(file, OpenFile) or not isinstance(file.body, MemoryRegular):
        raise LinuxError(EINVAL, f"{file.path} cannot be sealed")
    return file.body


def _add_seals(task: Task, descriptor: int, file: File, argument: int) -> int:
    if not file.writable:
        raise LinuxError(EPERM, f"{file.path} is not open for writing")
    if argument & ~ALL_SEALS:
        raise LinuxError(EINVAL, f"seals {argument:#x}")
    node = _sealable(file)
    if node.seals & F_SEAL_SEAL:
        raise LinuxError(EPERM, f"{file.path} takes no more seals")
    content = file.content()
    if argument & F_SEAL_WRITE and content is not None and task.kernel.writes_mapped(content.identity):
        raise LinuxError(EBUSY, f"{file.path} is mapped for writing")
    node.seals |= argument
    return 0


def _notify(task: Task, descriptor: int, file: File, argument: int) -> int:
    """fcntl_dirnotify(), fs/notify/dnotify: without events it ends what was asked for, which never was anything."""
    if argument & ~DN_MULTISHOT & 0xFFFF_FFFF == 0:
        return 0
    if not isinstance(file, OpenDirectory):
        raise LinuxError(ENOTDIR, f"{file.path} is not a directory")
    task.kernel.name_once("fcntl F_NOTIFY (signals for what happens in a directory) is not modelled: EINVAL")
    raise LinuxError(EINVAL, "F_NOTIFY")


COMMANDS: dict[int, Command] = {
    F_NOTIFY: _notify,
    F_SETOWN: _set_owner,
    F_GETOWN: _get_owner,
    F_SETSIG: _set_signal,
    F_GETSIG: _get_signal,
    F_SETOWN_EX: _set_owner_ex,
    F_GETOWN_EX: _get_owner_ex,
    F_DUPFD: _duplicate,
    F_DUPFD_CLOEXEC: _duplicate_cloexec,
    F_GETFD: _get_descriptor_flags,
    F_SETFD: _set_descriptor_flags,
    F_GETFL: _get_flags,
    F_SETFL: _set_flags,
    F_GETLK: locks.for_process(locks.query),
    F_SETLK: locks.for_process(locks.take),
    F_SETLKW: locks.for_process(locks.wait),
    F_OFD_GETLK: locks.for_open_file(locks.query),
    F_OFD_SETLK: locks.for_open_file(locks.take),
    F_OFD_SETLKW: locks.for_open_file(locks.wait),
    F_GETPIPE_SZ: _get_pipe_size,
    F_SETPIPE_SZ: _set_pipe_size,
    F_GET_SEALS: _get_seals,
    F_ADD_SEALS: _add_seals,
}


@syscall(aarch64=25, x86_64=72, support=Support.PARTIAL, note="leases, notifications and hints are EINVAL")
def fcntl(task: Task, fd: int, cmd: UInt, arg: ULong) -> int | Sleeping[int]:
    """fcntl(2)"""
    file = task.files.get(fd)
    run = COMMANDS.get(cmd)
    if run is None:
        if cmd in NOT_MODELLED:
            task.kernel.name_once(f"fcntl {NOT_MODELLED[cmd]} is not modelled: EINVAL")
        raise LinuxError(EINVAL, f"fcntl command {cmd} is not modelled")
    return run(task, fd, file, arg)


@syscall(aarch64=59, x86_64=293)
def pipe2(task: Task, fildes: Address, flags: UInt) -> int:
    """pipe2(2)"""
    if flags & ~(O_CLOEXEC | O_NONBLOCK | task.architecture.open_flags.direct):
        raise LinuxError(EINVAL, f"pipe2 flags {flags:#x}")
    reading, writing = tree(task).pipe(flags)
    cloexec = bool(flags & O_CLOEXEC)
    first = task.files.install(reading, cloexec)
    second = task.files.install(writing, cloexec)
    task.mm.write(fildes, struct.pack("<ii", first, second))
    return 0


@syscall(x86_64=22)
def pipe(task: Task, fildes: Address) -> int:
    """pipe(2)"""
    return pipe2(task, fildes, 0)


MFD_CLOEXEC, MFD_ALLOW_SEALING, MFD_HUGETLB, MFD_NOEXEC_SEAL, MFD_EXEC = 1, 2, 4, 8, 16  # uapi/linux/memfd.h


@syscall(aarch64=279, x86_64=319, support=Support.PARTIAL, note="no huge pages")
def memfd_create(task: Task, uname: Path, flags: UInt) -> int:
    """memfd_create(2)"""
    if flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | MFD_EXEC) or len(uname) > 249:
        raise LinuxError(EINVAL, f"memfd_create({uname[:20]!r}, {flags:#x})")
    seals = 0 if flags & (MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL) else F_SEAL_SEAL
    return task.files.install(tree(task).memory_file(uname, O_RDWR, seals), bool(flags & MFD_CLOEXEC))
