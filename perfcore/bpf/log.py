"""The verifier's log: what a process wants to read of what was found, in its own memory. kernel/bpf/log.c."""

from __future__ import annotations

from emulator.linux.errors import EINVAL, LinuxError

LEVEL1, LEVEL2, STATS, FIXED = 1, 2, 4, 8
_MOST_BYTES = (1 << 32 - 2) - 1
_KEPT_BYTES = 16 << 20  # of a log that nobody has room for, this much is remembered


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
        self._parts: list[str] = []

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
        if self.total <= max(_KEPT_BYTES, self.size):
            self._parts.append(text)

    @property
    def overflows(self) -> bool:
        return bool(self.address) and self.total + 1 > self.size

    def contents(self) -> bytes:
        """What goes into the buffer, with its NUL."""
        text = "".join(self._parts).encode()
        if len(text) + 1 <= self.size:
            return text + b"\0"
        return (text[: self.size - 1] if self.level & FIXED else text[-(self.size - 1) :]) + b"\0"
