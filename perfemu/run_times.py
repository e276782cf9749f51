"""RunTimes: how long a run took. Apart from what stat counts, which other commands need not import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Guest time of one run, in ns. System time is what the core file says that kernel work costs."""

    elapsed_ns: int
    user_ns: int
    system_ns: int = 0
