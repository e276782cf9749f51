"""What ptrace needs of hardware breakpoints: register_user_hw_breakpoint() and its like. perfcore fills it in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from emulator.cpu import Cpu

Owner = TypeVar("Owner", contravariant=True)  # Task


class Place(NamedTuple):
    """What is watched, as a perf_event_attr says it: bp_addr, bp_len, bp_type (HW_BREAKPOINT_*), disabled."""

    address: int
    length: int
    type: int
    disabled: bool = False


class UserBreakpoint(Protocol):
    """A breakpoint of one task."""

    @property
    def place(self) -> Place: ...

    def modify(self, place: Place) -> None:
        """modify_user_hw_breakpoint(). LinuxError, as at the registration: nothing has moved then."""

    def unregister(self) -> None:
        """unregister_hw_breakpoint(): once."""


class UserBreakpoints(Protocol[Owner]):
    """Those of all tasks share the CPUs' slots with the guest's perf events."""

    def available(self, type: int) -> int:
        """hw_breakpoint_slots(): how many of that type (HW_BREAKPOINT_*) a CPU has."""

    def register(self, task: Owner, place: Place, triggered: Callable[[Cpu], None]) -> UserBreakpoint:
        """`triggered` hears of each hit, on the CPU of the task, before signals are delivered. See HwBreakpoint.

        LinuxError: EINVAL for a place that the ISA cannot watch, ENOSPC when all slots are in use, ... as perf's.
        """
