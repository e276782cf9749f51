"""UserPage: what user space reads without a syscall: counter index, offset and times in perf_event_mmap_page.

The times are right at `now_ns`; from there user space goes on by the counter that it reads the time from. As
arch_perf_update_userpage of both ISAs, but that a conversion is exact at `now_ns`, and that cap_user_time is only set
while the times do pass as user space would have them: else they stand in the page as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfcore.abi import mmap_page
from perfcore.abi.mmap_page import Capability

_NS_PER_SECOND = 1_000_000_000
_U32, _U64 = (1 << 32) - 1, (1 << 64) - 1
_LONGEST_SHIFT = 31


@dataclass(frozen=True, slots=True)
class UserClock:
    """How user space turns the counter of its ISA into nanoseconds: (ticks * mult) >> shift."""

    hz: int
    bits: int  # of a counter that wraps: cap_user_time_short; 0: it does not

    @property
    def shift(self) -> int:
        """The longest with which `mult` has 32 bits."""
        return min(_LONGEST_SHIFT, (self.hz * _U32 // _NS_PER_SECOND).bit_length() - 1)

    @property
    def mult(self) -> int:
        return (_NS_PER_SECOND << self.shift) // self.hz

    @property
    def capabilities(self) -> Capability:
        return Capability.USER_TIME_ZERO | (Capability.USER_TIME_SHORT if self.bits else Capability(0))


class UserPage:
    """One that a guest has mapped."""

    def __init__(self, page: memoryview, clock: UserClock) -> None:
        self._page = page
        self._hz = clock.hz
        mmap_page.TIME_MULT.write(page, clock.mult)
        mmap_page.TIME_SHIFT.write(page, clock.shift)
        mmap_page.TIME_MASK.write(page, (1 << clock.bits) - 1)
        mmap_page.CAPABILITIES.write(page, mmap_page.CAPABILITIES.read(page) | clock.capabilities)

    def update(self, *, index: int, offset: int, enabled_ns: int, running_ns: int, now_ns: int, passes: bool) -> None:
        """kernel/events/core.c, perf_event_update_userpage. Guests run one at a time, so the sequence lock only counts.

        `passes`: whether user space may add what passes from now on.
        """
        page = self._page
        lock = mmap_page.LOCK.read(page)
        ticks = now_ns * self._hz // _NS_PER_SECOND
        converted = ticks * mmap_page.TIME_MULT.read(page) >> mmap_page.TIME_SHIFT.read(page)
        capabilities = mmap_page.CAPABILITIES.read(page) & ~Capability.USER_TIME
        mmap_page.CAPABILITIES.write(page, capabilities | (Capability.USER_TIME if passes else 0))
        mmap_page.INDEX.write(page, index)
        mmap_page.OFFSET.write(page, offset)
        mmap_page.TIME_ENABLED.write(page, enabled_ns)
        mmap_page.TIME_RUNNING.write(page, running_ns)
        mmap_page.TIME_OFFSET.write(page, -converted & _U64)
        mmap_page.TIME_ZERO.write(page, now_ns - converted & _U64)
        mmap_page.TIME_CYCLES.write(page, ticks if mmap_page.TIME_MASK.read(page) else 0)
        mmap_page.LOCK.write(page, lock + 2 & _U32)

    def set_counter_access(self, width_bits: int) -> None:
        """User space may read the counter, of which so many bits count. arch_perf_update_userpage."""
        page = self._page
        mmap_page.CAPABILITIES.write(page, mmap_page.CAPABILITIES.read(page) | Capability.USER_RDPMC)
        mmap_page.PMC_WIDTH.write(page, width_bits)
