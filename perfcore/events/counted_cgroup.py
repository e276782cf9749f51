"""CountedCgroup: whose tasks an event of a control group counts."""

from __future__ import annotations

from typing import Protocol

from emulator.linux.cgroup.cgroups import Cgroup


class CountedCgroup(Protocol):
    """A group (``Cgroup``), or what stands for one that may come and go. Events of one have one object."""

    def contains(self, other: Cgroup) -> bool:
        """Whether tasks of `other` count: it is this one, or below it."""
