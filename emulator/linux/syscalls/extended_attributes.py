"""Extended attributes: the guest's file systems have none, as one mounted without them."""

from __future__ import annotations

from emulator.linux.errors import EOPNOTSUPP, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.syscalls.at import AT_FDCWD, AT_SYMLINK_NOFOLLOW, find
from emulator.linux.syscalls.table import Address, Path, Size, Support, syscall

NONE = "no file system here has extended attributes: EOPNOTSUPP"


def _of_path(task: Task, path: str, flags: int = 0) -> int:
    dentry = find(task, AT_FDCWD, path, flags)
    raise LinuxError(EOPNOTSUPP, f"{dentry.path}: no extended attributes")


def _of_descriptor(task: Task, descriptor: int) -> int:
    file = task.files.get(descriptor)
    raise LinuxError(EOPNOTSUPP, f"{file.path}: no extended attributes")


@syscall(aarch64=5, x86_64=188, support=Support.REFUSED, note=NONE)
def setxattr(task: Task, pathname: Path, name: Address, value: Address, size: Size, flags: int) -> int:
    """setxattr(2)"""
    return _of_path(task, pathname)


@syscall(aarch64=6, x86_64=189, support=Support.REFUSED, note=NONE)
def lsetxattr(task: Task, pathname: Path, name: Address, value: Address, size: Size, flags: int) -> int:
    """lsetxattr(2)"""
    return _of_path(task, pathname, AT_SYMLINK_NOFOLLOW)


@syscall(aarch64=7, x86_64=190, support=Support.REFUSED, note=NONE)
def fsetxattr(task: Task, fd: int, name: Address, value: Address, size: Size, flags: int) -> int:
    """fsetxattr(2)"""
    return _of_descriptor(task, fd)


@syscall(aarch64=8, x86_64=191, support=Support.REFUSED, note=NONE)
def getxattr(task: Task, pathname: Path, name: Address, value: Address, size: Size) -> int:
    """getxattr(2)"""
    return _of_path(task, pathname)


@syscall(aarch64=9, x86_64=192, support=Support.REFUSED, note=NONE)
def lgetxattr(task: Task, pathname: Path, name: Address, value: Address, size: Size) -> int:
    """lgetxattr(2)"""
    return _of_path(task, pathname, AT_SYMLINK_NOFOLLOW)


@syscall(aarch64=10, x86_64=193, support=Support.REFUSED, note=NONE)
def fgetxattr(task: Task, fd: int, name: Address, value: Address, size: Size) -> int:
    """fgetxattr(2)"""
    return _of_descriptor(task, fd)


@syscall(aarch64=11, x86_64=194, support=Support.REFUSED, note=NONE)
def listxattr(task: Task, pathname: Path, list_: Address, size: Size) -> int:
    """listxattr(2)"""
    return _of_path(task, pathname)


@syscall(aarch64=12, x86_64=195, support=Support.REFUSED, note=NONE)
def llistxattr(task: Task, pathname: Path, list_: Address, size: Size) -> int:
    """llistxattr(2)"""
    return _of_path(task, pathname, AT_SYMLINK_NOFOLLOW)


@syscall(aarch64=13, x86_64=196, support=Support.REFUSED, note=NONE)
def flistxattr(task: Task, fd: int, list_: Address, size: Size) -> int:
    """flistxattr(2)"""
    return _of_descriptor(task, fd)


@syscall(aarch64=14, x86_64=197, support=Support.REFUSED, note=NONE)
def removexattr(task: Task, pathname: Path, name: Address) -> int:
    """removexattr(2)"""
    return _of_path(task, pathname)


@syscall(aarch64=15, x86_64=198, support=Support.REFUSED, note=NONE)
def lremovexattr(task: Task, pathname: Path, name: Address) -> int:
    """lremovexattr(2)"""
    return _of_path(task, pathname, AT_SYMLINK_NOFOLLOW)


@syscall(aarch64=16, x86_64=199, support=Support.REFUSED, note=NONE)
def fremovexattr(task: Task, fd: int, name: Address) -> int:
    """fremovexattr(2)"""
    return _of_descriptor(task, fd)
