"""FileTree: all the files of the guest. Puts the trees together and says where the guest may write.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from emulator.arch.architecture import OpenFlags
from emulator.linux import devices
from emulator.linux.attributes import Attributes
from emulator.linux.beneath import OpenBeneath, best_way
from emulator.linux.binds import Bind, anchored, by_depth, empty_root, host_node, mount, node_of
from emulator.linux.console import Console
from emulator.linux.credentials import Credentials
from emulator.linux.errors import (
    EACCES,
    EBUSY,
    EEXIST,
    EINVAL,
    EISDIR,
    ELOOP,
    ENOENT,
    ENOTDIR,
    ENOTEMPTY,
    ENXIO,
    EPERM,
    EROFS,
    LinuxError,
)
from emulator.linux.file import (
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
from emulator.linux.file_events import FileEvents
from emulator.linux.host_files import HostDirectory, HostTree, kernel_devices
from emulator.linux.host_places import Everywhere, Place
from emulator.linux.locks import Locks
from emulator.linux.memory_files import MemoryDirectory, MemoryNode, MemoryRegular
from emulator.linux.nodes import (
    MEMORY_DEVICE,
    MEMORY_STATISTICS,
    Directory,
    MemoryBudget,
    Node,
    OutputBudget,
    Regular,
    Superblock,
    Symlink,
)
from emulator.linux.notifications import IN_ATTRIB, IN_MODIFY
from emulator.linux.open_files import Contents, OpenDirectory, OpenFile, PathFile
from emulator.linux.overlay import OverlayDirectory
from emulator.linux.page_cache import PageCache
from emulator.linux.paths import Dentry, Found, Paths
from emulator.linux.permissions import (
    EXECUTE,
    READ,
    WRITE,
    check,
    check_new_owner,
    check_owner,
    check_sticky,
    is_privileged,
    new_mode,
)
from emulator.linux.pipes import Fifo, Pipe, PipeEnd
from emulator.linux.random import Random
from emulator.linux.socket_names import SocketNames
from emulator.linux.sockets import Socket, SocketFile
from emulator.linux.standard_streams import StandardStream
from emulator.linux.virtual_files import (
    FileNode,
    OpensItself,
    Rows,
    VirtualDirectory,
    dev_volume,
    proc_volume,
    sys_volume,
    trace_volume,
)

MEMORY_LIMIT_BYTES = 1 << 30  # of all files kept in memory, and no more than half of the machine's memory
MOST_OUTPUT_BYTES = 16 << 30  # that the guest may write to the host
O_TMPFILE_BIT = 0o20000000  # __O_TMPFILE: O_TMPFILE is this and O_DIRECTORY
KEPT_FLAGS = ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC)  # what fcntl(F_GETFL) shows later

ACCESS_MODES = (READ, WRITE, READ | WRITE, READ | WRITE)  # by O_ACCMODE

T = TypeVar("T")


class FileTree:
    """The guest's file tree, and the operations on it that a path names."""

    def __init__(
        self,
        *,
        now: Callable[[], int],
        random: Random,
        message: Callable[[str], None],
        pages: PageCache,
        open_flags: OpenFlags,
        sysroot: str | None = None,
        writable_paths: Iterable[str] = (),
        binds: Iterable[Bind] = (),
        isolated: bool = False,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
        output_limit_bytes: int = MOST_OUTPUT_BYTES,
        user: tuple[int, int] = (0, 0),
        overlay_path: str = "/tmp",
        open_beneath: OpenBeneath | None = None,
    ) -> None:
        """Raises LinuxError for a bind that cannot be."""
        binds = by_depth(binds)
        at_root = next((bind for bind in binds if bind.guest == "/"), None)
        self.isolated = isolated or at_root is not None
        self.message = message
        self.open_flags = open_flags
        budget = MemoryBudget(memory_limit_bytes, message, pages.reserve)
        output = OutputBudget(output_limit_bytes, message)
        self.superblock = Superblock(
            now, budget, output, user, os.geteuid(), os.getegid(), hidden_devices=kernel_devices()
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
        self.sys.add("kernel/tracing", VirtualDirectory(trace_volume(self.superblock)))
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
        self._sysroot = os.path.realpath(sysroot) if sysroot is not None else None
        self._look_again()
        for path in writable_paths:
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

    def register(self, path: str, factory: Callable[[Caller, int], File]) -> None:
        """A file of /proc, /sys or /dev that another room answers: `factory(task, flags)` opens it."""
        tree, below = self._virtual(path)
        tree.add(below, FileNode(tree.volume, factory, file_mode.S_IFREG | 0o444))

    def register_text(self, path: str, text: str | Callable[[], str | bytes]) -> None:
        """A file of /proc, /sys or /dev with a text."""
        tree, below = self._virtual(path)
        tree.add_text(below, text)

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

    def act_for(self, credentials: Credentials) -> FileTree:
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

    def _place(self, start: Dentry, path: str) -> Found:
        """Where a name is to be made or removed."""
        return self.paths.find(start, path, parent=True)

    # ---- open

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

    # ---- changes

    def _change(self, path: str, change: Callable[[], T]) -> T:
        """Do what may be refused; a refusal is named to the user."""
        try:
            return change()
        except LinuxError as error:
            if error.code == EROFS:
                option = "--bind HOST:GUEST:rw" if self.isolated else "--rw PATH"
                self.message(f"{path}: the guest may not write here (EROFS); {option} allows it")
            raise

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


def _root_of(bind: Bind, superblock: Superblock, open_beneath: OpenBeneath) -> Directory:
    root = node_of(bind, superblock, open_beneath)
    if not isinstance(root, Directory):
        raise LinuxError(ENOTDIR, f"{bind.host} is not a directory: it cannot be the root")
    return root


def _refuse(directory: Directory, name: str) -> None:
    raise directory.refusal(name)
