"""FileTree: all the files of the guest, and the changes that it makes by their paths.

What is where, and where the guest may write, is mounted_tree.py's; what open(2) gives, openable_tree.py's.
"""

from __future__ import annotations

import stat as file_mode
from collections.abc import Callable

from emulator.linux.errors import EBUSY, EEXIST, EINVAL, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY, EPERM, LinuxError
from emulator.linux.fs.attributes import Attributes
from emulator.linux.fs.memory_files import MemoryNode
from emulator.linux.fs.nodes import Directory
from emulator.linux.fs.notifications import IN_ATTRIB
from emulator.linux.fs.openable_tree import OpenableTree
from emulator.linux.fs.paths import Dentry, Found
from emulator.linux.fs.permissions import WRITE, check_new_owner, check_owner, new_mode
from emulator.linux.fs.pinned_objects import Kept, directory_of_pins
from emulator.linux.fs.pipes import Fifo
from emulator.linux.net.sockets import Socket, SocketFile


class FileTree(OpenableTree):
    """The guest's file tree, and the operations on it that a path names."""

    def _place(self, start: Dentry, path: str) -> Found:
        """Where a name is to be made or removed."""
        return self.paths.find(start, path, parent=True)

    def change_node(self, dentry: Dentry, change: Callable[[], None], event: int = IN_ATTRIB) -> None:
        """A change of what exists: chmod, utimensat."""
        self._change(dentry.path, change)
        self.events.about_path(dentry, event)

    def _new_name(self, start: Dentry, path: str) -> Found:
        found = self._place(start, path)
        if found.dentry is not None:
            raise LinuxError(EEXIST, found.path)
        self._check_names(found)
        return found

    def set_mode(self, dentry: Dentry, of: Attributes, change: Callable[[int], None], permissions: int) -> None:
        """chmod(2) by its owner. `of`: its attributes now."""
        check_owner(self._acting, of, dentry.path)
        wanted = new_mode(self._acting, of, permissions)
        self.change_node(dentry, lambda: change(wanted))

    def set_owner(self, dentry: Dentry, uid: int | None, gid: int | None) -> None:
        """chown(2). None leaves the user or group as it is."""
        of = dentry.node.attributes()
        new_uid, new_gid = of.uid if uid is None else uid, of.gid if gid is None else gid
        check_new_owner(self._acting, of, new_uid, new_gid, dentry.path)
        if (new_uid, new_gid) != (of.uid, of.gid):
            self.change_node(dentry, lambda: dentry.node.set_owner(new_uid, new_gid))

    def check_times(self, dentry: Dentry, *, now: bool) -> None:
        """utimensat(2): an owner sets what he likes, and who may write the present time."""
        if not self._privileged:
            of = dentry.node.attributes()
            if not now:
                check_owner(self._acting, of, dentry.path)
            elif of.uid != self._acting.uid:
                self.check(dentry, WRITE)

    def make_directory(self, start: Dentry, path: str, permissions: int) -> None:
        found = self._new_name(start, path)
        self._change(found.path, lambda: found.directory.create_directory(found.name, permissions))
        self._give(found)
        self.events.created(found)

    def make_symlink(self, start: Dentry, path: str, target: str) -> None:
        if not target:
            raise LinuxError(ENOENT, "an empty symbolic link")
        found = self._new_name(start, path)
        if found.must_be_directory:
            raise LinuxError(ENOENT, f"{path}: a symbolic link's name does not end in a slash")
        self._change(found.path, lambda: found.directory.create_symlink(found.name, target))
        self._give(found)
        self.events.created(found)

    def make_node(self, start: Dentry, path: str, mode: int) -> None:
        """mknod(2) of a regular file, FIFO or socket."""
        found = self._new_name(start, path)
        directory = found.directory
        if file_mode.S_IFMT(mode) in (0, file_mode.S_IFREG):
            self._change(found.path, lambda: directory.create(found.name, mode & 0o7777) and None)
            self._give(found)
            self.events.created(found)
        elif file_mode.S_ISFIFO(mode):
            self._add_special(found, Fifo(self.superblock, mode & 0o7777))
        elif file_mode.S_ISSOCK(mode):
            self._add_special(found, SocketFile(self.superblock, mode & 0o7777))
        else:
            raise LinuxError(EPERM, f"{found.path}: devices cannot be made by mknod")

    def _add_special(self, found: Found, node: MemoryNode) -> None:
        self._change(found.path, lambda: found.directory.add_special(found.name, node.charged()))
        node.set_owner(self._acting.uid, self._acting.gid)
        self.events.created(found)

    def bind_socket(self, start: Dentry, path: str, permissions: int, socket: Socket) -> None:
        """bind(2) of a local socket to a path."""
        found = self._new_name(start, path)
        node = SocketFile(self.superblock, permissions)
        self._add_special(found, node)
        node.socket = socket

    def pin(self, start: Dentry, path: str, permissions: int, pinned: Kept) -> None:
        """BPF_OBJ_PIN"""
        found = self._new_name(start, path)
        directory = directory_of_pins(found.directory, found.path)
        directory.pin(found.name, permissions, pinned)
        self._give(found)
        self.events.created(found)

    def link(self, source: Dentry, start: Dentry, path: str) -> None:
        if isinstance(source.node, Directory):
            raise LinuxError(EPERM, f"{source.path}: a directory has one name")
        found = self._new_name(start, path)
        self._change(found.path, lambda: found.directory.link(found.name, source.node))
        self.events.linked(found, source.node)

    def remove(self, start: Dentry, path: str) -> None:
        """unlink(2)"""
        found = self._place(start, path)
        if isinstance(found.node, Directory):
            raise LinuxError(EISDIR, found.path)
        self._check_names(found, old=found.node)
        before = self.events.before([found.node])
        self._change(found.path, lambda: found.directory.remove(found.name))
        self.events.removed(found, before)

    def remove_directory(self, start: Dentry, path: str) -> None:
        """rmdir(2)"""
        found = self._place(start, path)
        if not isinstance(found.node, Directory):
            raise LinuxError(ENOTDIR, found.path)
        if not found.name:
            last = path.rstrip("/").rpartition("/")[2]
            raise LinuxError({".": EINVAL, "..": ENOTEMPTY}.get(last, EBUSY), f"{path} names no entry of a directory")
        self._check_names(found, old=found.node)
        before = self.events.before([found.node])
        self._change(found.path, lambda: found.directory.remove_directory(found.name))
        self.events.removed(found, before, directory=True)
        self._forget_ways()

    def rename(
        self,
        start: Dentry,
        path: str,
        target_start: Dentry,
        target_path: str,
        *,
        replace: bool = True,
        exchange: bool = False,
    ) -> None:
        """rename(2), and the two flags of renameat2(2)."""
        found = self._place(start, path)
        target = self._place(target_start, target_path)
        if not found.name or not target.name:
            raise LinuxError(EBUSY, f"{path} and {target_path} must both end in a name")
        source = found.node
        if target.dentry is not None and not replace:
            raise LinuxError(EEXIST, target.path)
        if target.must_be_directory and not isinstance(source, Directory):
            raise LinuxError(ENOTDIR, target_path)
        if isinstance(source, Directory):
            here = target.above
            while here.above is not None:
                if here.node is source or here.path == found.path:
                    raise LinuxError(EINVAL, f"{found.path} cannot go into itself, {target.path}")
                here = here.parent
        if not target.directory.writable():
            self._change(target.path, lambda: _refuse(target.directory, target.name))
        self._check_names(found, old=source)
        self._check_names(target, old=target.dentry.node if target.dentry is not None else None)
        above, into = found.directory, target.directory
        replaced = target.dentry.node if target.dentry is not None and not exchange else None
        before = self.events.before([replaced])
        self._change(found.path, lambda: above.rename(found.name, into, target.name, exchange=exchange))
        self.events.renamed(found, target, source, before, directory=isinstance(source, Directory))
        self._forget_ways()

    def _forget_ways(self) -> None:
        self.paths.forget()
        self._current = ("/", self.paths.root)


def _refuse(directory: Directory, name: str) -> None:
    raise directory.refusal(name)
