"""Host files: the host's directories, files and symbolic links as nodes, read-only or writable.

The walk that led to a node took one component at a time and followed no link of the host's; a node is a `Place`, which
goes the same way again at each call, by descriptors. An open directory that was moved away, or has a symbolic link in
its place now, is not there any more.

Devices, FIFOs and sockets of the host can be seen, never opened. File systems in which the host's kernel shows itself
(another mount of /proc, say) are not there at all.
"""

from __future__ import annotations

import contextlib
import os
import stat as file_mode
from collections.abc import Iterable, Mapping

from emulator.linux.errors import EBUSY, EINVAL, ENOENT, EOPNOTSUPP, EROFS, EXDEV, LinuxError, host_errors
from emulator.linux.fs.attributes import Attributes, DirectoryEntry
from emulator.linux.fs.host_body import (
    HostBody,
    changed,
    check_permissions,
    host_attributes,
    new_host_times,
    note_times,
)
from emulator.linux.fs.host_places import Place
from emulator.linux.fs.memory_files import MemoryNode
from emulator.linux.fs.nodes import Directory, Node, Regular, Superblock, Symlink, check_rename

# fmt: off
KERNEL_FILE_SYSTEMS = frozenset({
    "proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs",
    "efivarfs", "bpf", "pstore", "mqueue", "fusectl", "binfmt_misc", "rpc_pipefs", "nsfs", "selinuxfs",
})
# fmt: on


def kernel_devices(mountinfo_path: str = "/proc/self/mountinfo") -> frozenset[int]:
    """st_dev of the host's mounted file systems that are no user's files."""
    devices = set()
    try:
        with open(mountinfo_path, encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:  # proc(5): ID parent major:minor root mount-point options [tags] - type source options
                fields, _, rest = line.partition(" - ")
                if rest.split(" ", 1)[0] in KERNEL_FILE_SYSTEMS:
                    major, minor = fields.split()[2].split(":")
                    devices.add(os.makedev(int(major), int(minor)))
    except OSError:
        for path in ("/proc", "/sys", "/dev"):
            if os.path.exists(path):
                devices.add(os.lstat(path).st_dev)
    return frozenset(devices)


class HostNode(Node):
    """Something at a place of the host. `may_write` is the policy's answer for this place and all below it."""

    __slots__ = ("found", "may_write", "place", "superblock")

    def __init__(self, superblock: Superblock, place: Place, may_write: bool) -> None:
        self.superblock = superblock
        self.place = place
        self.may_write = may_write
        self.found: os.stat_result | None = None  # what the walk saw that led here, until somebody asks

    @property
    def path(self) -> str:
        return self.place.path

    def status(self) -> os.stat_result:
        with host_errors:
            status = self.place.status()
        if file_mode.S_IFMT(status.st_mode) != self.file_type:
            raise LinuxError(ENOENT, f"{self.path} has been replaced while it was open")
        if status.st_dev in self.superblock.hidden_devices:
            raise LinuxError(ENOENT, f"{self.path} is another file system now, which is not to be seen")
        return status

    def _just_found(self) -> bool:
        """Whether the walk that led here is the present one: it goes on with the node at once."""
        found, self.found = self.found, None
        return found is not None

    def attributes(self) -> Attributes:
        return self._attributes(self.status())

    def attributes_as_found(self) -> Attributes:
        status, self.found = self.found, None
        return self._attributes(self.status() if status is None else status)

    def _attributes(self, status: os.stat_result) -> Attributes:
        return host_attributes(self.superblock, status, self.place, writable=self.may_write)

    def permits(self, wanted: int) -> bool:
        if wanted & os.W_OK:
            self.check_writable()
        with host_errors:
            return self.place.permits(wanted, again=self._just_found())

    def set_mode(self, permissions: int) -> None:
        self.check_writable()
        check_permissions(self.path, permissions)
        with host_errors:
            self.place.set_mode(permissions)
        self._changed()

    @property
    def asks_for_owner(self) -> bool:
        """What is only read every user of the guest may read as the host's may, by whose rights it is opened."""
        return self.may_write

    def set_owner(self, uid: int, gid: int) -> None:
        """The machine remembers it, as long as it runs: the host's file stays whose it is."""
        self.check_writable()
        status = self.status()
        self.superblock.owners[status.st_dev, status.st_ino] = uid, gid
        changed(self.superblock, status)

    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None:
        self.check_writable()
        status = self.status()
        with host_errors:
            self.place.set_times(new_host_times(self.superblock, status, accessed_ns, modified_ns))
        note_times(self.superblock, status, modified_ns)

    def check_writable(self) -> None:
        if not self.may_write:
            raise LinuxError(EROFS, f"{self.path}: the guest may not write here")

    def _changed(self) -> None:
        """Remember the guest's time of a change: the host has noted its own, which the guest must not see."""
        _note_change(self.superblock, self.place)


def _note_change(superblock: Superblock, place: Place) -> None:
    """Done is done: if somebody has moved it away since, it keeps the host's time."""
    with contextlib.suppress(OSError):
        changed(superblock, place.status())


class HostRegular(HostNode, Regular):
    """A regular file of the host."""

    __slots__ = ()

    def open(self, *, write: bool, truncate: bool) -> HostBody:
        if write or truncate:
            self.check_writable()
        flags = (os.O_RDWR if write or truncate else os.O_RDONLY) | (os.O_TRUNC if truncate else 0)
        return HostBody(self.superblock, self.place, flags, may_write=self.may_write, again=self._just_found())


class HostSymlink(HostNode, Symlink):
    """A symbolic link of the host."""

    __slots__ = ()

    def target(self) -> str:
        with host_errors:
            return self.place.target(again=self._just_found())

    def permits(self, wanted: int) -> bool:
        return True

    def set_mode(self, permissions: int) -> None:
        raise LinuxError(EOPNOTSUPP, f"{self.path}: a symbolic link has no permissions")


class HostSpecial(HostNode):
    """A device, FIFO or socket of the host: it can be looked at, and is no part of this machine."""

    __slots__ = ("_file_type",)

    def __init__(self, superblock: Superblock, place: Place, may_write: bool, file_type: int) -> None:
        super().__init__(superblock, place, may_write)
        self._file_type = file_type

    @property
    def file_type(self) -> int:
        return self._file_type


class HostTree:
    """Makes nodes of places, and knows at which paths another kind of tree begins (`mounts`: path -> node)."""

    def __init__(self, superblock: Superblock) -> None:
        self.superblock = superblock
        self.mounts: dict[str, Node] = {}

    def status(self, place: Place, above: os.stat_result | None = None) -> os.stat_result | None:
        """lstat, or None for what is not there or is not to be seen."""
        try:
            status = place.status(above)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise LinuxError.from_host(error) from error
        return None if status.st_dev in self.superblock.hidden_devices else status

    def node(self, place: Place, may_write: bool, above: os.stat_result | None = None) -> Node | None:
        mounted = self.mounts.get(place.path)
        if mounted is not None:
            return mounted
        status = self.status(place, above)
        if status is None:
            return None
        node = self._made(place, may_write, file_mode.S_IFMT(status.st_mode))
        node.found = status
        return node

    def _made(self, place: Place, may_write: bool, file_type: int) -> HostNode:
        if file_type == file_mode.S_IFDIR:
            return HostDirectory(self, place, may_write)
        if file_type == file_mode.S_IFREG:
            return HostRegular(self.superblock, place, may_write)
        if file_type == file_mode.S_IFLNK:
            return HostSymlink(self.superblock, place, may_write)
        return HostSpecial(self.superblock, place, may_write, file_type)

    def names(self, place: Place) -> dict[str, os.stat_result]:
        """What the host's directory shows, in the host's order. Mounts are not in it."""
        hidden = self.superblock.hidden_devices
        with host_errors:
            return {name: status for name, status in place.names().items() if status.st_dev not in hidden}

    def mounted(self, path: str) -> dict[str, Node]:
        """The trees that begin directly below `path`."""
        prefix = path if path.endswith("/") else path + "/"
        return {
            mount[len(prefix) :]: node
            for mount, node in self.mounts.items()
            if mount.startswith(prefix) and "/" not in mount[len(prefix) :]
        }


def listing(
    superblock: Superblock, nodes: Mapping[str, Node], statuses: Mapping[str, os.stat_result]
) -> list[DirectoryEntry]:
    """Names in order: all `nodes`, and what the host has besides (no nodes are made of that: a listing is cheap)."""
    of_host = superblock.inodes.of_host
    entries = []
    for name in sorted(nodes.keys() | statuses.keys()):
        node = nodes.get(name)
        if node is not None:
            inode, mode = node.inode, node.file_type
        else:
            status = statuses[name]
            inode, mode = of_host(status.st_dev, status.st_ino), status.st_mode
        entries.append(DirectoryEntry(inode, mode, os.fsencode(name)))
    return entries


class HostDirectory(HostNode, Directory):
    """A directory of the host."""

    __slots__ = ("tree",)

    def __init__(self, tree: HostTree, place: Place, may_write: bool) -> None:
        super().__init__(tree.superblock, place, may_write)
        self.tree = tree

    def lookup(self, name: str) -> Node | None:
        return self.tree.node(self.place.child(name), self.may_write)

    def lookup_as_found(self, name: str) -> Node | None:
        return self.tree.node(self.place.child(name), self.may_write, self.found)

    def writable(self) -> bool:
        return self.may_write

    def entries(self) -> Iterable[DirectoryEntry]:
        return listing(self.superblock, self.tree.mounted(self.path), self.tree.names(self.place))

    def mount(self, name: str, node: Node) -> None:
        self.tree.mounts[self.place.child(name).path] = node

    def _new_name(self, name: str) -> Place:
        self.check_writable()
        self.superblock.output.take_name()
        return self.place.child(name)

    def create(self, name: str, permissions: int) -> tuple[HostRegular, HostBody]:
        """EEXIST if the host has something there, a dangling symbolic link too."""
        place = self._new_name(name)
        body = HostBody(self.superblock, place, os.O_CREAT | os.O_EXCL | os.O_RDWR, permissions, may_write=True)
        body.set_mode(permissions)  # the guest's umask is in `permissions`; the host's must not be
        self._changed()
        return HostRegular(self.superblock, place, True), body

    def temporary(self, permissions: int) -> Regular:
        self.check_writable()
        self.superblock.output.take_name()
        body = HostBody(self.superblock, self.place, os.O_TMPFILE | os.O_RDWR, permissions, may_write=True)
        return NamelessRegular(body)

    def create_directory(self, name: str, permissions: int) -> None:
        place = self._new_name(name)
        with host_errors:
            place.make_directory()
            place.set_mode(permissions)
        _note_change(self.superblock, place)
        self._changed()

    def create_symlink(self, name: str, target: str) -> None:
        place = self._new_name(name)
        with host_errors:
            place.make_symlink(target)
        _note_change(self.superblock, place)
        self._changed()

    def add_special(self, name: str, node: Node) -> None:
        """It has a name in the machine; the host's directory does not get one."""
        self.check_writable()
        self.tree.mounts[self.place.child(name).path] = node

    def _special(self, name: str) -> Node | None:
        node = self.tree.mounts.get(self.place.child(name).path)
        return node if isinstance(node, MemoryNode) and not isinstance(node, Directory) else None

    def link(self, name: str, node: Node) -> None:
        self.check_writable()
        if not isinstance(node, HostNode) or not node.may_write:
            raise LinuxError(EXDEV, f"{name}: a hard link to a file that the guest may not write would let it")
        node.status()  # ENOENT if it is not what it was
        place = self._new_name(name)
        with host_errors:
            place.make_link(node.place)
        self._changed()

    def remove(self, name: str) -> None:
        self.check_writable()
        place = self.place.child(name)
        if self._special(name) is not None:
            del self.tree.mounts[place.path]
            return
        mounted = self.tree.mounts.get(place.path)
        if mounted is not None and not (isinstance(mounted, HostNode) and mounted.path == place.path):
            raise LinuxError(EBUSY, f"{place.path}: another file is bound here")
        with host_errors:
            status = place.status()
            place.remove()
        self._forget(status)
        self._changed()

    def remove_directory(self, name: str) -> None:
        self.check_writable()
        place = self.place.child(name)
        self._check_unmounted(place.path)
        with host_errors:
            status = place.status()
            place.remove_directory()
        self._forget(status)
        self._changed()

    def rename(self, name: str, target: Directory, target_name: str, *, exchange: bool) -> None:
        self.check_writable()
        if not isinstance(target, HostDirectory) or not target.may_write or target.tree is not self.tree:
            raise LinuxError(EXDEV, f"{name} cannot be moved to where the guest may not write the host's files")
        if exchange:
            raise LinuxError(EINVAL, "RENAME_EXCHANGE is not modelled on the host's file systems")
        source_place, target_place = self.place.child(name), target.place.child(target_name)
        special = self._special(name)
        if special is not None or target._special(target_name) is not None:
            self._rename_special(name, target, target_name)
            return
        self._check_unmounted(source_place.path)
        self._check_unmounted(target_place.path)
        source, replaced = self.lookup(name), target.lookup(target_name)
        if source is None:
            raise LinuxError(ENOENT, source_place.path)
        check_rename(source, replaced)
        with host_errors:
            source_place.rename(target_place)
        if isinstance(source, HostNode) and isinstance(replaced, HostNode):
            old, new = replaced.found, source.found
            if old is not None and new is not None and not os.path.samestat(old, new):  # two names of one file stay
                self._forget(old)
        self._changed()
        target._changed()

    def _rename_special(self, name: str, target: HostDirectory, target_name: str) -> None:
        """One of the two is a FIFO or socket of the machine's."""
        source, replaced = self.lookup(name), target.lookup(target_name)
        if source is None:
            raise LinuxError(ENOENT, name)
        if source is replaced:
            return
        check_rename(source, replaced)
        if replaced is not None:
            target.remove(target_name)
        if self._special(name) is None:
            self.rename(name, target, target_name, exchange=False)
        else:
            del self.tree.mounts[self.place.child(name).path]
            target.add_special(target_name, source)

    def _check_unmounted(self, path: str) -> None:
        """A tree that begins at or below `path` must stay where the policy put it."""
        for mounted in self.tree.mounts:
            if mounted == path or mounted.startswith(path + "/"):
                raise LinuxError(EBUSY, f"{path} holds {mounted}, which the machine needs there")

    def _forget(self, status: os.stat_result) -> None:
        """The name is gone; if it was the last one, so is the inode."""
        if status.st_nlink <= 1 or file_mode.S_ISDIR(status.st_mode):
            self.superblock.inodes.forget_host(status.st_dev, status.st_ino)
            self.superblock.owners.pop((status.st_dev, status.st_ino), None)
            self.superblock.changed_ns.pop((status.st_dev, status.st_ino), None)


class NamelessRegular(Regular):
    """An O_TMPFILE file of the host: nothing but its open body. It cannot be given a name later."""

    __slots__ = ("body",)

    def __init__(self, body: HostBody) -> None:
        self.body = body

    def attributes(self) -> Attributes:
        return self.body.attributes()

    def open(self, *, write: bool, truncate: bool) -> HostBody:
        if truncate:
            self.body.truncate(0)
        return self.body
