"""Names: the current directory, reading directories, making, linking, renaming and removing."""

from __future__ import annotations

import os

from emulator.linux.errors import EINVAL, ENOTDIR, EOPNOTSUPP, ERANGE, LinuxError
from emulator.linux.fs.destination import UserBuffer
from emulator.linux.fs.file import File
from emulator.linux.fs.nodes import Directory, Symlink
from emulator.linux.fs.open_files import OpenDirectory, directory_of
from emulator.linux.fs.paths import Dentry
from emulator.linux.fs.permissions import EXECUTE
from emulator.linux.process.task import Task
from emulator.linux.syscalls.at import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_REMOVEDIR,
    AT_SYMLINK_FOLLOW,
    AT_SYMLINK_NOFOLLOW,
    find,
    new_mode,
    opened_dentry,
    start,
    tree,
)
from emulator.linux.syscalls.table import Address, Path, Size, Support, UInt, syscall


@syscall(aarch64=17, x86_64=79)
def getcwd(task: Task, buf: Address, size: Size) -> int:
    """getcwd(2). The result counts the NUL."""
    path = os.fsencode(task.fs.cwd) + b"\0"
    if size < len(path):
        raise LinuxError(ERANGE, f"{len(path)} bytes into a buffer of {size}")
    tree(task).directory(task.fs.cwd)  # ENOENT if it has been removed
    task.mm.write(buf, path)
    return len(path)


def _change_directory(task: Task, dentry: Dentry) -> int:
    if not isinstance(dentry.node, Directory):
        raise LinuxError(ENOTDIR, dentry.path)
    tree(task).check(dentry, EXECUTE)
    task.fs.cwd = dentry.path
    return 0


@syscall(aarch64=49, x86_64=80)
def chdir(task: Task, filename: Path) -> int:
    """chdir(2). A sysroot is for opening files; the current directory is where the path says, if that exists."""
    paths, here = tree(task).paths, start(task, AT_FDCWD, filename)
    try:
        directory = paths.find(here, filename, use_sysroot=False).existing
    except LinuxError:
        if paths.sysroot is None:
            raise
        directory = paths.find(here, filename).existing
    return _change_directory(task, directory)


@syscall(aarch64=50, x86_64=81)
def fchdir(task: Task, fd: int) -> int:
    """fchdir(2)"""
    return _change_directory(task, directory_of(task.files.get(fd), fd))


def _open_directory(task: Task, descriptor: int) -> OpenDirectory:
    file: File = task.files.get(descriptor)
    if not isinstance(file, OpenDirectory):
        raise LinuxError(ENOTDIR, f"descriptor {descriptor} is not an open directory")
    return file


def _write_entries(task: Task, descriptor: int, buffer: int, size: int, old_layout: bool) -> int:
    return _open_directory(task, descriptor).next_entries(UserBuffer(task.mm, buffer, size), old_layout=old_layout)


@syscall(aarch64=61, x86_64=217)
def getdents64(task: Task, fd: int, dirent: Address, count: UInt) -> int:
    """getdents64(2). Names come sorted: the host's order is not the guest's business."""
    return _write_entries(task, fd, dirent, count, old_layout=False)


@syscall(x86_64=78)
def getdents(task: Task, fd: int, dirent: Address, count: UInt) -> int:
    """getdents(2)"""
    return _write_entries(task, fd, dirent, count, old_layout=True)


@syscall(aarch64=34, x86_64=258)
def mkdirat(task: Task, dfd: int, pathname: Path, mode: UInt) -> int:
    """mkdirat(2)"""
    tree(task).make_directory(start(task, dfd, pathname), pathname, new_mode(task, mode & 0o1777))
    return 0


@syscall(x86_64=83)
def mkdir(task: Task, pathname: Path, mode: UInt) -> int:
    """mkdir(2)"""
    return mkdirat(task, AT_FDCWD, pathname, mode)


@syscall(aarch64=33, x86_64=259, support=Support.PARTIAL, note="devices are EPERM; FIFOs and sockets only below /tmp")
def mknodat(task: Task, dfd: int, filename: Path, mode: UInt, dev: UInt) -> int:
    """mknodat(2)"""
    tree(task).make_node(start(task, dfd, filename), filename, mode & ~task.fs.umask)
    return 0


@syscall(x86_64=133, support=Support.PARTIAL, note="devices are EPERM; FIFOs and sockets only below /tmp")
def mknod(task: Task, filename: Path, mode: UInt, dev: UInt) -> int:
    """mknod(2)"""
    return mknodat(task, AT_FDCWD, filename, mode, dev)


@syscall(aarch64=35, x86_64=263)
def unlinkat(task: Task, dfd: int, pathname: Path, flag: UInt) -> int:
    """unlinkat(2)"""
    if flag & ~AT_REMOVEDIR:
        raise LinuxError(EINVAL, f"unlinkat flags {flag:#x}")
    if flag & AT_REMOVEDIR:
        tree(task).remove_directory(start(task, dfd, pathname), pathname)
    else:
        tree(task).remove(start(task, dfd, pathname), pathname)
    return 0


@syscall(x86_64=87)
def unlink(task: Task, pathname: Path) -> int:
    """unlink(2)"""
    return unlinkat(task, AT_FDCWD, pathname, 0)


@syscall(x86_64=84)
def rmdir(task: Task, pathname: Path) -> int:
    """rmdir(2)"""
    return unlinkat(task, AT_FDCWD, pathname, AT_REMOVEDIR)


@syscall(aarch64=36, x86_64=266)
def symlinkat(task: Task, oldname: Path, newdfd: int, newname: Path) -> int:
    """symlinkat(2)"""
    tree(task).make_symlink(start(task, newdfd, newname), newname, oldname)
    return 0


@syscall(x86_64=88)
def symlink(task: Task, oldname: Path, newname: Path) -> int:
    """symlink(2)"""
    return symlinkat(task, oldname, AT_FDCWD, newname)


@syscall(aarch64=37, x86_64=265)
def linkat(task: Task, olddfd: int, oldname: Path, newdfd: int, newname: Path, flags: UInt) -> int:
    """linkat(2)"""
    if flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH):
        raise LinuxError(EINVAL, f"linkat flags {flags:#x}")
    if not oldname and flags & AT_EMPTY_PATH:
        node = opened_dentry(task.files.get(olddfd))
    else:
        node = find(task, olddfd, oldname, 0 if flags & AT_SYMLINK_FOLLOW else AT_SYMLINK_NOFOLLOW)
    tree(task).link(node, start(task, newdfd, newname), newname)
    return 0


@syscall(x86_64=86)
def link(task: Task, oldname: Path, newname: Path) -> int:
    """link(2)"""
    return linkat(task, AT_FDCWD, oldname, AT_FDCWD, newname, 0)


RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4  # uapi/linux/fs.h


@syscall(aarch64=276, x86_64=316, support=Support.PARTIAL, note="RENAME_WHITEOUT, and on host files RENAME_EXCHANGE")
def renameat2(task: Task, olddfd: int, oldname: Path, newdfd: int, newname: Path, flags: UInt) -> int:
    """renameat2(2)"""
    if flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT) or flags & 3 == 3:
        raise LinuxError(EINVAL, f"renameat2 flags {flags:#x}")
    if flags & RENAME_WHITEOUT:
        raise LinuxError(EOPNOTSUPP, "RENAME_WHITEOUT")
    tree(task).rename(
        start(task, olddfd, oldname),
        oldname,
        start(task, newdfd, newname),
        newname,
        replace=not flags & RENAME_NOREPLACE,
        exchange=bool(flags & RENAME_EXCHANGE),
    )
    return 0


@syscall(aarch64=38, x86_64=264)
def renameat(task: Task, olddfd: int, oldname: Path, newdfd: int, newname: Path) -> int:
    """renameat(2)"""
    return renameat2(task, olddfd, oldname, newdfd, newname, 0)


@syscall(x86_64=82)
def rename(task: Task, oldname: Path, newname: Path) -> int:
    """rename(2)"""
    return renameat2(task, AT_FDCWD, oldname, AT_FDCWD, newname, 0)


@syscall(aarch64=78, x86_64=267)
def readlinkat(task: Task, dfd: int, pathname: Path, buf: Address, bufsiz: int) -> int:
    """readlinkat(2). No NUL; cut at `size`."""
    if bufsiz <= 0:
        raise LinuxError(EINVAL, f"a buffer of {bufsiz} bytes")
    if pathname:
        dentry = find(task, dfd, pathname, AT_SYMLINK_NOFOLLOW)
    else:
        dentry = opened_dentry(task.files.get(dfd))
    if not isinstance(dentry.node, Symlink):
        raise LinuxError(EINVAL, f"{dentry.path} is not a symbolic link")
    target = os.fsencode(dentry.node.target())[:bufsiz]
    task.mm.write(buf, target)
    return len(target)


@syscall(x86_64=89)
def readlink(task: Task, path: Path, buf: Address, bufsiz: int) -> int:
    """readlink(2)"""
    return readlinkat(task, AT_FDCWD, path, buf, bufsiz)
