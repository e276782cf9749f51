"""Binds: files and directories of the host that the guest finds at other paths, and what it has besides.

A bind's directory is a tree of its own (a ``HostTree``), so that what is mounted in one of them is not seen in another
that shows the same directory of the host. With a bind at ``/``, or isolated, nothing else of the host is there: the
root is that directory, or an empty one in which only mount points are. The walk (paths.py) resolves symbolic links and
``..`` in the guest's tree alone, so none leads out of a bind.
"""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Iterable
from dataclasses import dataclass

from emulator.linux.errors import EINVAL, ENOENT, ENOTDIR, EROFS, LinuxError, host_errors
from emulator.linux.fs.beneath import OpenBeneath
from emulator.linux.fs.host_files import HostDirectory, HostRegular, HostTree
from emulator.linux.fs.host_places import Anchor, Place
from emulator.linux.fs.nodes import HOST_DEVICE, HOST_STATISTICS, Directory, Node, Superblock
from emulator.linux.fs.paths import Dentry, Paths
from emulator.linux.fs.virtual_files import VirtualDirectory, Volume


@dataclass(frozen=True, slots=True)
class Bind:
    """`host`: a real path, absolute and without symbolic links. `guest`: absolute, where the guest finds it."""

    host: str
    guest: str
    writable: bool = False


def anchored(path: str, open_beneath: OpenBeneath) -> Place:
    """The directory of the host at `path`, or a file in its directory, whose descriptor is held from now on."""
    with host_errors:
        if os.path.isdir(path):
            return Place(Anchor(path, open_beneath))
        above, name = os.path.split(path)
        return Place(Anchor(above, open_beneath), name)


def host_node(tree: HostTree, path: str, writable: bool, open_beneath: OpenBeneath) -> Node:
    """What stands at a path that the user has named. LinuxError for what is neither a file nor a directory."""
    place = anchored(path, open_beneath)
    status = tree.status(place)
    if status is not None and file_mode.S_ISDIR(status.st_mode):
        return HostDirectory(tree, place, writable)
    if status is not None and file_mode.S_ISREG(status.st_mode):
        return HostRegular(tree.superblock, place, writable)
    raise LinuxError(ENOENT, path)


def node_of(bind: Bind, superblock: Superblock, open_beneath: OpenBeneath) -> Node:
    """What stands at the bind's path."""
    try:
        return host_node(HostTree(superblock), bind.host, bind.writable, open_beneath)
    except LinuxError as error:
        raise LinuxError(ENOENT, f"{bind.host} is neither a file nor a directory that could be bound") from error


class MountDirectory(VirtualDirectory):
    """A directory in which nothing is but mount points."""

    __slots__ = ()

    def refusal(self, name: str) -> LinuxError:
        return LinuxError(EROFS, f"{name}: nothing is bound here")


def empty_root(superblock: Superblock) -> MountDirectory:
    return MountDirectory(Volume(superblock, HOST_DEVICE, HOST_STATISTICS))


def mount(root: Directory, path: str, node: Node) -> None:
    """Put `node` at `path`, through symbolic links. Directories on the way that are missing are made, in memory."""
    paths = Paths(root, None)
    here = paths.root
    *above, last = [name for name in path.split("/") if name]
    for name in above:
        here = _step(paths, here, name)
    found = paths.find(here, last)
    if not found.name:
        raise LinuxError(EINVAL, f"{path} is the root, by a symbolic link")
    _directory(found.above).mount(found.name, node)


def _step(paths: Paths, here: Dentry, name: str) -> Dentry:
    found = paths.find(here, name)
    if found.dentry is None:
        made = empty_root(_superblock(paths.root.node))
        found.directory.mount(found.name, made)
        return Dentry(made, found.name, found.above)
    _directory(found.dentry)
    return found.dentry


def _directory(dentry: Dentry) -> Directory:
    if not isinstance(dentry.node, Directory):
        raise LinuxError(ENOTDIR, f"{dentry.path} is not a directory")
    return dentry.node


def _superblock(root: Node) -> Superblock:
    if isinstance(root, HostDirectory):
        return root.superblock
    assert isinstance(root, VirtualDirectory), f"a root is no {type(root).__name__}"
    return root.volume.superblock


def by_depth(binds: Iterable[Bind]) -> list[Bind]:
    """Those above others come first."""
    return sorted(binds, key=lambda bind: (bind.guest.rstrip("/").count("/"), bind.guest))
