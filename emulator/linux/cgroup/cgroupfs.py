"""The file system cgroup2, at /sys/fs/cgroup: a directory for each group, and what can be read and written there."""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from emulator.linux.cgroup.cgroups import CONTROLLER, NO_LIMIT, Cgroup, Cgroups, Member, check_alive
from emulator.linux.errors import EACCES, EBADF, EEXIST, EINVAL, ENOENT, EOPNOTSUPP, EPERM, ERANGE, ESRCH, LinuxError
from emulator.linux.fs.attributes import Attributes, DirectoryEntry
from emulator.linux.fs.file import File
from emulator.linux.fs.file_tree import FileTree
from emulator.linux.fs.nodes import CGROUP_DEVICE, CGROUP_STATISTICS, Body, BodyOfNode, Directory, Node, Regular
from emulator.linux.fs.open_files import OpenDirectory, PathFile
from emulator.linux.fs.permissions import WRITE, check
from emulator.linux.fs.virtual_files import VirtualNode, Volume
from emulator.linux.process.task import KernelServices, Task
from emulator.linux.signals.signal import SI_KERNEL, SIGKILL, SignalInfo
from emulator.linux.tracepoints import Tracepoints

GROUP_BYTES = 4096  # that a group counts in the machine's memory, besides its way to the root


class Kernel(KernelServices, Protocol):
    """A kernel with control groups."""

    @property
    def cgroups(self) -> Cgroups: ...
    @property
    def file_tree(self) -> FileTree: ...
    @property
    def tracepoints(self) -> Tracepoints: ...


class _Node(VirtualNode):
    """A directory or file of a group: whose it is, its maker decides, and later its owner."""

    __slots__ = ("_made_ns", "gid", "uid")

    def __init__(self, volume: Volume, mode: int) -> None:
        super().__init__(volume, mode)
        self.uid = self.gid = volume.superblock.owner
        self._made_ns = volume.superblock.now()

    def attributes(self) -> Attributes:
        made = self._made_ns
        device = self.volume.device
        return Attributes(self.inode, self.mode, 0, self._links(), self.uid, self.gid, device, (0, 0), made, made)

    def _links(self) -> int:
        return 1

    def set_mode(self, permissions: int) -> None:
        self.mode = file_mode.S_IFMT(self.mode) | permissions

    def set_owner(self, uid: int, gid: int) -> None:
        self.uid, self.gid = uid, gid


class CgroupFile(_Node, Regular):
    """A file of a group: a row of `FILES`."""

    __slots__ = ("directory", "row")

    def __init__(self, directory: CgroupDirectory, row: Row) -> None:
        super().__init__(directory.volume, file_mode.S_IFREG | row.permissions)
        self.directory = directory
        self.row = row
        self.set_owner(*directory.maker)

    def open(self, *, write: bool, truncate: bool) -> Body:
        check_alive(self.directory.group)
        return _Text(self)


class _Text(BodyOfNode):
    """An open one: its text is made anew whenever it is read from its beginning."""

    __slots__ = ("_data",)
    _node: CgroupFile

    def __init__(self, node: CgroupFile) -> None:
        super().__init__(node)
        self._data = b""

    def _look(self) -> None:
        show, directory = self._node.row.show, self._node.directory
        check_alive(directory.group)
        if show is None:
            raise LinuxError(EINVAL, f"{self._node.row.name} cannot be read")
        self._data = show(directory.group).encode()

    def read_at(self, offset: int, size: int) -> bytes:
        if not offset:
            self._look()
        return self._data[offset : offset + size]

    def write_at(self, offset: int, data: bytes) -> int:
        store, directory = self._node.row.store, self._node.directory
        if store is None:
            raise LinuxError(EINVAL, f"{self._node.row.name} cannot be written")
        check_alive(directory.group)
        store(directory, data.strip().decode("utf-8", "surrogateescape"))
        return len(data)

    def size(self) -> int:
        if not self._data:
            self._look()
        return len(self._data)

    def truncate(self, size: int) -> None:
        """O_TRUNC does nothing."""


class CgroupDirectory(_Node, Directory):
    """The directory of a group."""

    __slots__ = ("files", "group", "groups", "kernel", "maker", "root")

    def __init__(self, kernel: Kernel, volume: Volume, group: Cgroup, permissions: int) -> None:
        super().__init__(volume, file_mode.S_IFDIR | permissions)
        self._number = group.id
        self.kernel = kernel
        self.group = group
        self.root = self  # the directory of the root
        self.maker = (self.uid, self.gid)  # whose its files are, whoever gets the directory later
        self.groups: dict[str, CgroupDirectory] = {}
        self.files: dict[str, CgroupFile] = {}  # that somebody has looked up

    def _links(self) -> int:
        return 2 + len(self.groups)

    def _rows(self) -> Iterable[Row]:
        return FILES.values() if self.group.parent is not None else (row for row in FILES.values() if row.of_root)

    def lookup(self, name: str) -> Node | None:
        group = self.groups.get(name)
        if group is not None:
            return group
        file, row = self.files.get(name), FILES.get(name)
        if file is None and row is not None and not self.group.removed and (row.of_root or self.group.parent):
            file = self.files[name] = CgroupFile(self, row)
        return file

    def entries(self) -> Iterable[DirectoryEntry]:
        names = sorted([*self.groups, *(row.name for row in self._rows())]) if not self.group.removed else ()
        found = ((name, self.lookup(name)) for name in names)
        return [DirectoryEntry(node.inode, node.file_type, os.fsencode(name)) for name, node in found if node]

    def refusal(self, name: str) -> LinuxError:
        return LinuxError(EPERM, f"{name}: the names here are the kernel's, but for directories")

    def create(self, name: str, permissions: int) -> tuple[Regular, Body]:
        raise LinuxError(EACCES, f"{name}: a control group's files are the kernel's")

    def create_directory(self, name: str, permissions: int) -> None:
        if self.lookup(name) is not None:
            raise LinuxError(EEXIST, name)
        if self.group.removed:
            raise LinuxError(ENOENT, f"{self.group.path} has been removed")
        self.volume.superblock.budget.take(_bytes_of(self.group.level + 1))
        try:
            made = self.kernel.cgroups.make(self.group, name)
        except LinuxError:
            self.volume.superblock.budget.take(-_bytes_of(self.group.level + 1))
            raise
        directory = self.groups[name] = CgroupDirectory(self.kernel, self.volume, made, permissions)
        directory.root = self.root
        maker = self.kernel.calling()
        directory.maker = maker.credentials.uid, maker.credentials.gid
        self.kernel.tracepoints.cgroup_mkdir.fire(maker, made)

    def remove_directory(self, name: str) -> None:
        directory = self.groups.get(name)
        if directory is None:
            raise LinuxError(ENOENT, name)
        self.kernel.cgroups.remove(directory.group)
        del self.groups[name]
        directory.files.clear()
        self.volume.superblock.budget.take(-_bytes_of(directory.group.level))

    def of(self, group: Cgroup) -> CgroupDirectory:
        """The directory of another group."""
        here = self.root
        for each in (*group.ancestors[1:], group) if group.ancestors else ():
            here = here.groups[each.name]
        return here


def _bytes_of(level: int) -> int:
    return GROUP_BYTES + 8 * level


# ---- what the files say


def _processes(group: Cgroup) -> str:
    """Of a group whose threads are spread over threaded ones below it, theirs, too."""
    if group.threaded:
        raise LinuxError(EOPNOTSUPP, f"{group.path} is threaded: it has cgroup.threads")
    groups = group.subtree(threaded=True)
    pids = dict.fromkeys(member.pid for each in groups for member in each.members)
    return "".join(f"{pid}\n" for pid in pids)


def _threads(group: Cgroup) -> str:
    return "".join(f"{member.tid}\n" for member in group.members)


def _statistics(group: Cgroup) -> str:
    below = group.descendants
    return (
        f"nr_descendants {below}\nnr_subsys_{CONTROLLER} {below + 1}\n"
        f"nr_dying_descendants 0\nnr_dying_subsys_{CONTROLLER} 0\n"
    )


def _limit(value: int) -> str:
    return "max\n" if value == NO_LIMIT else f"{value}\n"


# ---- what is written into them


def _number(text: str) -> int:
    """kstrtoint(text, 0)"""
    try:
        value = int(text, 8) if text.lstrip("+-").startswith("0") and text.lstrip("+-").isdecimal() else int(text, 0)
    except ValueError:
        raise LinuxError(EINVAL, f"{text!r} is no number") from None
    if not -(1 << 31) <= value < 1 << 31:
        raise LinuxError(ERANGE, f"{text} does not fit into an int")
    return value


def _move(directory: CgroupDirectory, text: str, whole_process: bool) -> None:
    """__cgroup_procs_write(): 0 is who writes."""
    kernel = directory.kernel
    number = _number(text) if text else -1
    if number < 0:
        raise LinuxError(EINVAL, f"{text!r} is no process")
    caller = kernel.calling()
    task = kernel.tasks.get(number) if number else caller
    threads = [] if task is None else task.process.threads if whole_process else [task] * (task.exit_code is None)
    if task is None or not threads:
        raise LinuxError(ESRCH, f"there is no task {number}")
    _check_files(directory, caller, threads[0].cgroup)
    for moved in kernel.cgroups.attach(directory.group, threads, whole_process):
        kernel.tracepoints.cgroup_attach_task.fire(moved)


def _check_files(directory: CgroupDirectory, caller: Task, source: Cgroup) -> None:
    """cgroup_procs_write_permission(): cgroup.procs of the nearest group above both can be written, too."""
    group = directory.group
    while not group.contains(source):
        assert group.parent is not None, "the root contains all"
        group = group.parent
    _check_writable(directory.of(group), caller)


def _check_writable(directory: CgroupDirectory, caller: Task) -> None:
    """cgroup_may_write(): its cgroup.procs."""
    file = directory.lookup("cgroup.procs")
    assert file is not None, "every group has one"
    check(caller.credentials, file, WRITE, f"{directory.group.path} cgroup.procs")


def _move_process(directory: CgroupDirectory, text: str) -> None:
    _move(directory, text, True)


def _move_thread(directory: CgroupDirectory, text: str) -> None:
    _move(directory, text, False)


def _enable(directory: CgroupDirectory, text: str) -> None:
    """cgroup.subtree_control: there is no controller that could be enabled."""
    if text:
        raise LinuxError(EINVAL, f"{text!r}: no controller is modelled but {CONTROLLER}, which is always enabled")


def _make_threaded(directory: CgroupDirectory, text: str) -> None:
    if text != "threaded":
        raise LinuxError(EINVAL, f'cgroup.type {text!r}: only "threaded" can be written')
    directory.group.become_threaded()


def _kill(directory: CgroupDirectory, text: str) -> None:
    """cgroup_kill_write()"""
    group, kernel = directory.group, directory.kernel
    if _number(text) != 1:
        raise LinuxError(ERANGE, f"cgroup.kill {text!r}: only 1 can be written")
    if group.threaded:
        raise LinuxError(EOPNOTSUPP, f"{group.path} is threaded: its processes are not in it alone")
    members: list[Member] = [member for each in group.subtree() for member in each.members]
    for member in members:
        kernel.send_signal(kernel.tasks[member.tid], SignalInfo(SIGKILL, SI_KERNEL))


def _new_limit(text: str) -> int:
    value = NO_LIMIT if text == "max" else _number(text)
    if value < 0:
        raise LinuxError(ERANGE, f"a limit of {value}")
    return value


def _limit_descendants(directory: CgroupDirectory, text: str) -> None:
    directory.group.most_descendants = _new_limit(text)


def _limit_depth(directory: CgroupDirectory, text: str) -> None:
    directory.group.most_depth = _new_limit(text)


class Row(NamedTuple):
    """A file that groups have."""

    name: str
    show: Callable[[Cgroup], str] | None
    store: Callable[[CgroupDirectory, str], None] | None = None
    of_root: bool = True  # whether the root has it, too

    @property
    def permissions(self) -> int:
        return (0o444 if self.show is not None else 0) | (0o200 if self.store is not None else 0)


FILES = {
    row.name: row
    for row in (
        Row("cgroup.controllers", lambda group: ""),
        Row("cgroup.events", lambda group: f"populated {group.populated:d}\nfrozen 0\n", of_root=False),
        Row("cgroup.kill", None, _kill, of_root=False),
        Row("cgroup.max.depth", lambda group: _limit(group.most_depth), _limit_depth),
        Row("cgroup.max.descendants", lambda group: _limit(group.most_descendants), _limit_descendants),
        Row("cgroup.procs", _processes, _move_process),
        Row("cgroup.stat", _statistics),
        Row("cgroup.subtree_control", lambda group: "", _enable),
        Row("cgroup.threads", _threads, _move_thread),
        Row("cgroup.type", lambda group: f"{group.type}\n", _make_threaded, of_root=False),
    )
}
"""By name: kernel/cgroup/cgroup.c, cgroup_base_files, as far as they are modelled."""


def opened_group(file: File) -> CgroupDirectory:
    """css_tryget_online_from_dir(): the group whose directory is open. EBADF, ENOENT."""
    node = file.dentry.node if isinstance(file, OpenDirectory | PathFile) and file.dentry is not None else None
    if not isinstance(node, CgroupDirectory):
        raise LinuxError(EBADF, f"{file.path or 'what is open'} is no directory of a control group")
    if node.group.removed:
        raise LinuxError(ENOENT, f"{node.group.path} has been removed")
    return node


def group_to_join(task: Task, descriptor: int) -> Cgroup:
    """CLONE_INTO_CGROUP: where a child of `task` shall begin."""
    directory = opened_group(task.files.get(descriptor))
    _check_writable(directory, task)
    _check_files(directory, task, task.cgroup)
    return directory.group


def install(kernel: Kernel) -> None:
    """Mount it."""
    volume = Volume(kernel.file_tree.superblock, CGROUP_DEVICE, CGROUP_STATISTICS)
    kernel.file_tree.sys.add("fs/cgroup", CgroupDirectory(kernel, volume, kernel.cgroups.root, 0o555))
