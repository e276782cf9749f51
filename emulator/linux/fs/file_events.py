"""FileEvents: what happens in the file tree, as notifications want to hear it: by inode, and by name in the directory.

The order of events is that of Linux (include/linux/fsnotify.h, fs/namei.c).
"""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

from emulator.linux.fs.attributes import Attributes
from emulator.linux.fs.nodes import Directory, Node
from emulator.linux.fs.notifications import (
    IN_ATTRIB,
    IN_CLOSE_NOWRITE,
    IN_CLOSE_WRITE,
    IN_CREATE,
    IN_DELETE,
    IN_ISDIR,
    IN_MOVE_SELF,
    IN_MOVED_FROM,
    IN_MOVED_TO,
    IN_OPEN,
    Notifications,
)
from emulator.linux.fs.paths import Dentry, Found


class Opened(Protocol):
    """A file that a path has opened (a ``NodeFile``)."""

    dentry: Dentry | None

    @property
    def writable(self) -> bool: ...
    @property
    def is_open(self) -> bool: ...

    def attributes(self) -> Attributes: ...


class FileEvents:
    """Tells `notifications`. As long as nobody watches anything, nothing is looked up."""

    def __init__(self) -> None:
        self.notifications = Notifications()
        self._opened: WeakSet[Opened] = WeakSet()
        self._nameless: set[int] = set()  # inodes without a name, while they are open

    def about(self, file: Opened, mask: int) -> None:
        """Something happened to what is open: its directory hears that with its name, and then the inode itself."""
        if self.notifications and file.dentry is not None:
            attributes = file.attributes()
            self._about(file.dentry, attributes.inode, attributes.mode, mask, nameless=not attributes.links)

    def about_path(self, dentry: Dentry, mask: int) -> None:
        """... to what has a name."""
        if self.notifications:
            self._about(dentry, dentry.node.inode, dentry.node.file_type, mask)

    def _about(self, dentry: Dentry, inode: int, mode: int, mask: int, *, nameless: bool = False) -> None:
        mask |= IN_ISDIR if file_mode.S_ISDIR(mode) else 0
        if dentry.above is not None and dentry.name:
            self.notifications.tell(dentry.above.node.inode, mask, os.fsencode(dentry.name), nameless=nameless)
        self.notifications.tell(inode, mask)

    def opened(self, file: Opened) -> None:
        self._opened.add(file)
        self.about(file, IN_OPEN)

    def closed(self, file: Opened) -> None:
        """By its last descriptor."""
        self._opened.discard(file)
        self.about(file, IN_CLOSE_WRITE if file.writable else IN_CLOSE_NOWRITE)
        if self._nameless:
            inode = file.attributes().inode
            if inode in self._nameless and not self._is_open(inode):
                self._nameless.remove(inode)
                self.notifications.gone(inode)

    def _is_open(self, inode: int) -> bool:
        return any(file.is_open and file.attributes().inode == inode for file in self._opened)

    def created(self, found: Found) -> None:
        """A new name: of something new, or one more."""
        if self.notifications:
            made = found.directory.lookup(found.name)
            self._named(found.directory, found.name, IN_CREATE, isinstance(made, Directory))

    def linked(self, found: Found, node: Node) -> None:
        if self.notifications:
            self.notifications.tell(node.inode, IN_ATTRIB)
            self._named(found.directory, found.name, IN_CREATE, directory=False)

    def _named(self, above: Node, name: str, mask: int, directory: bool, cookie: int = 0) -> None:
        self.notifications.tell(above.inode, mask | (IN_ISDIR if directory else 0), os.fsencode(name), cookie)

    def before(self, nodes: Iterable[Node | None]) -> list[tuple[int, int]]:
        """Of what may lose its name: inodes and links."""
        if not self.notifications:
            return []
        found = [node.attributes() for node in nodes if node is not None]
        return [(attributes.inode, attributes.links) for attributes in found]

    def removed(self, found: Found, before: list[tuple[int, int]], *, directory: bool = False) -> None:
        """A name is gone, and with the last one, if nobody has it open, the inode."""
        if not self.notifications:
            return
        for inode, links in before:
            if not directory:
                self.notifications.tell(inode, IN_ATTRIB)
            self._lost(inode, links, directory=directory)
        self._named(found.directory, found.name, IN_DELETE, directory)

    def _lost(self, inode: int, links: int, *, directory: bool) -> None:
        if links > 1 and not directory:
            return
        if self._is_open(inode):
            self._nameless.add(inode)
        else:
            self.notifications.gone(inode)

    def renamed(
        self, found: Found, target: Found, moved: Node, replaced: list[tuple[int, int]], *, directory: bool
    ) -> None:
        """`replaced` has been at the target; nothing, or what is gone now."""
        if not self.notifications:
            return
        cookie = self.notifications.new_cookie()
        inode = moved.inode
        self._named(found.directory, found.name, IN_MOVED_FROM, directory, cookie)
        self._named(target.directory, target.name, IN_MOVED_TO, directory, cookie)
        for gone, _ in replaced:
            self.notifications.tell(gone, IN_ATTRIB | (IN_ISDIR if directory else 0))
        self.notifications.tell(inode, IN_MOVE_SELF)
        for gone, links in replaced:
            self._lost(gone, links, directory=directory)
