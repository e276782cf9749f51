"""AuxArea: the memory beside a ring buffer into which a unit traces by itself. As rb_alloc_aux and around it.

Who reads finds in PERF_RECORD_AUX which bytes are new, and gives them back by aux_tail. Where the mapping is read-only
(overwrite mode), nobody gives anything back: the unit goes round and round, and says itself where it is.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.linux.errors import ENOMEM, LinuxError
from perfcore.abi import mmap_page


class AuxArea:
    """The area of one ring buffer, whose first page is `page`. `memory` is 2**n pages from byte `offset` on."""

    def __init__(
        self,
        page: memoryview,
        memory: memoryview,
        *,
        offset: int,
        overwrite: bool,
        watermark: int,
        setup: Callable[[memoryview, bool], object | None],
        free: Callable[[object], None],
    ) -> None:
        """`setup` and `free` are the unit's. `watermark` in bytes, 0 for half. ENOMEM if the unit cannot use it."""
        size = len(memory)
        self.page = page
        self.memory = memory
        self.size = size
        self.offset = offset
        self.overwrite = overwrite
        self.watermark = 0 if overwrite else watermark or size // 2
        self.head = 0  # bytes written, not wrapped; in overwrite mode as the unit has said
        self.woken = 0  # up to where the reader has been woken for
        self.mappings = 0  # of processes; without any nobody begins to write
        self.busy = False  # a unit writes
        self.sampling = False  # a sample takes a copy
        self.on_free: Callable[[], None] | None = None  # its frames go
        self._users = 1  # those who have it mapped, and who writes
        private = setup(memory, overwrite)
        if private is None:
            raise LinuxError(ENOMEM, f"its unit can do nothing with an AUX area of {size} bytes")
        self.private = private  # the unit's own
        self._free_private = free

    def take(self) -> None:
        self._users += 1

    def put(self) -> None:
        """rb_free_aux(): the last one frees it."""
        self._users -= 1
        if not self._users:
            self._free_private(self.private)
            if self.on_free is not None:
                self.on_free()

    def room(self) -> int:
        """CIRC_SPACE(): bytes that may be written; none where aux_tail is nonsense."""
        tail: int = mmap_page.AUX_TAIL.read(self.page)
        used = self.head - tail & (1 << 64) - 1
        return (tail - (self.head + 1)) % self.size if used < self.size else 0

    def advance(self, size: int) -> None:
        self.head += size
        self.show_head()

    def show_head(self) -> None:
        mmap_page.AUX_HEAD.write(self.page, self.head & (1 << 64) - 1)

    def wakes(self) -> bool:
        """rb_need_aux_wakeup(): as much has come as the reader wants to be woken for."""
        if self.overwrite or self.head - self.woken < self.watermark:
            return False
        self.woken = self.head // self.watermark * self.watermark
        return True
