"""Hardware breakpoints of the kernel's own, for ptrace: perf events of tasks, whose hits one function hears of."""

from __future__ import annotations

from collections.abc import Callable

from emulator.cpu import Cpu
from emulator.linux.process.task import Task
from emulator.linux.user_breakpoints import Place
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType
from perfcore.events.drivers.breakpoint import BreakpointDriver
from perfcore.events.event import PerfEvent
from perfcore.events.subsystem import PerfEvents


class PerfUserBreakpoint:
    """emulator.linux.user_breakpoints.UserBreakpoint."""

    def __init__(self, event: PerfEvent, place: Place) -> None:
        self._event = event
        self.place = place

    def modify(self, place: Place) -> None:
        driver = self._event.driver
        assert isinstance(driver, BreakpointDriver), "a breakpoint's"
        driver.modify(self._event, _attr(place), check=False)
        self.place = place

    def unregister(self) -> None:
        self._event.close()


class PerfUserBreakpoints:
    """emulator.linux.user_breakpoints.UserBreakpoints, in the guest's subsystem."""

    def __init__(self, perf_events: PerfEvents) -> None:
        self._perf_events = perf_events

    def available(self, type: int) -> int:
        return next(each for each in self._perf_events.pmus if isinstance(each, BreakpointDriver)).available(type)

    def register(self, task: Task, place: Place, triggered: Callable[[Cpu], None]) -> PerfUserBreakpoint:
        event = self._perf_events.open_in_kernel(_attr(place), task, triggered)
        return PerfUserBreakpoint(event, place)


def _attr(place: Place) -> PerfEventAttr:
    """hw_breakpoint_init()."""
    return PerfEventAttr(
        type=PerfType.BREAKPOINT,
        pinned=1,
        sample_period=1,
        bp_type=place.type,
        config1=place.address,
        config2=place.length,
        disabled=int(place.disabled),
    )
