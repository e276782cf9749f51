"""inotify: being told what is done to files."""

from __future__ import annotations

from emulator.linux.errors import EINVAL, EMFILE, ENOTDIR, LinuxError
from emulator.linux.fs.file import O_CLOEXEC, O_NONBLOCK
from emulator.linux.fs.nodes import Directory
from emulator.linux.fs.notifications import (
    IN_ALL_EVENTS,
    IN_DONT_FOLLOW,
    IN_MASK_ADD,
    IN_MASK_CREATE,
    IN_ONLYDIR,
    KNOWN_MASK,
    MOST_INSTANCES,
    Inotify,
)
from emulator.linux.process.task import Task
from emulator.linux.syscalls.at import AT_FDCWD, AT_SYMLINK_NOFOLLOW, find, tree
from emulator.linux.syscalls.table import Path, Support, UInt, syscall

ONLY_THE_GUEST = "what the guest does; the host's changes are not told, nor accesses by mmap and execve"


@syscall(aarch64=26, x86_64=294)
def inotify_init1(task: Task, flags: UInt) -> int:
    """inotify_init1(2)"""
    if flags & ~(O_CLOEXEC | O_NONBLOCK):
        raise LinuxError(EINVAL, f"inotify_init1 flags {flags:#x}")
    notifications = tree(task).events.notifications
    if notifications.instances >= MOST_INSTANCES:
        raise LinuxError(EMFILE, f"{MOST_INSTANCES} instances: fs.inotify.max_user_instances is reached")
    return task.files.install(Inotify(notifications, flags & O_NONBLOCK), bool(flags & O_CLOEXEC))


@syscall(x86_64=253)
def inotify_init(task: Task) -> int:
    """inotify_init(2)"""
    return inotify_init1(task, 0)


@syscall(aarch64=27, x86_64=254, support=Support.PARTIAL, note=ONLY_THE_GUEST)
def inotify_add_watch(task: Task, fd: int, pathname: Path, mask: UInt) -> int:
    """inotify_add_watch(2)"""
    if not mask & IN_ALL_EVENTS or mask & ~KNOWN_MASK:
        raise LinuxError(EINVAL, f"inotify mask {mask:#x}")
    file = task.files.get(fd)
    if (mask & IN_MASK_ADD and mask & IN_MASK_CREATE) or not isinstance(file, Inotify):
        raise LinuxError(EINVAL, f"descriptor {fd}, mask {mask:#x}")
    found = find(task, AT_FDCWD, pathname, AT_SYMLINK_NOFOLLOW if mask & IN_DONT_FOLLOW else 0)
    if mask & IN_ONLYDIR and not isinstance(found.node, Directory):
        raise LinuxError(ENOTDIR, found.path)
    return file.watch(found.node.inode, mask)


@syscall(aarch64=28, x86_64=255)
def inotify_rm_watch(task: Task, fd: int, wd: int) -> int:
    """inotify_rm_watch(2)"""
    file = task.files.get(fd)
    if not isinstance(file, Inotify):
        raise LinuxError(EINVAL, f"descriptor {fd} is no inotify instance")
    file.unwatch(wd)
    return 0
