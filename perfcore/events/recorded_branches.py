"""RecordedBranches: an event's part in the unit of its CPUs' that records branches: PERF_SAMPLE_BRANCH_STACK."""

from __future__ import annotations

from typing import Protocol

from emulator.cpu import Cpu
from perfcore.abi.sample import BranchStack


class RecordedBranches(Protocol):
    """What a unit does for one event."""

    def add(self, cpu: Cpu) -> bool:
        """The event comes to that CPU. False: another event is there that wants other branches."""

    def remove(self, cpu: Cpu) -> None:
        """It goes from there."""

    def read(self, cpu: Cpu) -> BranchStack:
        """The branches before the present instruction."""
