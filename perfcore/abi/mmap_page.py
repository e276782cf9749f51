"""struct perf_event_mmap_page: where its fields are. The page lies before the ring buffer's data pages."""

from __future__ import annotations

import struct
from enum import IntFlag
from typing import NamedTuple


class PageField(NamedTuple):
    """One field of the page: its offset in bytes and its struct format."""

    offset: int
    format: str

    def write(self, page: memoryview, value: int) -> None:
        struct.pack_into(self.format, page, self.offset, value)

    def read(self, page: memoryview) -> int:
        value: int = struct.unpack_from(self.format, page, self.offset)[0]
        return value


VERSION = PageField(0, "<I")
COMPAT_VERSION = PageField(4, "<I")
LOCK = PageField(8, "<I")  # a sequence count: odd while the kernel writes
INDEX = PageField(12, "<I")  # hardware counter number plus one, 0 when user space cannot read it
OFFSET = PageField(16, "<q")  # add to the hardware counter's value
TIME_ENABLED = PageField(24, "<Q")
TIME_RUNNING = PageField(32, "<Q")
CAPABILITIES = PageField(40, "<Q")
PMC_WIDTH = PageField(48, "<H")
TIME_SHIFT = PageField(50, "<H")
TIME_MULT = PageField(52, "<I")
TIME_OFFSET = PageField(56, "<Q")
TIME_ZERO = PageField(64, "<Q")
SIZE = PageField(72, "<I")  # bytes of the page that mean something, up to here
TIME_CYCLES = PageField(80, "<Q")
TIME_MASK = PageField(88, "<Q")
DATA_HEAD = PageField(1024, "<Q")  # where the kernel has written to; not wrapped
DATA_TAIL = PageField(1032, "<Q")  # where user space has read to; not wrapped
DATA_OFFSET = PageField(1040, "<Q")
DATA_SIZE = PageField(1048, "<Q")
AUX_HEAD = PageField(1056, "<Q")
AUX_TAIL = PageField(1064, "<Q")
AUX_OFFSET = PageField(1072, "<Q")
AUX_SIZE = PageField(1080, "<Q")

MEANINGFUL_BYTES = 96  # the value of SIZE: the offset of the reserved rest of the first kilobyte


class Capability(IntFlag):
    """Bits of CAPABILITIES."""

    BIT0 = 1 << 0
    BIT0_IS_DEPRECATED = 1 << 1
    USER_RDPMC = 1 << 2
    USER_TIME = 1 << 3
    USER_TIME_ZERO = 1 << 4
    USER_TIME_SHORT = 1 << 5
