"""Where a path in a syscall begins: the current directory, or the directory open at a descriptor."""

from __future__ import annotations

from emulator.linux.errors import ENOENT, LinuxError
from emulator.linux.fs.file import File
from emulator.linux.fs.file_tree import FileTree
from emulator.linux.fs.open_files import NodeFile, directory_of
from emulator.linux.fs.paths import Dentry
from emulator.linux.process.task import Task

AT_FDCWD = -100  # uapi/linux/fcntl.h
AT_SYMLINK_NOFOLLOW = 0x100
AT_REMOVEDIR = 0x200
AT_EACCESS = 0x200
AT_SYMLINK_FOLLOW = 0x400
AT_NO_AUTOMOUNT = 0x800
AT_EMPTY_PATH = 0x1000


def tree(task: Task) -> FileTree:
    """The task's file tree."""
    system = task.fs.system
    assert isinstance(system, FileTree), f"the files of task {task.pid} are a {type(system).__name__}"
    return system.act_for(task.credentials)


def start(task: Task, descriptor: int, path: str) -> Dentry:
    """Where `path` begins."""
    if not path:
        raise LinuxError(ENOENT, "an empty path")
    if path.startswith("/"):
        return tree(task).paths.root
    if descriptor == AT_FDCWD:
        return tree(task).directory(task.fs.cwd)
    return directory_of(task.files.get(descriptor), descriptor)


def find(task: Task, descriptor: int, path: str, flags: int = 0) -> Dentry:
    """What exists at a path, with AT_SYMLINK_NOFOLLOW in `flags` the symbolic link itself."""
    return tree(task).find(start(task, descriptor, path), path, follow=not flags & AT_SYMLINK_NOFOLLOW)


def find_or_open(task: Task, descriptor: int, path: str, flags: int) -> Dentry | File:
    """As `find`; with AT_EMPTY_PATH and an empty path what the descriptor itself has open."""
    if path or not flags & AT_EMPTY_PATH:
        return find(task, descriptor, path, flags)
    if descriptor == AT_FDCWD:
        return tree(task).directory(task.fs.cwd)
    return task.files.get(descriptor)


def opened_dentry(file: File) -> Dentry:
    """The place in the tree that a descriptor has open."""
    if not isinstance(file, NodeFile) or file.dentry is None:
        raise LinuxError(ENOENT, f"{file.path or type(file).__name__} has no place in the file tree")
    return file.dentry


def new_mode(task: Task, mode: int) -> int:
    """Permissions of something new: without what the umask takes away."""
    return mode & 0o7777 & ~task.fs.umask
