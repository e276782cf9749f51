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
def getcwd(task: Task, buffer: Address, size: Size) -> int:
    """getcwd(2). The result counts the NUL."""
    path = os.fsencode(task.fs.cwd) + b"\0"
    if size < len(path):
        raise LinuxError(ERANGE, f"{len(path)} bytes into a buffer of {size}")
    tree(task).directory(task.fs.cwd)  # ENOENT if it has been removed
    task.mm.write(buffer, path)
    return len(path)


def _change_directory(task: Task, dentry: Dentry) -> int:
    if not isinstance(dentry.node, Directory):
        raise LinuxError(ENOTDIR, dentry.path)
    tree(task).check(dentry, EXECUTE)
    task.fs.cwd = dentry.path
    return 0


@syscall(aarch64=49, x86_64=80)
def chdir(task: Task, path: Path) -> int:
    """chdir(2). A sysroot is for opening files; the current directory is where the path says, if that exists."""
    paths, here = tree(task).paths, start(task, AT_FDCWD, path)
    try:
        directory = paths.find(here, path, use_sysroot=False).existing
    except LinuxError:
        if paths.sysroot is None:
            raise
        directory = paths.find(here, path).existing
    return _change_directory(task, directory)


@syscall(aarch64=50, x86_64=81)
def fchdir(task: Task, descriptor: int) -> int:
    """fchdir(2)"""
    return _change_directory(task, directory_of(task.files.get(descriptor), descriptor))


def _open_directory(task: Task, descriptor: int) -> OpenDirectory:
    file: File = task.files.get(descriptor)
    if not isinstance(file, OpenDirectory):
        raise LinuxError(ENOTDIR, f"descriptor {descriptor} is not an open directory")
    return file


def _write_entries(task: Task, descriptor: int, buffer: int, size: int, old_layout: bool) -> int:
    return _open_directory(task, descriptor).next_entries(UserBuffer(task.mm, buffer, size), old_layout=old_layout)


@syscall(aarch64=61, x86_64=217)
def getdents64(task: Task, descriptor: int, buffer: Address, size: UInt) -> int:
    """getdents64(2). Names come sorted: the host's order is not the guest's business."""
    return _write_entries(task, descriptor, buffer, size, old_layout=False)


@syscall(x86_64=78)
def getdents(task: Task, descriptor: int, buffer: Address, size: UInt) -> int:
    """getdents(2)"""
    return _write_entries(task, descriptor, buffer, size, old_layout=True)


@syscall(aarch64=34, x86_64=258)
def mkdirat(task: Task, descriptor: int, path: Path, mode: UInt) -> int:
    """mkdirat(2)"""
    tree(task).make_directory(start(task, descriptor, path), path, new_mode(task, mode & 0o1777))
    return 0


@syscall(x86_64=83)
def mkdir(task: Task, path: Path, mode: UInt) -> int:
    """mkdir(2)"""
    return mkdirat(task, AT_FDCWD, path, mode)


@syscall(aarch64=33, x86_64=259, support=Support.PARTIAL, note="devices are EPERM; FIFOs and sockets only below /tmp")
def mknodat(task: Task, descriptor: int, path: Path, mode: UInt, device: UInt) -> int:
    """mknodat(2)"""
    tree(task).make_node(start(task, descriptor, path), path, mode & ~task.fs.umask)
    return 0


@syscall(x86_64=133, support=Support.PARTIAL, note="devices are EPERM; FIFOs and sockets only below /tmp")
def mknod(task: Task, path: Path, mode: UInt, device: UInt) -> int:
    """mknod(2)"""
    return mknodat(task, AT_FDCWD, path, mode, device)


@syscall(aarch64=35, x86_64=263)
def unlinkat(task: Task, descriptor: int, path: Path, flags: UInt) -> int:
    """unlinkat(2)"""
    if flags & ~AT_REMOVEDIR:
        raise LinuxError(EINVAL, f"unlinkat flags {flags:#x}")
    if flags & AT_REMOVEDIR:
        tree(task).remove_directory(start(task, descriptor, path), path)
    else:
        tree(task).remove(start(task, descriptor, path), path)
    return 0


@syscall(x86_64=87)
def unlink(task: Task, path: Path) -> int:
    """unlink(2)"""
    return unlinkat(task, AT_FDCWD, path, 0)


@syscall(x86_64=84)
def rmdir(task: Task, path: Path) -> int:
    """rmdir(2)"""
    return unlinkat(task, AT_FDCWD, path, AT_REMOVEDIR)


@syscall(aarch64=36, x86_64=266)
def symlinkat(task: Task, target: Path, descriptor: int, path: Path) -> int:
    """symlinkat(2)"""
    tree(task).make_symlink(start(task, descriptor, path), path, target)
    return 0


@syscall(x86_64=88)
def symlink(task: Task, target: Path, path: Path) -> int:
    """symlink(2)"""
    return symlinkat(task, target, AT_FDCWD, path)


@syscall(aarch64=37, x86_64=265)
def linkat(task: Task, source_descriptor: int, source: Path, descriptor: int, path: Path, flags: UInt) -> int:
    """linkat(2)"""
    if flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH):
        raise LinuxError(EINVAL, f"linkat flags {flags:#x}")
    if not source and flags & AT_EMPTY_PATH:
        node = opened_dentry(task.files.get(source_descriptor))
    else:
        node = find(task, source_descriptor, source, 0 if flags & AT_SYMLINK_FOLLOW else AT_SYMLINK_NOFOLLOW)
    tree(task).link(node, start(task, descriptor, path), path)
    return 0


@syscall(x86_64=86)
def link(task: Task, source: Path, path: Path) -> int:
    """link(2)"""
    return linkat(task, AT_FDCWD, source, AT_FDCWD, path, 0)


RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4  # uapi/linux/fs.h


@syscall(aarch64=276, x86_64=316, support=Support.PARTIAL, note="RENAME_WHITEOUT, and on host files RENAME_EXCHANGE")
def renameat2(task: Task, descriptor: int, path: Path, target_descriptor: int, target: Path, flags: UInt) -> int:
    """renameat2(2)"""
    if flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT) or flags & 3 == 3:
        raise LinuxError(EINVAL, f"renameat2 flags {flags:#x}")
    if flags & RENAME_WHITEOUT:
        raise LinuxError(EOPNOTSUPP, "RENAME_WHITEOUT")
    tree(task).rename(
        start(task, descriptor, path),
        path,
        start(task, target_descriptor, target),
        target,
        replace=not flags & RENAME_NOREPLACE,
        exchange=bool(flags & RENAME_EXCHANGE),
    )
    return 0


@syscall(aarch64=38, x86_64=264)
def renameat(task: Task, descriptor: int, path: Path, target_descriptor: int, target: Path) -> int:
    """renameat(2)"""
    return renameat2(task, descriptor, path, target_descriptor, target, 0)


@syscall(x86_64=82)
def rename(task: Task, path: Path, target: Path) -> int:
    """rename(2)"""
    return renameat2(task, AT_FDCWD, path, AT_FDCWD, target, 0)


@syscall(aarch64=78, x86_64=267)
def readlinkat(task: Task, descriptor: int, path: Path, buffer: Address, size: int) -> int:
    """readlinkat(2). No NUL; cut at `size`."""
    if size <= 0:
        raise LinuxError(EINVAL, f"a buffer of {size} bytes")
    if path:
        dentry = find(task, descriptor, path, AT_SYMLINK_NOFOLLOW)
    else:
        dentry = opened_dentry(task.files.get(descriptor))
    if not isinstance(dentry.node, Symlink):
        raise LinuxError(EINVAL, f"{dentry.path} is not a symbolic link")
    target = os.fsencode(dentry.node.target())[:size]
    task.mm.write(buffer, target)
    return len(target)


@syscall(x86_64=89)
def readlink(task: Task, path: Path, buffer: Address, size: int) -> int:
    """readlink(2)"""
    return readlinkat(task, AT_FDCWD, path, buffer, size)
