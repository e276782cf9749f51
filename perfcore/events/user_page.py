"""What user space reads without a syscall: counter index, offset and times in perf_event_mmap_page."""

from __future__ import annotations

from perfcore.abi import mmap_page
from perfcore.abi.mmap_page import Capability


def update_user_page(page: memoryview, *, index: int, offset: int, enabled_ns: int, running_ns: int) -> None:
    """kernel/events/core.c, perf_event_update_userpage. Guests run one at a time, so the sequence lock only counts."""
    lock = mmap_page.LOCK.read(page)
    mmap_page.INDEX.write(page, index)
    mmap_page.OFFSET.write(page, offset)
    mmap_page.TIME_ENABLED.write(page, enabled_ns)
    mmap_page.TIME_RUNNING.write(page, running_ns)
    mmap_page.LOCK.write(page, lock + 2 & 0xFFFFFFFF)


def set_counter_access(page: memoryview, width_bits: int) -> None:
    """User space may read the counter, of which so many bits count. arch_perf_update_userpage."""
    mmap_page.CAPABILITIES.write(page, mmap_page.CAPABILITIES.read(page) | Capability.USER_RDPMC)
    mmap_page.PMC_WIDTH.write(page, width_bits)
