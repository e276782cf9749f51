"""Usage: what a thread or a process has used of the machine. As struct rusage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time and faults of what has ended (struct rusage)."""

    user_ns: int = 0
    system_ns: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    largest_pages: int = 0  # resident

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.user_ns + other.user_ns,
            self.system_ns + other.system_ns,
            self.minor_faults + other.minor_faults,
            self.major_faults + other.major_faults,
            max(self.largest_pages, other.largest_pages),
        )
