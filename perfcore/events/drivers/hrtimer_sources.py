"""Where the events timer:hrtimer_* are heard. They tell addresses of functions, which are an ISA's."""

from __future__ import annotations

from collections.abc import Callable

from emulator.linux.sched.hrtimers import HrTimer, HrTimerMode
from perfcore.abi.kernel_tracepoints import (
    HRTIMER_CANCEL,
    HRTIMER_EXPIRE_ENTRY,
    HRTIMER_EXPIRE_EXIT,
    HRTIMER_INIT,
    HRTIMER_START,
)
from perfcore.abi.tracepoints import Value
from perfcore.events.drivers.tracepoint_sources import Source, that_executes


def hrtimer_sources(address_of: Callable[[str], int]) -> dict[int, Source]:
    """`address_of` a function of the kernel."""

    def start(timer: HrTimer, expires: int, soft: int, mode: HrTimerMode) -> tuple[Value, ...]:
        return timer.address, address_of(timer.function), expires, soft, int(mode), 0

    return {
        HRTIMER_INIT.id: Source(
            lambda points: points.hrtimer.init,
            that_executes,
            lambda timer, mode: (timer.address, timer.clock_id, int(mode)),
        ),
        HRTIMER_START.id: Source(lambda points: points.hrtimer.start, that_executes, start),
        HRTIMER_EXPIRE_ENTRY.id: Source(
            lambda points: points.hrtimer.expire_entry,
            that_executes,
            lambda timer, now: (timer.address, now, address_of(timer.function)),
        ),
        HRTIMER_EXPIRE_EXIT.id: Source(
            lambda points: points.hrtimer.expire_exit, that_executes, lambda timer: (timer.address,)
        ),
        HRTIMER_CANCEL.id: Source(lambda points: points.hrtimer.cancel, that_executes, lambda timer: (timer.address,)),
    }
