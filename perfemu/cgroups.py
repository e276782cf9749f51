"""NamedCgroups: control groups of the guest that the user has named before there are any: -G, --for-each-cgroup.

The guest makes them while it runs, and may remove one and make another of that name: all of them count under it.
"""

from __future__ import annotations

from collections.abc import Iterator

from emulator.linux.cgroup.cgroups import Cgroup
from emulator.linux.kernel import Kernel
from emulator.linux.process.task import Task
from perfemu.errors import UsageError


def path_of(name: str) -> tuple[str, ...]:
    """The names below /sys/fs/cgroup, none for the root; as perf, whatever slashes are around. Raises UsageError."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise UsageError(f"control group '{name}': '..' is in no path below /sys/fs/cgroup")
    return parts


class NamedCgroup:
    """Whatever group is at that path: a ``CountedCgroup``."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self._path = path

    def contains(self, other: Cgroup) -> bool:
        above = other.ancestors
        if other.level < len(self._path):
            return False
        return all(
            (above[level] if level < len(above) else other).name == name for level, name in enumerate(self._path, 1)
        )


class NamedCgroups:
    """Those of one run. Make it before the run."""

    def __init__(self, kernel: Kernel) -> None:
        self._groups: dict[tuple[str, ...], NamedCgroup] = {}
        self._missing: dict[tuple[str, ...], str] = {}
        kernel.tracepoints.cgroup_mkdir.subscribe(self._made)

    def named(self, name: str) -> NamedCgroup:
        """The same for the same path, so that events of one group can be scheduled together."""
        path = path_of(name)
        if path not in self._groups:
            self._groups[path] = NamedCgroup(path)
            if path:
                self._missing[path] = name
        return self._groups[path]

    def _made(self, maker: Task, group: Cgroup) -> None:
        if self._missing:
            self._missing.pop(path_of(group.path), None)

    def remarks(self) -> Iterator[str]:
        """After the run: of those that were never there."""
        for name in self._missing.values():
            yield f"the guest has made no control group {name}: nothing was counted of it"
