"""Host files: the host's directories, files and symbolic links as nodes, read-only or writable.

A path in here is real: absolute, without `.`, `..` or symbolic links, because the walk that led to it took one
component at a time and looked at each with lstat. A node may outlive that (an open directory that was renamed, with a
symbolic link in its place now), so every change looks again whether the path is still real, and the last component is
opened with O_NOFOLLOW: the host never follows a symbolic link to where the guest may not write.

Devices, FIFOs and sockets of the host can be seen, never opened. File systems in which the host's kernel shows itself
(another mount of /proc, say) are not there at all.
"""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Iterable, Mapping

from emulator.linux.attributes import Attributes, DirectoryEntry
from emulator.linux.errors import EBUSY, EINVAL, ENOENT, EOPNOTSUPP, EROFS, EXDEV, LinuxError, host_errors
from emulator.linux.host_body import HostBody, changed, check_permissions, host_attributes, set_host_times
from emulator.linux.memory_files import MemoryNode
from emulator.linux.nodes import Directory, Node, Regular, Superblock, Symlink, check_rename

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
    """Something at a real path of the host. `may_write` is the policy's answer for this path and all below it."""

    __slots__ = ("may_write", "path", "superblock")

    def __init__(self, superblock: Superblock, path: str, may_write: bool) -> None:
        self.superblock = superblock
        self.path = path
        self.may_write = may_write

    @property
    def host_path(self) -> str | None:
        return self.path

    @property
    def readable_path(self) -> str:
        """The path, for looking and reading: where that is not free, it has been seen to lead where it did."""
        if self.superblock.confined:
            self._check_firm()
        return self.path

    def attributes(self) -> Attributes:
        path = self.readable_path
        with host_errors:
            return host_attributes(self.superblock, os.lstat(path), path)

    def permits(self, wanted: int) -> bool:
        if wanted & os.W_OK and not self.may_write:
            raise LinuxError(EROFS, f"{self.path}: the guest may not write here")
        return os.access(self.readable_path, wanted)

    def set_mode(self, permissions: int) -> None:
        self.check_writable()
        if self.file_type != file_mode.S_IFDIR:
            check_permissions(self.path, permissions)
        with host_errors:
            os.chmod(self.path, permissions)  # never a symbolic link: HostSymlink refuses
        self._changed()

    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None:
        self.check_writable()
        set_host_times(self.superblock, self.path, accessed_ns, modified_ns)

    def check_writable(self) -> None:
        """The policy allows it, and the path still leads to where the policy was asked about."""
        if not self.may_write:
            raise LinuxError(EROFS, f"{self.path}: the guest may not write here")
        self._check_firm()

    def _check_firm(self) -> None:
        if os.path.realpath(self._firm_path()) != self._firm_path():
            raise LinuxError(ENOENT, f"{self.path} has been moved away while it was open")

    def _firm_path(self) -> str:
        """The part of the path in which there may be no symbolic link: all of it."""
        return self.path

    def _changed(self) -> None:
        """Remember the guest's time of a change: the host has noted its own, which the guest must not see."""
        changed(self.superblock, os.lstat(self.path))


class HostRegular(HostNode, Regular):
    """A regular file of the host."""

    __slots__ = ()

    def open(self, *, write: bool, truncate: bool) -> HostBody:
        if write or truncate:
            self.check_writable()
        flags = (os.O_RDWR if write or truncate else os.O_RDONLY) | (os.O_TRUNC if truncate else 0)
        return HostBody(self.superblock, self.readable_path, flags, may_write=self.may_write)


class HostSymlink(HostNode, Symlink):
    """A symbolic link of the host."""

    __slots__ = ()

    def _firm_path(self) -> str:
        return os.path.dirname(self.path)

    def target(self) -> str:
        path = self.readable_path
        with host_errors:
            return os.readlink(path)

    def permits(self, wanted: int) -> bool:
        return True

    def set_mode(self, permissions: int) -> None:
        raise LinuxError(EOPNOTSUPP, f"{self.path}: a symbolic link has no permissions")


class HostSpecial(HostNode):
    """A device, FIFO or socket of the host: it can be looked at, and is no part of this machine."""

    __slots__ = ("_file_type",)

    def __init__(self, superblock: Superblock, path: str, may_write: bool, file_type: int) -> None:
        super().__init__(superblock, path, may_write)
        self._file_type = file_type

    @property
    def file_type(self) -> int:
        return self._file_type


class HostTree:
    """Makes nodes of host paths, and knows at which paths another kind of tree begins (`mounts`: path -> node)."""

    def __init__(self, superblock: Superblock, hidden_devices: frozenset[int] = frozenset()) -> None:
        self.superblock = superblock
        self.hidden_devices = hidden_devices
        self.mounts: dict[str, Node] = {}

    def status(self, path: str) -> os.stat_result | None:
        """lstat, or None for what is not there or is not to be seen."""
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise LinuxError.from_host(error) from error
        return None if status.st_dev in self.hidden_devices else status

    def node(self, path: str, may_write: bool) -> Node | None:
        mounted = self.mounts.get(path)
        if mounted is not None:
            return mounted
        status = self.status(path)
        if status is None:
            return None
        file_type = file_mode.S_IFMT(status.st_mode)
        if file_type == file_mode.S_IFDIR:
            return HostDirectory(self, path, may_write)
        if file_type == file_mode.S_IFREG:
            return HostRegular(self.superblock, path, may_write)
        if file_type == file_mode.S_IFLNK:
            return HostSymlink(self.superblock, path, may_write)
        return HostSpecial(self.superblock, path, may_write, file_type)

    def names(self, path: str) -> dict[str, os.stat_result]:
        """What the host's directory shows, in the host's order. Mounts are not in it."""
        found = {}
        with host_errors, os.scandir(path) as scan:
            for entry in scan:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # somebody has removed it meanwhile
                    continue
                if status.st_dev not in self.hidden_devices:
                    found[entry.name] = status
        return found

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

    def __init__(self, tree: HostTree, path: str, may_write: bool) -> None:
        super().__init__(tree.superblock, path, may_write)
        self.tree = tree

    def _below(self, name: str) -> str:
        assert name not in ("", ".", ".."), f"{name!r} names no entry"
        assert "/" not in name, f"{name!r} is not one name"
        return f"{self.path}/{name}" if self.path != "/" else "/" + name

    def lookup(self, name: str) -> Node | None:
        if self.superblock.confined:
            self._check_firm()
        return self.tree.node(self._below(name), self.may_write)

    def writable(self) -> bool:
        return self.may_write

    def entries(self) -> Iterable[DirectoryEntry]:
        return listing(self.superblock, self.tree.mounted(self.path), self.tree.names(self.readable_path))

    def mount(self, name: str, node: Node) -> None:
        self.tree.mounts[self._below(name)] = node

    def create(self, name: str, permissions: int) -> tuple[HostRegular, HostBody]:
        """EEXIST if the host has something there, a dangling symbolic link too."""
        self.check_writable()
        path = self._below(name)
        self.superblock.output.take_name()
        body = HostBody(self.superblock, path, os.O_CREAT | os.O_EXCL | os.O_RDWR, permissions, may_write=True)
        body.set_mode(permissions)  # the guest's umask is in `permissions`; the host's must not be
        self._changed()
        return HostRegular(self.superblock, path, True), body

    def temporary(self, permissions: int) -> Regular:
        self.check_writable()
        self.superblock.output.take_name()
        body = HostBody(self.superblock, self.path, os.O_TMPFILE | os.O_RDWR, permissions, may_write=True)
        return NamelessRegular(body)

    def create_directory(self, name: str, permissions: int) -> None:
        self.check_writable()
        path = self._below(name)
        self.superblock.output.take_name()
        with host_errors:
            os.mkdir(path)
            os.chmod(path, permissions)
        changed(self.superblock, os.lstat(path))
        self._changed()

    def create_symlink(self, name: str, target: str) -> None:
        self.check_writable()
        path = self._below(name)
        self.superblock.output.take_name()
        with host_errors:
            os.symlink(target, path)
        changed(self.superblock, os.lstat(path))
        self._changed()

    def add_special(self, name: str, node: Node) -> None:
        """It has a name in the machine; the host's directory does not get one."""
        self.check_writable()
        self.tree.mounts[self._below(name)] = node

    def _special(self, name: str) -> Node | None:
        node = self.tree.mounts.get(self._below(name))
        return node if isinstance(node, MemoryNode) and not isinstance(node, Directory) else None

    def link(self, name: str, node: Node) -> None:
        self.check_writable()
        if not isinstance(node, HostNode) or not node.may_write:
            raise LinuxError(EXDEV, f"{name}: a hard link to a file that the guest may not write would let it")
        node.check_writable()
        self.superblock.output.take_name()
        with host_errors:
            os.link(node.path, self._below(name), follow_symlinks=False)
        self._changed()

    def remove(self, name: str) -> None:
        self.check_writable()
        path = self._below(name)
        if self._special(name) is not None:
            del self.tree.mounts[path]
            return
        mounted = self.tree.mounts.get(path)
        if mounted is not None and mounted.host_path != path:
            raise LinuxError(EBUSY, f"{path}: another file is bound here")
        with host_errors:
            status = os.lstat(path)
            os.unlink(path)
        self._forget(status)
        self._changed()

    def remove_directory(self, name: str) -> None:
        self.check_writable()
        path = self._below(name)
        self._check_unmounted(path)
        with host_errors:
            status = os.lstat(path)
            os.rmdir(path)
        self._forget(status)
        self._changed()

    def rename(self, name: str, target: Directory, target_name: str, *, exchange: bool) -> None:
        self.check_writable()
        if not isinstance(target, HostDirectory) or not target.may_write or target.tree is not self.tree:
            raise LinuxError(EXDEV, f"{name} cannot be moved to where the guest may not write the host's files")
        target.check_writable()
        if exchange:
            raise LinuxError(EINVAL, "RENAME_EXCHANGE is not modelled on the host's file systems")
        source_path, target_path = self._below(name), target._below(target_name)
        special = self._special(name)
        if special is not None or target._special(target_name) is not None:
            self._rename_special(name, target, target_name)
            return
        self._check_unmounted(source_path)
        self._check_unmounted(target_path)
        source, replaced = self.lookup(name), target.lookup(target_name)
        if source is None:
            raise LinuxError(ENOENT, source_path)
        check_rename(source, replaced)
        with host_errors:
            status = os.lstat(target_path) if replaced is not None else None
            os.rename(source_path, target_path)
        if status is not None and not os.path.samestat(status, os.lstat(target_path)):
            self._forget(status)
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
            del self.tree.mounts[self._below(name)]
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
