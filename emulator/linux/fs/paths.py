"""Paths: from a path in a syscall to a node, one component at a time.

The walk never hands the host a path that has a symbolic link or `..` in it, so what a path leads to is decided here
alone: symbolic links (the host's too) lead through the guest's tree, and `..` of the root is the root.

A `--sysroot` works as qemu-user's -L: an absolute path is looked up below the sysroot first (with its absolute symbolic
links inside it, too), then as it stands. A relative path leads where the absolute one does, with the directory's path
before it. What is found below the sysroot has the host's path as its path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntFlag

from emulator.linux.errors import ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EXDEV, LinuxError
from emulator.linux.fs.attributes import Attributes
from emulator.linux.fs.nodes import Directory, Node, Symlink

SYMLINK_LIMIT = 40  # linux/namei.h MAXSYMLINKS
NAME_MAX = 255  # bytes
PATH_MAX = 4096  # bytes with the NUL (uapi/linux/limits.h)
DIRECTORIES_REMEMBERED = 10_000

# Top-level names that are the machine's even if a sysroot has them, too.
MACHINE_DIRECTORIES = frozenset({"proc", "sys", "dev", "tmp"})


@dataclass(slots=True, eq=False)  # not frozen: that takes longer to make, for each component of a path
class Dentry:
    """A node and the way to it. The root is its own parent. Nobody changes one."""

    node: Node
    name: str
    above: Dentry | None

    @property
    def parent(self) -> Dentry:
        return self.above if self.above is not None else self

    @property
    def path(self) -> str:
        names = []
        here: Dentry = self
        while here.above is not None:
            names.append(here.name)
            here = here.above
        return "/" + "/".join(reversed(names))


@dataclass(slots=True)  # not frozen, as Dentry
class Found:
    """Where a path leads. Nobody changes one.

    `node` is None if only the last component is missing: it could be made in `directory`.
    """

    above: Dentry
    name: str  # "" for a path that ends in the root, `.` or `..`
    dentry: Dentry | None
    must_be_directory: bool  # the path ends in a slash
    looked_up: bool = False  # the node was found by its name in this very walk

    @property
    def directory(self) -> Directory:
        node = self.above.node
        assert isinstance(node, Directory), f"{self.above.path} has been walked through"
        return node

    @property
    def node(self) -> Node:
        """What is there; ENOENT if nothing is."""
        return self.existing.node

    def attributes(self) -> Attributes:
        """Of what is there. A walk that has just looked at it has seen them."""
        return self.node.attributes_as_found() if self.looked_up else self.node.attributes()

    @property
    def existing(self) -> Dentry:
        if self.dentry is None:
            raise LinuxError(ENOENT, self.path)
        return self.dentry

    @property
    def path(self) -> str:
        if self.dentry is not None:
            return self.dentry.path
        above = self.above.path
        return f"{above}/{self.name}" if above != "/" else f"/{self.name}"


CheckSearch = Callable[[Dentry], None]  # raises EACCES where names may not be looked up


class MagicLink(Symlink):
    """A link that leads to a node rather than to a path: /proc/self/fd/3, whose file may have no name any more."""

    __slots__ = ()

    def destination(self) -> Dentry:
        raise NotImplementedError


class _Walk:
    """One path walk: it counts the symbolic links that it follows."""

    __slots__ = ("check_search", "directories", "followed", "parent", "root", "sysroot")

    def __init__(
        self,
        root: Dentry,
        sysroot: Dentry | None,
        parent: bool,
        directories: dict[tuple[Dentry, str], Dentry],
        check_search: CheckSearch | None,
    ) -> None:
        self.check_search = check_search
        self.directories = directories
        self.root = root
        self.sysroot = sysroot
        self.parent = parent  # the name at the end is meant, never what a symbolic link there leads to
        self.followed = 0

    def find(self, start: Dentry, path: str, follow_last: bool) -> Found:
        if path.startswith("/"):
            if self.sysroot is not None and (found := self._existing(self.sysroot, path, follow_last)) is not None:
                return found
            return self._from_root(self.root, path, follow_last)
        if self.sysroot is None:
            return self._steps(start, self.root, path, follow_last)
        above = self._below_sysroot(start)
        if above is None:
            found = self._existing(self.sysroot, f"{start.path}/{path}", follow_last)
        else:
            found = self._existing(start, path, follow_last) or self._existing(self.root, above + path, follow_last)
        return self._steps(start, self.root, path, follow_last) if found is None else found

    def _existing(self, start: Dentry, path: str, follow_last: bool) -> Found | None:
        """What is at a path, if anything is."""
        followed = self.followed
        try:
            if path.startswith("/"):
                found = self._from_root(start, path, follow_last)
            else:
                found = self._steps(start, self.root, path, follow_last)
            if found.dentry is not None:
                return found
        except LinuxError as error:
            if error.code not in (ENOENT, ENOTDIR):
                raise
        self.followed = followed
        return None

    def _below_sysroot(self, start: Dentry) -> str | None:
        """The path of a directory of the sysroot as it would be without one, with a slash at its end."""
        names = []
        here: Dentry | None = start
        while here is not self.sysroot:
            if here is None:
                return None
            names.append(here.name)
            here = here.above
        return "".join(f"/{name}" for name in reversed(names)) + "/"

    def _from_root(self, root: Dentry, path: str, follow_last: bool) -> Found:
        """An absolute path. The way to its directory, if no link was on it, is walked once."""
        above, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return self._steps(root, root, path, follow_last)
        key = (root, above)
        known = self.directories.get(key)
        if known is not None:
            return self._steps(known, root, name, follow_last)
        followed = self.followed
        found = self._steps(root, root, path, follow_last)
        directory = found.above.node
        if self.followed == followed and isinstance(directory, Directory) and directory.lasting:
            self.directories[key] = found.above
        return found

    def _steps(self, here: Dentry, root: Dentry, path: str, follow_last: bool, looked_up: bool = False) -> Found:
        """Walk `path` from `here`, which this walk may have `looked_up` just now; `..` does not lead above `root`."""
        names = [name for name in path.split("/") if name not in ("", ".")]
        # a path that ends in a slash or in /. names a directory, through symbolic links
        must_be_directory = path.endswith(("/", "/.")) and bool(names)
        if must_be_directory and not self.parent:
            follow_last = True
        node = here.node
        last = len(names) - 1
        for index, name in enumerate(names):
            if not isinstance(node, Directory):
                raise LinuxError(ENOTDIR, here.path)
            if self.check_search is not None:
                self.check_search(here)
            if name == "..":
                here = self.up(here, root)
                node = here.node
                looked_up = False
                continue
            if len(name) * 4 > NAME_MAX and len(name.encode("utf-8", "surrogateescape")) > NAME_MAX:
                raise LinuxError(ENAMETOOLONG, name)
            lookup = node.lookup_as_found if looked_up else node.lookup
            child = None if here is self.sysroot and name in MACHINE_DIRECTORIES else lookup(name)
            if child is None:
                if index == last:
                    return Found(here, name, None, must_be_directory)
                raise LinuxError(ENOENT, f"{here.path}: no {name}")
            if isinstance(child, Symlink) and (follow_last or index != last):
                self.followed += 1
                if self.followed > SYMLINK_LIMIT:
                    raise LinuxError(ELOOP, path)
                self.check_link(child)
                if isinstance(child, MagicLink):
                    here = child.destination()
                    node = here.node
                    looked_up = False
                    continue
                found = self._follow(here, root, child, must_be_directory or index != last, looked_up)
                if found.dentry is None:
                    if index == last:
                        return found  # dangling: O_CREAT makes the file where the link points
                    raise LinuxError(ENOENT, found.path)
                here = found.dentry
                node = here.node
                looked_up = found.looked_up
                continue
            here = Dentry(child, name, here)
            node = child
            looked_up = True
        if must_be_directory and not isinstance(node, Directory):
            raise LinuxError(ENOTDIR, path)
        ends_in_name = path.rstrip("/").rpartition("/")[2] not in ("", ".", "..")
        return Found(here.parent, here.name if ends_in_name else "", here, must_be_directory, looked_up)

    def up(self, here: Dentry, root: Dentry) -> Dentry:
        """``..``"""
        return here if here is root else here.parent

    def check_link(self, link: Symlink) -> None:
        """Whether a symbolic link may be followed."""

    def _follow(self, here: Dentry, root: Dentry, link: Symlink, must_be_directory: bool, looked_up: bool) -> Found:
        target = link.target()
        if not target:
            raise LinuxError(ENOENT, "an empty symbolic link")
        if must_be_directory:
            target += "/"
        if target.startswith("/"):
            return self.find(here, target, True)
        return self._steps(here, root, target, True, looked_up)


class Resolve(IntFlag):
    """uapi/linux/openat2.h: what a walk may not do."""

    NO_XDEV = 1
    NO_MAGICLINKS = 2
    NO_SYMLINKS = 4
    BENEATH = 8
    IN_ROOT = 16
    CACHED = 32  # not wait for a disk: there is none


class _RestrictedWalk(_Walk):
    """openat2(2): a walk from `start` that may not leave it, or not by each way."""

    __slots__ = ("resolve", "start")

    def __init__(self, root: Dentry, start: Dentry, resolve: int, check_search: CheckSearch | None) -> None:
        super().__init__(start if resolve & Resolve.IN_ROOT else root, None, False, {}, check_search)
        self.start = start
        self.resolve = resolve

    def find(self, start: Dentry, path: str, follow_last: bool) -> Found:
        if path.startswith("/") and self.resolve & Resolve.BENEATH:
            raise LinuxError(EXDEV, f"{path} begins at the root: RESOLVE_BENEATH")
        return super().find(start, path, follow_last)

    def up(self, here: Dentry, root: Dentry) -> Dentry:
        if here is self.start and self.resolve & Resolve.BENEATH:
            raise LinuxError(EXDEV, f"{here.path}/..: RESOLVE_BENEATH")
        above = super().up(here, root)
        self._check_device(above)
        return above

    def check_link(self, link: Symlink) -> None:
        if self.resolve & Resolve.NO_SYMLINKS:
            raise LinuxError(ELOOP, "a symbolic link: RESOLVE_NO_SYMLINKS")
        if isinstance(link, MagicLink):
            if self.resolve & Resolve.NO_MAGICLINKS:
                raise LinuxError(ELOOP, "a link of /proc: RESOLVE_NO_MAGICLINKS")
            if self.resolve & (Resolve.BENEATH | Resolve.IN_ROOT | Resolve.NO_XDEV):
                raise LinuxError(EXDEV, "a link of /proc leads anywhere")

    def check_found(self, found: Found) -> None:
        """No other file system on the way down."""
        here: Dentry | None = found.dentry if found.dentry is not None else found.above
        while here is not None and here is not self.start:
            self._check_device(here)
            here = here.above

    def _check_device(self, here: Dentry) -> None:
        if self.resolve & Resolve.NO_XDEV and _device(here) != _device(self.start):
            raise LinuxError(EXDEV, f"{here.path} is another file system: RESOLVE_NO_XDEV")


def _device(dentry: Dentry) -> tuple[int, int]:
    return dentry.node.attributes().device


def _check(path: str) -> None:
    if not path:
        raise LinuxError(ENOENT, "an empty path")
    if len(path) * 4 >= PATH_MAX and len(path.encode("utf-8", "surrogateescape")) >= PATH_MAX:
        raise LinuxError(ENAMETOOLONG, f"{path[:40]}...")


class Paths:
    """The guest's tree of names: a root, and a sysroot that is looked up first."""

    def __init__(self, root: Directory, sysroot: str | None) -> None:
        self.root = Dentry(root, "", None)
        self._directories: dict[tuple[Dentry, str], Dentry] = {}
        self.check_search: CheckSearch | None = None  # of who may not look into every directory
        self.sysroot: Dentry | None = None
        if sysroot is not None:
            self.sysroot = self.find(self.root, sysroot).existing

    def find(
        self, start: Dentry, path: str, *, follow: bool = True, parent: bool = False, use_sysroot: bool = True
    ) -> Found:
        """Walk `path` from `start`.

        `follow` says what to do with a symbolic link at the end. With `parent` the name at the end is to be made,
        removed or renamed: a symbolic link there stays one even if a slash follows, and no sysroot is looked at.
        """
        _check(path)
        sysroot = self.sysroot if use_sysroot and not parent else None
        if len(self._directories) > DIRECTORIES_REMEMBERED:
            self._directories.clear()
        remembered = self._directories if self.check_search is None else {}  # what others found is not for everybody
        walk = _Walk(self.root, sysroot, parent, remembered, self.check_search)
        return walk.find(start, path, follow and not parent)

    def find_restricted(self, start: Dentry, path: str, *, follow: bool, resolve: int) -> Found:
        """The same with ``RESOLVE_*`` of openat2(2): the guest's own tree, and no sysroot."""
        _check(path)
        walk = _RestrictedWalk(self.root, start, resolve, self.check_search)
        found = walk.find(start, path, follow)
        walk.check_found(found)
        return found

    def forget(self) -> None:
        """Directories have been moved or removed."""
        self._directories.clear()
