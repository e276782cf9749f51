"""The verifier's log: what a process wants to read of what was found, in its own memory. kernel/bpf/log.c."""

from __future__ import annotations

from collections import deque

from emulator.linux.errors import EINVAL, LinuxError

LEVEL1, LEVEL2, STATS, FIXED = 1, 2, 4, 8
_MOST_BYTES = (1 << 32 - 2) - 1


class Log:
    """Lines. Where there is no room for all of them the last ones stay, or with FIXED the first."""

    def __init__(self, level: int, size: int, address: int) -> None:
        """EINVAL where the three do not go together: bpf_verifier_log_attr_valid()."""
        if bool(address) != bool(size) or (address and not level):
            raise LinuxError(EINVAL, "a log has a buffer, its size and a level, or none of them")
        if level & ~(LEVEL1 | LEVEL2 | STATS | FIXED) or size > _MOST_BYTES:
            raise LinuxError(EINVAL, f"log_level {level:#x}, log_size {size}")
        self.level = level
        self.size = size
        self.address = address
        self.total = 0  # bytes, with the NUL
        self._parts: deque[str] = deque()  # no more than there is room for
        self._kept = 0  # bytes of them

    @property
    def wanted(self) -> bool:
        return bool(self.level & (LEVEL1 | LEVEL2))

    @property
    def detailed(self) -> bool:
        return bool(self.level & LEVEL2)

    def line(self, text: str) -> None:
        if self.wanted:
            self._add(text + "\n")

    def statistics(self, text: str) -> None:
        if self.level:
            self._add(text + "\n")

    def _add(self, text: str) -> None:
        self.total += len(text)
        if self.level & FIXED:
            if self._kept < self.size:
                self._keep(text)
            return
        self._keep(text)
        while self._kept - len(self._parts[0]) >= self.size:
            self._kept -= len(self._parts.popleft())
            if not self._parts:
                break

    def _keep(self, text: str) -> None:
        self._parts.append(text)
        self._kept += len(text)

    @property
    def overflows(self) -> bool:
        return bool(self.address) and self.total + 1 > self.size

    def contents(self) -> bytes:
        """What goes into the buffer, with its NUL."""
        text = "".join(self._parts).encode()
        most = self.size - 1
        return (text[:most] if self.level & FIXED else text[max(len(text) - most, 0) :]) + b"\0"
