"""OpenableTree: open(2) of the guest's tree: what becomes of a path, by what is there and by the flags."""

from __future__ import annotations

import os
import stat as file_mode

from emulator.linux.errors import EACCES, EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR, ENXIO, LinuxError
from emulator.linux.fs.file import (
    O_ACCMODE,
    O_CLOEXEC,
    O_CREAT,
    O_EXCL,
    O_NOCTTY,
    O_PATH,
    O_RDONLY,
    O_TRUNC,
    Caller,
    File,
)
from emulator.linux.fs.memory_files import MemoryNode, MemoryRegular
from emulator.linux.fs.mounted_tree import MountedTree
from emulator.linux.fs.nodes import Directory, Regular, Symlink
from emulator.linux.fs.notifications import IN_MODIFY
from emulator.linux.fs.open_files import OpenDirectory, OpenFile, PathFile
from emulator.linux.fs.paths import Dentry, Found
from emulator.linux.fs.permissions import EXECUTE, READ, WRITE
from emulator.linux.fs.pipes import Pipe, PipeEnd
from emulator.linux.fs.virtual_files import OpensItself

O_TMPFILE_BIT = 0o20000000  # __O_TMPFILE: O_TMPFILE is this and O_DIRECTORY
KEPT_FLAGS = ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC)  # what fcntl(F_GETFL) shows later

ACCESS_MODES = (READ, WRITE, READ | WRITE, READ | WRITE)  # by O_ACCMODE


class OpenableTree(MountedTree):
    """The guest's file tree, and the files that it opens."""

    def open(self, task: Caller, path: str, flags: int, mode: int = 0, directory: str = "/") -> File:
        """open(2) of an absolute path or one relative to `directory`. The umask has been taken from `mode`."""
        return self.open_at(task, self.directory(directory), path, flags, mode)

    def executable(self, task: Caller, path: str, directory: str = "/") -> File:
        """Open for execve."""
        self.act_for(task.credentials)
        dentry = self.find(self.directory(directory), path)
        if not isinstance(dentry.node, Regular):
            raise LinuxError(EACCES, f"{dentry.path} is not a regular file")
        if not dentry.node.permits(os.X_OK):
            raise LinuxError(EACCES, f"{dentry.path} has no execute permission")
        self.check(dentry, EXECUTE)
        return self._open_file(task, dentry, O_RDONLY)

    def open_at(
        self, task: Caller, start: Dentry, path: str, flags: int, mode: int = 0, *, told: bool = True, resolve: int = 0
    ) -> File:
        """... or to one that a descriptor has open. `told`: who watches the file hears of that. `resolve`: openat2."""
        self.act_for(task.credentials)
        file = self._open_at(task, start, path, flags, mode, resolve)
        if told and isinstance(file, OpenFile | OpenDirectory):
            file.events = self.events
            self.events.opened(file)
        return file

    def _walk(self, start: Dentry, path: str, *, follow: bool, resolve: int) -> Found:
        if resolve:
            return self.paths.find_restricted(start, path, follow=follow, resolve=resolve)
        return self.paths.find(start, path, follow=follow)

    def _open_at(self, task: Caller, start: Dentry, path: str, flags: int, mode: int, resolve: int) -> File:
        only_directory = bool(flags & self.open_flags.directory)
        if flags & O_PATH:
            flags &= O_PATH | self.open_flags.directory | self.open_flags.nofollow
        if flags & O_TMPFILE_BIT:
            return self._open_temporary(start, path, flags, mode, resolve)
        if only_directory and flags & O_CREAT:
            raise LinuxError(EINVAL, "O_DIRECTORY and O_CREAT exclude each other")
        exclusive = flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL
        follow = not flags & self.open_flags.nofollow and not exclusive
        found = self._walk(start, path, follow=follow, resolve=resolve)
        if found.dentry is None:
            if not flags & O_CREAT:
                raise LinuxError(ENOENT, found.path)
            return self._create(found, flags, mode)
        if exclusive:
            raise LinuxError(EEXIST, found.path)
        if flags & O_CREAT and isinstance(found.node, Directory):
            raise LinuxError(EISDIR, found.path)
        if only_directory and not isinstance(found.node, Directory):
            raise LinuxError(ENOTDIR, found.path)
        return self._open_node(task, found.dentry, flags)

    def _create(self, found: Found, flags: int, mode: int) -> File:
        if found.must_be_directory:
            raise LinuxError(EISDIR, found.path)
        self._check_names(found)
        node, body = self._change(found.path, lambda: found.directory.create(found.name, mode))
        self._give(found, node)
        file = OpenFile(body, flags & KEPT_FLAGS, found.path, self.contents)
        file.dentry = Dentry(node, found.name, found.above)
        self.events.created(found)
        return file

    def _open_temporary(self, start: Dentry, path: str, flags: int, mode: int, resolve: int) -> File:
        dentry = self._walk(start, path, follow=True, resolve=resolve).existing
        directory = dentry.node
        if not isinstance(directory, Directory):
            raise LinuxError(ENOTDIR, dentry.path)
        if flags & O_ACCMODE == O_RDONLY:
            raise LinuxError(EINVAL, "O_TMPFILE needs O_WRONLY or O_RDWR")
        self.check(dentry, WRITE | EXECUTE)
        node = self._change(dentry.path, lambda: directory.temporary(mode))
        if isinstance(node, MemoryNode):
            node.set_owner(self._acting.uid, self._acting.gid)
        body = node.open(write=True, truncate=False)
        file = OpenFile(body, flags & KEPT_FLAGS, f"{dentry.path}/#{node.attributes().inode} (deleted)", self.contents)
        file.dentry = Dentry(node, "", dentry)
        return file

    def _open_node(self, task: Caller, dentry: Dentry, flags: int) -> File:
        node = dentry.node
        if flags & O_PATH:
            return PathFile(dentry, flags & KEPT_FLAGS)
        if not isinstance(node, Symlink):
            self.check(dentry, ACCESS_MODES[flags & O_ACCMODE] | (WRITE if flags & O_TRUNC else 0))
        return self._open_file(task, dentry, flags)

    def _open_file(self, task: Caller, dentry: Dentry, flags: int) -> File:
        """Open what the caller may open."""
        node = dentry.node
        write = flags & O_ACCMODE != O_RDONLY
        if isinstance(node, Regular):
            truncate = bool(flags & O_TRUNC)
            path = dentry.path
            body = self._change(path, lambda: node.open(write=write or truncate, truncate=truncate))
            file = OpenFile(body, flags & KEPT_FLAGS, path, self.contents)
            file.dentry = dentry
            if truncate:
                self.events.about(file, IN_MODIFY)
            return file
        if isinstance(node, Directory):
            if write or flags & O_TRUNC:
                raise LinuxError(EISDIR, dentry.path)
            return OpenDirectory(dentry, flags & KEPT_FLAGS)
        if isinstance(node, Symlink):
            raise LinuxError(ELOOP, f"{dentry.path} is a symbolic link")
        if isinstance(node, OpensItself):
            opened = node.open_file(task, flags & (KEPT_FLAGS | O_NOCTTY), dentry.path)
            opened.flags &= KEPT_FLAGS
            return opened
        kind = {file_mode.S_IFIFO: "FIFO", file_mode.S_IFSOCK: "socket"}.get(node.file_type, "device")
        self.message(f"{dentry.path}: a {kind} of the host is no part of this machine (ENXIO)")
        raise LinuxError(ENXIO, f"{dentry.path}: a {kind} of the host")

    def memory_file(self, name: str, flags: int, seals: int) -> OpenFile:
        """memfd_create(2)"""
        node = MemoryRegular(self.memory, 0o777).charged()
        node.seals = seals
        node.links = 0
        node.set_owner(self._acting.uid, self._acting.gid)
        file = OpenFile(node, flags, f"/memfd:{name} (deleted)", self.contents)
        file.dentry = Dentry(node, f"memfd:{name} (deleted)", self.paths.root)
        return file

    def pipe(self, flags: int) -> tuple[PipeEnd, PipeEnd]:
        return Pipe(self.superblock).ends(flags)
