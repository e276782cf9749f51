"""The PMU that Linux calls msr: counters of an x86 CPU that always run. arch/x86/events/msr.c.

Intel SDM volume 4, IA32_TIME_STAMP_COUNTER, IA32_MPERF, IA32_APERF; AMD64 APM volume 2, TSC, MPERF, APERF.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emulator.cpu import Cpu
from emulator.sysregs import Msr
from pmu.event import Event
from pmu.event_source import EventSource
from pmu.format_field import FormatField
from pmu.register import RO, Register


class IA32_TIME_STAMP_COUNTER(Register):
    """Cycles of the nominal frequency, whatever the CPU does."""

    encoding = Msr(0x10)

    COUNT = RO(63, 0)


class IA32_MPERF(Register):
    """Cycles of the nominal frequency in which the CPU has not been halted (C0)."""

    encoding = Msr(0xE7)

    COUNT = RO(63, 0)


class IA32_APERF(Register):
    """Cycles of the core in which it has not been halted."""

    encoding = Msr(0xE8)

    COUNT = RO(63, 0)


REGISTERS: tuple[type[Register], ...] = (IA32_TIME_STAMP_COUNTER, IA32_APERF, IA32_MPERF)  # by event code


class AlwaysRunning:
    """Those registers of one CPU. `reference`: cycles of the nominal frequency that so many of its own take."""

    def __init__(self, cpu: Cpu, reference: Callable[[int], int]) -> None:
        self._cpu = cpu
        self._reference = reference
        self._reads: dict[type[Register], Callable[[], int]] = {
            IA32_TIME_STAMP_COUNTER: self._time,
            IA32_MPERF: lambda: self._time() - cpu.idle_cycles,
            IA32_APERF: lambda: cpu.core.cycles - cpu.halted_cycles,
        }

    def _time(self) -> int:
        return self._reference(self._cpu.core.cycles)

    def read(self, register: type[Register]) -> int:
        """Of a register of `REGISTERS`; changes nothing, unlike RDTSC, whose answer no CPU takes back."""
        return self._reads[register]()


def msr_source(not_modelled: Mapping[str, str]) -> EventSource:
    """`not_modelled`: events that the vendor's parts have besides, and why there are none here."""
    return EventSource(
        "msr",
        (FormatField("event", 0, 63),),
        (
            Event(0, "tsc", (), note="the time stamp counter; while a task runs, or all the time"),
            Event(1, "aperf", (), note="cycles in which the CPU does not idle, the kernel's too"),
            Event(2, "mperf", (), note="the same in cycles of the nominal frequency"),
        ),
        not_modelled=not_modelled,
    )


INTEL_MSR = msr_source(
    {
        "pperf": "nobody here knows which cycles are productive",
        "smi": "there is no system management mode",
        "cpu_thermal_margin": "nothing here gets warm",
    }
)
AMD_MSR = msr_source(
    {"irperf": "it counts the kernel's instructions, too, which are not executed", "ptsc": "parts before Zen have it"}
)
