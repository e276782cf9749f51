"""Settings: the sysctls of perf_event. One per subsystem; a guest sees its own below /proc/sys/kernel."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.linux.structures import TICK_NS
from perfcore.abi.constants import PERF_MAX_STACK_DEPTH


@dataclass(slots=True)
class Settings:
    """Limits, and what may be denied. `throttle` is ours: a measuring subsystem never throttles."""

    paranoid: int = -1  # perf_event_paranoid
    sample_rate_hz: int = 100_000  # perf_event_max_sample_rate
    max_stack: int = PERF_MAX_STACK_DEPTH  # perf_event_max_stack
    mlock_kib: int = 516  # perf_event_mlock_kb
    cpu_time_max_percent: int = 25  # perf_cpu_time_max_percent: of a CPU's time; here interrupts take none
    user_access: int = 1  # perf_user_access (arm64)
    throttle: bool = True
    exact_callchains: bool = False  # ours: of the calls that the CPUs have seen, in place of a walk by frame pointers

    @property
    def max_samples_per_tick(self) -> int:
        """How often one event may interrupt in a tick before it is throttled."""
        return -(-self.sample_rate_hz * TICK_NS // 1_000_000_000)

    @classmethod
    def measuring(cls) -> Settings:
        """For the tool's own subsystem: nothing is throttled, no rate is too high."""
        return cls(sample_rate_hz=1_000_000_000, throttle=False)
