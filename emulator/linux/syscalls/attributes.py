"""What a file is: stat and its relatives, access, and what changes it: chmod, chown, utimensat, truncate."""

from __future__ import annotations

import struct

from emulator.linux.errors import EACCES, EBADF, EINVAL, ENODEV, LinuxError
from emulator.linux.fs.attributes import Attributes, pack_statx
from emulator.linux.fs.file import O_PATH, O_WRONLY, File
from emulator.linux.fs.nodes import PIPE_DEVICE, PIPE_STATISTICS
from emulator.linux.fs.notifications import IN_ACCESS, IN_ATTRIB, IN_MODIFY
from emulator.linux.fs.open_files import NodeFile, OpenFile
from emulator.linux.fs.paths import Dentry
from emulator.linux.process.credentials import NO_ID
from emulator.linux.process.task import Task
from emulator.linux.structures import NANOSECONDS
from emulator.linux.syscalls.at import (
    AT_EACCESS,
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_NO_AUTOMOUNT,
    AT_SYMLINK_NOFOLLOW,
    find,
    find_or_open,
    opened_dentry,
    start,
    tree,
)
from emulator.linux.syscalls.input_output import writable
from emulator.linux.syscalls.table import Address, Long, OptionalPath, Path, Support, UInt, syscall

ANONYMOUS = Attributes(inode=12, mode=0o600, device=PIPE_DEVICE)  # files without a node: fs/anon_inodes.c has one inode


def file_attributes(file: File) -> Attributes:
    return file.attributes() if isinstance(file, NodeFile) else ANONYMOUS


def _attributes(task: Task, descriptor: int, path: str, flags: int) -> Attributes:
    if path or not flags & AT_EMPTY_PATH:
        follow = not flags & AT_SYMLINK_NOFOLLOW
        return tree(task).attributes(start(task, descriptor, path), path, follow=follow)
    found = find_or_open(task, descriptor, path, flags)
    return found.node.attributes() if isinstance(found, Dentry) else file_attributes(found)


def _write_stat(task: Task, address: int, attributes: Attributes) -> int:
    task.mm.write(address, task.architecture.pack_stat(attributes.stat()))
    return 0


@syscall(aarch64=79, x86_64=262)
def newfstatat(task: Task, dfd: int, filename: Path, statbuf: Address, flag: int) -> int:
    """fstatat(2)"""
    if flag & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH):
        raise LinuxError(EINVAL, f"fstatat flags {flag:#x}")
    return _write_stat(task, statbuf, _attributes(task, dfd, filename, flag))


@syscall(x86_64=4)
def stat(task: Task, filename: Path, statbuf: Address) -> int:
    """stat(2)"""
    return _write_stat(task, statbuf, _attributes(task, AT_FDCWD, filename, 0))


@syscall(x86_64=6)
def lstat(task: Task, filename: Path, statbuf: Address) -> int:
    """lstat(2)"""
    return _write_stat(task, statbuf, _attributes(task, AT_FDCWD, filename, AT_SYMLINK_NOFOLLOW))


@syscall(aarch64=80, x86_64=5)
def fstat(task: Task, fd: int, statbuf: Address) -> int:
    """fstat(2)"""
    return _write_stat(task, statbuf, file_attributes(task.files.get(fd)))


AT_STATX_SYNC_TYPE = 0x6000


@syscall(aarch64=291, x86_64=332)
def statx(task: Task, dfd: int, filename: Path, flags: UInt, mask: UInt, buffer: Address) -> int:
    """statx(2). Everything that is known is given, whatever the mask asks for."""
    if flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE):
        raise LinuxError(EINVAL, f"statx flags {flags:#x}")
    task.mm.write(buffer, pack_statx(_attributes(task, dfd, filename, flags)))
    return 0


@syscall(aarch64=43, x86_64=137)
def statfs(task: Task, pathname: Path, buf: Address) -> int:
    """statfs(2)"""
    task.mm.write(buf, find(task, AT_FDCWD, pathname).node.statistics.pack())
    return 0


@syscall(aarch64=44, x86_64=138)
def fstatfs(task: Task, fd: int, buf: Address) -> int:
    """fstatfs(2)"""
    file = task.files.get(fd)
    task.mm.write(buf, (file.statistics() if isinstance(file, NodeFile) else PIPE_STATISTICS).pack())
    return 0


@syscall(aarch64=439, x86_64=439)
def faccessat2(task: Task, dfd: int, filename: Path, mode: UInt, flags: UInt) -> int:
    """faccessat2(2). Real and effective user are one here."""
    if mode & ~7 or flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH):
        raise LinuxError(EINVAL, f"faccessat2 mode {mode:#x}, flags {flags:#x}")
    found = find_or_open(task, dfd, filename, flags)
    dentry = found if isinstance(found, Dentry) else opened_dentry(found)
    if not dentry.node.permits(mode):
        raise LinuxError(EACCES, f"{dentry.path} does not permit {mode:#o}")
    if mode:
        tree(task).check(dentry, mode)
    return 0


@syscall(aarch64=48, x86_64=269)
def faccessat(task: Task, dfd: int, filename: Path, mode: UInt) -> int:
    """faccessat(2)"""
    return faccessat2(task, dfd, filename, mode, 0)


@syscall(x86_64=21)
def access(task: Task, filename: Path, mode: UInt) -> int:
    """access(2)"""
    return faccessat2(task, AT_FDCWD, filename, mode, 0)


@syscall(aarch64=452, x86_64=452)
def fchmodat2(task: Task, dfd: int, filename: Path, mode: UInt, flags: UInt) -> int:
    """fchmodat2(2)"""
    if flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH):
        raise LinuxError(EINVAL, f"fchmodat2 flags {flags:#x}")
    found = find_or_open(task, dfd, filename, flags)
    if not isinstance(found, Dentry):
        return fchmod(task, dfd, mode)
    node = found.node
    tree(task).set_mode(found, node.attributes(), node.set_mode, mode & 0o7777)
    return 0


@syscall(aarch64=53, x86_64=268)
def fchmodat(task: Task, dfd: int, filename: Path, mode: UInt) -> int:
    """fchmodat(2)"""
    return fchmodat2(task, dfd, filename, mode, 0)


@syscall(x86_64=90)
def chmod(task: Task, filename: Path, mode: UInt) -> int:
    """chmod(2)"""
    return fchmodat2(task, AT_FDCWD, filename, mode, 0)


@syscall(aarch64=52, x86_64=91)
def fchmod(task: Task, fd: int, mode: UInt) -> int:
    """fchmod(2)"""
    file = task.files.get(fd)
    if not isinstance(file, NodeFile):
        raise LinuxError(EINVAL, f"{file.path} has no permissions")
    tree(task).set_mode(opened_dentry(file), file.attributes(), file.set_mode, mode & 0o7777)
    return 0


def _change_owner(task: Task, dentry: Dentry, uid: int, gid: int) -> int:
    tree(task).set_owner(dentry, None if uid == NO_ID else uid, None if gid == NO_ID else gid)
    return 0


IN_THE_MACHINE = "the machine remembers owners as long as it runs; the host's files stay whose they are"


@syscall(aarch64=54, x86_64=260, support=Support.PARTIAL, note=IN_THE_MACHINE)
def fchownat(task: Task, dfd: int, filename: Path, user: UInt, group: UInt, flag: UInt) -> int:
    """fchownat(2)"""
    found = find_or_open(task, dfd, filename, flag)
    return _change_owner(task, found if isinstance(found, Dentry) else opened_dentry(found), user, group)


@syscall(x86_64=92, support=Support.PARTIAL, note=IN_THE_MACHINE)
def chown(task: Task, filename: Path, user: UInt, group: UInt) -> int:
    """chown(2)"""
    return _change_owner(task, find(task, AT_FDCWD, filename), user, group)


@syscall(x86_64=94, support=Support.PARTIAL, note=IN_THE_MACHINE)
def lchown(task: Task, filename: Path, user: UInt, group: UInt) -> int:
    """lchown(2)"""
    return _change_owner(task, find(task, AT_FDCWD, filename, AT_SYMLINK_NOFOLLOW), user, group)


@syscall(aarch64=55, x86_64=93, support=Support.PARTIAL, note=IN_THE_MACHINE)
def fchown(task: Task, fd: int, user: UInt, group: UInt) -> int:
    """fchown(2)"""
    return _change_owner(task, opened_dentry(task.files.get(fd)), user, group)


UTIME_NOW = 0x3FFF_FFFF  # uapi/linux/stat.h
UTIME_OMIT = 0x3FFF_FFFE


def _time_ns(task: Task, seconds: int, nanoseconds: int) -> int | None:
    if nanoseconds == UTIME_NOW:
        return task.clock.realtime_ns()
    if nanoseconds == UTIME_OMIT:
        return None
    if not 0 <= nanoseconds < NANOSECONDS:
        raise LinuxError(EINVAL, f"{nanoseconds} nanoseconds")
    return seconds * NANOSECONDS + nanoseconds


def _set_times(task: Task, descriptor: int, path: str | None, times: tuple[int | None, int | None], flags: int) -> int:
    found = task.files.get(descriptor) if path is None else find_or_open(task, descriptor, path, flags)
    event = IN_ATTRIB if None not in times else IN_MODIFY if times[0] is None else IN_ACCESS
    now = times == (task.clock.realtime_ns(),) * 2
    if isinstance(found, Dentry):
        tree(task).check_times(found, now=now)
        tree(task).change_node(found, lambda: found.node.set_times(*times), event)
    elif isinstance(found, NodeFile):
        tree(task).check_times(opened_dentry(found), now=now)
        tree(task).change_node(opened_dentry(found), lambda: found.set_times(*times), event)
    else:
        raise LinuxError(EINVAL, f"{found.path} has no times")
    return 0


@syscall(aarch64=88, x86_64=280)
def utimensat(task: Task, dfd: int, filename: OptionalPath, utimes: Address, flags: UInt) -> int:
    """utimensat(2), and futimens(3) with a null path"""
    if not utimes:
        now = task.clock.realtime_ns()
        return _set_times(task, dfd, filename, (now, now), flags)
    seconds, nanoseconds, modified_seconds, modified_nanoseconds = struct.unpack("<4q", task.mm.read(utimes, 32))
    wanted = (_time_ns(task, seconds, nanoseconds), _time_ns(task, modified_seconds, modified_nanoseconds))
    return _set_times(task, dfd, filename, wanted, flags)


def _timeval_times(task: Task, address: int) -> tuple[int, int]:
    """struct timeval[2], or now."""
    if not address:
        now = task.clock.realtime_ns()
        return now, now
    values = struct.unpack("<4q", task.mm.read(address, 32))
    if not all(0 <= microseconds < 1_000_000 for microseconds in values[1::2]):
        raise LinuxError(EINVAL, f"timeval {values}")
    return values[0] * NANOSECONDS + values[1] * 1000, values[2] * NANOSECONDS + values[3] * 1000


@syscall(x86_64=235)
def utimes(task: Task, filename: Path, utimes: Address) -> int:
    """utimes(2)"""
    return _set_times(task, AT_FDCWD, filename, _timeval_times(task, utimes), 0)


@syscall(x86_64=261)
def futimesat(task: Task, dfd: int, filename: OptionalPath, utimes: Address) -> int:
    """futimesat(2)"""
    return _set_times(task, dfd, filename, _timeval_times(task, utimes), 0)


@syscall(x86_64=132)
def utime(task: Task, filename: Path, times: Address) -> int:
    """utime(2): struct utimbuf"""
    if not times:
        return utimes(task, filename, 0)
    accessed, modified = struct.unpack("<2q", task.mm.read(times, 16))
    return _set_times(task, AT_FDCWD, filename, (accessed * NANOSECONDS, modified * NANOSECONDS), 0)


def _truncate(file: File, size: int) -> int:
    if not isinstance(file, NodeFile):
        raise LinuxError(EINVAL, f"{file.path} has no size")
    file.truncate(size)
    return 0


def _check_size(size: int) -> None:
    if size < 0:
        raise LinuxError(EINVAL, f"a size of {size} bytes")


@syscall(aarch64=45, x86_64=76)
def truncate(task: Task, path: Path, length: Long) -> int:
    """truncate(2)"""
    _check_size(length)
    file = tree(task).open_at(task, start(task, AT_FDCWD, path), path, O_WRONLY, told=False)
    result = _truncate(file, length)
    if isinstance(file, OpenFile):
        tree(task).events.about(file, IN_MODIFY)
    return result


@syscall(aarch64=46, x86_64=77)
def ftruncate(task: Task, fd: int, length: Long) -> int:
    """ftruncate(2)"""
    _check_size(length)
    file = task.files.get(fd)
    if not file.writable:
        raise LinuxError(EBADF if file.flags & O_PATH else EINVAL, f"descriptor {fd} is not open for writing")
    return _truncate(file, length)


@syscall(aarch64=47, x86_64=285, support=Support.PARTIAL, note="modes that move or share blocks are EOPNOTSUPP")
def fallocate(task: Task, fd: int, mode: UInt, offset: Long, len_: Long) -> int:
    """fallocate(2)"""
    if offset < 0 or len_ <= 0:
        raise LinuxError(EINVAL, f"fallocate of {len_} bytes at {offset}")
    file = writable(task, fd)
    if not isinstance(file, OpenFile):
        raise LinuxError(ENODEV, f"{file.path} is not a regular file")
    file.allocate(task, mode, offset, len_)
    return 0
