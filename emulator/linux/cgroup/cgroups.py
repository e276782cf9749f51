"""Cgroup: a control group and who is in it; Cgroups: all of them. As kernel/cgroup/cgroup.c, the default hierarchy.

Groups are there to be counted by perf: its controller is implicit, as in Linux, and no other one is modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from emulator.linux.errors import EAGAIN, EBUSY, EINVAL, ENODEV, EOPNOTSUPP, LinuxError

CONTROLLER = "perf_event"  # implicit: always enabled
ROOT_ID = 1  # its directory's inode number
NO_LIMIT = (1 << 31) - 1  # "max"


class Member(Protocol):
    """A thread (a ``Task``)."""

    cgroup: Cgroup

    @property
    def tid(self) -> int: ...
    @property
    def pid(self) -> int: ...


M = TypeVar("M", bound=Member)


class Cgroup:
    """One group. `id` is its directory's inode number, by which perf names it."""

    def __init__(self, name: str, parent: Cgroup | None, id: int) -> None:
        self.name = name
        self.parent = parent
        self.id = id
        self.ancestors: tuple[Cgroup, ...] = () if parent is None else (*parent.ancestors, parent)  # from the root
        self.children: dict[str, Cgroup] = {}
        self.members: dict[Member, None] = {}  # in the order in which they came
        self.descendants = 0
        self.most_descendants = NO_LIMIT
        self.most_depth = NO_LIMIT
        self.threaded = False
        self.removed = False
        self._populated_children = 0  # children in which, or below which, anybody is

    @property
    def level(self) -> int:
        """How far below the root it is."""
        return len(self.ancestors)

    @property
    def root(self) -> Cgroup:
        return self.ancestors[0] if self.ancestors else self

    @property
    def path(self) -> str:
        """In the hierarchy: "/" is the root's."""
        return "/" + "/".join(group.name for group in (*self.ancestors[1:], self)) if self.ancestors else "/"

    @property
    def populated(self) -> bool:
        """Whether anybody is in it or below it."""
        return bool(self.members) or self._populated_children > 0

    def contains(self, other: Cgroup) -> bool:
        """Whether `other` is this one or below it (cgroup_is_descendant)."""
        return other is self or (other.level > self.level and other.ancestors[self.level] is self)

    def subtree(self, *, threaded: bool = False) -> Iterator[Cgroup]:
        """This one and all below it, parents first; or, of a domain, those whose threads are its processes'."""
        waiting = [self]
        while waiting:
            group = waiting.pop()
            yield group
            waiting += (child for child in reversed(group.children.values()) if child.threaded or not threaded)

    # who is in it

    def take_in(self, member: Member) -> None:
        was_populated = self.populated
        self.members[member] = None
        member.cgroup = self
        if not was_populated:
            self._tell_parents(1)

    def let_go(self, member: Member) -> None:
        """It still belongs here, but is no longer listed: it has ended, or goes elsewhere."""
        del self.members[member]
        if not self.populated:
            self._tell_parents(-1)

    def _tell_parents(self, change: int) -> None:
        """Update nr_populated_children, up to where nothing changes."""
        group = self.parent
        while group is not None:
            was_populated = group.populated
            group._populated_children += change
            if group.populated == was_populated:
                return
            group = group.parent

    # thread mode: threads of one process are in different groups below one that is its domain

    @property
    def domain(self) -> Cgroup:
        """The nearest one, upward, that is not threaded: where the process of its threads is."""
        group = self
        while group.threaded:
            assert group.parent is not None, "the root is no threaded group"
            group = group.parent
        return group

    @property
    def is_thread_root(self) -> bool:
        return not self.threaded and any(child.threaded for child in self.children.values())

    @property
    def is_valid_domain(self) -> bool:
        """The root alone may have both, threaded groups and domains, below it."""
        return not self.threaded and not any(
            group.threaded or (group.parent is not None and group.is_thread_root) for group in self.ancestors
        )

    @property
    def type(self) -> str:
        """cgroup.type"""
        if self.threaded:
            return "threaded"
        if not self.is_valid_domain:
            return "domain invalid"
        return "domain threaded" if self.is_thread_root else "domain"

    def become_threaded(self) -> None:
        """cgroup_enable_threaded(). EOPNOTSUPP where it cannot be; there is no way back."""
        if self.threaded:
            return
        assert self.parent is not None, "the root has no cgroup.type"
        domain = self.parent.domain
        populated = any(child.populated and not child.threaded for child in domain.children.values())
        may_be_root = domain.parent is None or not populated
        if self.populated or not domain.is_valid_domain or not may_be_root:
            raise LinuxError(EOPNOTSUPP, f"{self.path}: it, or a domain beside it, has processes; or above it is none")
        self.threaded = True

    def check_joining(self, member: Member, whole_process: bool) -> None:
        """cgroup_attach_permissions(), but for those of files: EOPNOTSUPP."""
        if not self.domain.is_valid_domain:
            raise LinuxError(EOPNOTSUPP, f"{self.path} is a {self.type}")
        if not whole_process and member.cgroup.domain is not self.domain:
            raise LinuxError(EOPNOTSUPP, f"{self.path}: a single thread stays below its process's domain")


class Cgroups:
    """The hierarchy. `new_id` gives numbers."""

    def __init__(self, new_id: Callable[[], int]) -> None:
        self.root = Cgroup("", None, ROOT_ID)
        self._new_id = new_id

    def make(self, parent: Cgroup, name: str) -> Cgroup:
        """cgroup_mkdir()."""
        if "\n" in name:
            raise LinuxError(EINVAL, "a control group's name has no newline")
        for depth, group in enumerate((parent, *reversed(parent.ancestors)), 1):
            if group.descendants >= group.most_descendants or depth > group.most_depth:
                raise LinuxError(EAGAIN, f"{group.path}: cgroup.max.descendants, or cgroup.max.depth")
        made = parent.children[name] = Cgroup(name, parent, self._new_id())
        for group in made.ancestors:
            group.descendants += 1
        return made

    def remove(self, group: Cgroup) -> None:
        """cgroup_destroy_locked()."""
        if group.populated or group.children:
            raise LinuxError(EBUSY, f"{group.path} has processes, or groups below it")
        assert group.parent is not None, "the root cannot be removed"
        del group.parent.children[group.name]
        for above in group.ancestors:
            above.descendants -= 1
        group.removed = True

    def attach(self, group: Cgroup, members: Sequence[M], whole_process: bool) -> list[M]:
        """cgroup_attach_task(): threads of one process, all of them or a single one. Those that have moved."""
        group.check_joining(members[0], whole_process)
        moving = [each for each in members if each.cgroup is not group]
        for each in moving:
            each.cgroup.let_go(each)
            group.take_in(each)
        return moving


def check_alive(group: Cgroup) -> None:
    if group.removed:
        raise LinuxError(ENODEV, f"{group.path} has been removed")
