"""MountedTree: all the trees that the guest's files are in, where each begins, and who looks at them.

| where | what the guest has |
|---|---|
| what `--bind` names | the host's, to read, or to write as well |
| the current directory at the start, and what `--rw` names | the host's files, to read and to write |
| /tmp | the host's, with every change kept in memory |
| /proc, /sys, /dev | the machine's own |
| everything else | the host's files, to read; a write is EROFS, and each path is named once |

With `--isolate`, or a bind at `/`, everything else is not there, and /tmp is empty at the start.

The deepest of these that holds a file decides, by the file's real path: symbolic links and `..` have been resolved.
"""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self, TypeVar

from emulator.linux.arch.architecture import OpenFlags
from emulator.linux.configuration import LinuxConfig
from emulator.linux.errors import ENOENT, ENOTDIR, EROFS, LinuxError
from emulator.linux.fs import devices
from emulator.linux.fs.attributes import Attributes
from emulator.linux.fs.beneath import OpenBeneath, best_way
from emulator.linux.fs.binds import Bind, anchored, by_depth, empty_root, host_node, mount, node_of
from emulator.linux.fs.file import Caller, File
from emulator.linux.fs.file_events import FileEvents
from emulator.linux.fs.host_files import HostDirectory, HostTree, kernel_devices
from emulator.linux.fs.host_places import Everywhere, Place
from emulator.linux.fs.locks import Locks
from emulator.linux.fs.memory_files import MemoryDirectory, MemoryNode
from emulator.linux.fs.nodes import (
    MEMORY_DEVICE,
    MEMORY_STATISTICS,
    Directory,
    MemoryBudget,
    Node,
    OutputBudget,
    Regular,
    Superblock,
)
from emulator.linux.fs.open_files import Contents
from emulator.linux.fs.overlay import OverlayDirectory
from emulator.linux.fs.paths import Dentry, Found, Paths
from emulator.linux.fs.permissions import EXECUTE, WRITE, check, check_sticky, is_privileged
from emulator.linux.fs.pinned_objects import pin_root
from emulator.linux.fs.standard_streams import StandardStream
from emulator.linux.fs.virtual_files import (
    BytesFile,
    FileNode,
    Rows,
    VirtualDirectory,
    dev_volume,
    proc_volume,
    sys_volume,
    trace_volume,
)
from emulator.linux.mm.page_cache import PageCache
from emulator.linux.net.socket_names import SocketNames
from emulator.linux.process.credentials import Credentials
from emulator.linux.random import Random
from emulator.linux.tty.console import Console

MEMORY_LIMIT_BYTES = 1 << 30  # of all files kept in memory, and no more than half of the machine's memory

T = TypeVar("T")


class MountedTree:
    """The guest's file tree: what is where, and what whoever asks finds by a path."""

    def __init__(
        self,
        *,
        now: Callable[[], int],
        random: Random,
        message: Callable[[str], None],
        pages: PageCache,
        open_flags: OpenFlags,
        config: LinuxConfig,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
        overlay_path: str = "/tmp",
        open_beneath: OpenBeneath | None = None,
    ) -> None:
        """Raises LinuxError for a bind that cannot be."""
        binds = by_depth(config.binds)
        at_root = next((bind for bind in binds if bind.guest == "/"), None)
        self.isolated = config.isolated or at_root is not None
        self.message = message
        self.open_flags = open_flags
        budget = MemoryBudget(memory_limit_bytes, message, pages.reserve)
        output = OutputBudget(config.most_output_bytes, message)
        self.superblock = Superblock(
            now, budget, output, config.user, os.geteuid(), os.getegid(), hidden_devices=kernel_devices()
        )
        self._open_beneath = open_beneath if open_beneath is not None else best_way()
        self.contents = Contents(pages)
        self.sockets = SocketNames()
        self.events = FileEvents()
        self.locks = Locks()
        self.console = Console()
        self.user_terminal: StandardStream | None = None  # the first of the standard streams that is one
        self.tree = HostTree(self.superblock)
        host = Everywhere()
        self.root: Directory = HostDirectory(self.tree, Place(host), False)
        if at_root is not None:
            self.root = _root_of(at_root, self.superblock, self._open_beneath)
        elif self.isolated:
            self.root = empty_root(self.superblock)
        self.proc = VirtualDirectory(proc_volume(self.superblock))
        self.sys = VirtualDirectory(sys_volume(self.superblock))
        traces = VirtualDirectory(trace_volume(self.superblock))
        self.sys.add("kernel/tracing", traces)
        self.sys.add("kernel/debug/tracing", traces)  # where debugfs has it, too
        self.sys.add("fs/bpf", pin_root(self.superblock))
        self.dev = VirtualDirectory(dev_volume(self.superblock))
        devices.fill(self.dev, self.dev.volume, random)
        self.memory = replace(self.superblock, device=MEMORY_DEVICE, statistics=MEMORY_STATISTICS)
        self.dev.add("shm", MemoryDirectory(self.memory, 0o1777))
        for name, node in (("proc", self.proc), ("sys", self.sys), ("dev", self.dev)):
            self.root.mount(name, node)
        self._bound: list[Node] = []
        overlay_path = os.path.realpath(overlay_path)
        if self.isolated:
            self.root.mount("tmp", OverlayDirectory(self.tree, None, 0o1777))
        elif os.path.isdir(overlay_path):
            place = Place(host, overlay_path[1:])
            self.tree.mounts[overlay_path] = OverlayDirectory.over(self.tree, place, place.status())
        for bind in binds:
            if bind is not at_root:
                bound = node_of(bind, self.superblock, self._open_beneath)
                mount(self.root, bind.guest, bound)
                self._bound.append(bound)
        self._sysroot = os.path.realpath(config.sysroot) if config.sysroot is not None else None
        self._look_again()
        for path in config.writable_paths:
            self.allow_writing(path)

    def allow_writing(self, path: str) -> None:
        """The guest may write `path` of the host and all below it. LinuxError if it does not exist.

        Where something is bound, the bind has said so; and in isolation nothing else is there.
        """
        if self.isolated or self._is_bound(path):
            return
        real = os.path.realpath(path)
        if real == "/":
            self.root = HostDirectory(self.tree, anchored(real, self._open_beneath), True)
            self._look_again()
            return
        if real.split("/")[1] in ("proc", "sys", "dev"):
            return
        try:
            self.tree.mounts[real] = host_node(self.tree, real, True, self._open_beneath)
        except LinuxError as error:
            raise LinuxError(ENOENT, f"{path} is neither a file nor a directory that the guest could write") from error
        self._look_again()

    def _is_bound(self, path: str) -> bool:
        """Whether a bind decides what the guest finds there."""
        here = self.paths.find(self.paths.root, path, use_sysroot=False).dentry if self._bound else None
        while here is not None and not any(here.node is node for node in self._bound):
            here = here.above
        return here is not None

    def _look_again(self) -> None:
        """Ways that have been walked may lead through another tree now."""
        self.paths = Paths(self.root, self._sysroot)
        self._acting, self._privileged = Credentials(), True
        self._current: tuple[str, Dentry] = ("/", self.paths.root)

    def register(
        self, path: str, factory: Callable[[Caller, int], File], mode: int = file_mode.S_IFREG | 0o444
    ) -> None:
        """A file of /proc, /sys or /dev that another room answers: `factory(task, flags)` opens it."""
        tree, below = self._virtual(path)
        tree.add(below, FileNode(tree.volume, factory, mode))

    def register_text(
        self,
        path: str,
        text: str | Callable[[], str | bytes],
        store: Callable[[bytes], None] | None = None,
        clear: Callable[[], None] | None = None,
    ) -> None:
        """A file of /proc, /sys or /dev with a text; `store` takes what is written there, `clear` hears of O_TRUNC."""
        tree, below = self._virtual(path)
        tree.add_text(below, text, store, clear)

    def register_bytes(self, path: str, content: Callable[[], bytes]) -> None:
        """A file of /proc, /sys or /dev that says its size. `content` is always the same."""
        tree, below = self._virtual(path)
        tree.add(below, BytesFile(tree.volume, content))

    def unregister(self, path: str) -> None:
        """What has been registered at a path, and all below it, is there no more."""
        tree, below = self._virtual(path)
        tree.take_away(below)
        self.paths.forget()

    def register_late(self, path: str, rows: Rows) -> None:
        """A directory of /proc, /sys or /dev whose files are made when somebody first looks into it."""
        tree, below = self._virtual(path)
        tree.add_late(below, rows)

    def register_directory(self, path: str) -> None:
        """A directory of /proc, /sys or /dev, which may stay empty."""
        tree, below = self._virtual(path)
        tree.directory(below)

    def _virtual(self, path: str) -> tuple[VirtualDirectory, str]:
        """Which of the machine's own trees a path is in, and where there."""
        _, top, below = path.split("/", 2)
        trees = {"proc": self.proc, "sys": self.sys, "dev": self.dev}
        if top not in trees:
            raise ValueError(f"{path} is not below /proc, /sys or /dev")
        return trees[top], below

    def mount_proc(self, root: VirtualDirectory) -> None:
        """Processes are not this file's business: whoever knows them brings the root of /proc."""
        self.proc = root
        self.root.mount("proc", root)

    def standard_stream(self, host_descriptor: int, interactive: bool = True) -> StandardStream:
        stream = StandardStream.of_host(self.superblock, self.console, host_descriptor, interactive)
        if stream.is_terminal and self.user_terminal is None:
            self.user_terminal = stream
        return stream

    # ---- who acts

    def act_for(self, credentials: Credentials) -> Self:
        """What is asked next is asked by who has these."""
        if credentials is not self._acting:
            self._acting = credentials
            self._privileged = is_privileged(credentials)
            self.paths.check_search = None if self._privileged else self._check_search
        return self

    def _check_search(self, directory: Dentry) -> None:
        check(self._acting, directory.node, EXECUTE, directory.path)

    def check(self, dentry: Dentry, wanted: int) -> None:
        """EACCES where mode and owner do not allow it (a sum of R_OK, W_OK, X_OK)."""
        if not self._privileged:
            check(self._acting, dentry.node, wanted, dentry.path)

    def _check_names(self, found: Found, *, old: Node | None = None) -> None:
        """Whether a name may be made in a directory, or `old` be taken out of it."""
        if not self._privileged:
            check(self._acting, found.directory, WRITE | EXECUTE, found.above.path)
            if old is not None:
                check_sticky(self._acting, found.directory.attributes(), old.attributes(), found.path)

    def _give(self, found: Found, node: Node | None = None) -> None:
        """What has just been made belongs to who has made it; its group may be the directory's."""
        uid, gid = self._acting.uid, self._acting.gid
        above = found.directory
        inherits = isinstance(above, MemoryNode) and bool(above.mode & file_mode.S_ISGID)
        if isinstance(above, MemoryNode) and inherits:
            gid = above.gid
        if (uid, gid) == ((0, 0) if isinstance(above, MemoryNode) else self.superblock.user):
            return
        made = above.lookup(found.name) if node is None else node
        if made is not None:
            made.set_owner(uid, gid)
            if inherits and isinstance(made, MemoryDirectory):
                made.set_mode(file_mode.S_IMODE(made.mode) | file_mode.S_ISGID)

    # ---- paths

    def directory(self, path: str) -> Dentry:
        """The current directory that `path` names. The last one asked for is remembered."""
        if self._current[0] != path:
            with self._as_root():
                dentry = self.paths.find(self.paths.root, path, use_sysroot=False).existing
            if not isinstance(dentry.node, Directory):
                raise LinuxError(ENOTDIR, path)
            self._current = (path, dentry)
        return self._current[1]

    @contextmanager
    def _as_root(self) -> Iterator[None]:
        """What a process is in already it need not be allowed to find."""
        check_search, self.paths.check_search = self.paths.check_search, None
        try:
            yield
        finally:
            self.paths.check_search = check_search

    def find(self, start: Dentry, path: str, *, follow: bool = True) -> Dentry:
        """What exists at a path."""
        return self.paths.find(start, path, follow=follow).existing

    def attributes(self, start: Dentry, path: str, *, follow: bool = True) -> Attributes:
        """stat(2) and lstat(2)"""
        return self.paths.find(start, path, follow=follow).attributes()

    def read_whole(self, path: str, most_bytes: int) -> bytes | None:
        """Of the regular file at an absolute path, for whoever looks at the machine from outside; None if none is."""
        try:
            node = self.find(self.paths.root, path).node
            if not isinstance(node, Regular):
                return None
            body = node.open(write=False, truncate=False)
            return body.read_at(0, min(body.size(), most_bytes))
        except LinuxError:
            return None

    def _change(self, path: str, change: Callable[[], T]) -> T:
        """Do what may be refused; a refusal is named to the user."""
        try:
            return change()
        except LinuxError as error:
            if error.code == EROFS:
                option = "--bind HOST:GUEST:rw" if self.isolated else "--rw PATH"
                self.message(f"{path}: the guest may not write here (EROFS); {option} allows it")
            raise


def _root_of(bind: Bind, superblock: Superblock, open_beneath: OpenBeneath) -> Directory:
    root = node_of(bind, superblock, open_beneath)
    if not isinstance(root, Directory):
        raise LinuxError(ENOTDIR, f"{bind.host} is not a directory: it cannot be the root")
    return root
