"""CounterRegisters: what the drivers of CPU PMUs do each by the registers of its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from perfcore.events.drivers.cpu_counters import CounterAccess, CpuCounters
from perfcore.events.event import PerfEvent
from perfcore.events.hardware_state import HardwareState
from pmu.device import Pmu
from pmu.register import Register


class CounterRegisters(ABC):
    """`index` is a counter's number as the driver has it."""

    all_counters: int  # mask

    @abstractmethod
    def reset(self, pmu: Pmu) -> None:
        """Bring the PMU into the state that the driver expects."""

    @abstractmethod
    def configuration(self, event: PerfEvent, code: int) -> int:
        """What to select for `event`, which counts `code` with its filters; LinuxError where that cannot be."""

    @abstractmethod
    def raw_code(self, config: int) -> int:
        """The bits of a raw config that select."""

    @abstractmethod
    def fixed_index(self, number: int) -> int:
        """The index of the model's fixed counter `number`."""

    @abstractmethod
    def width_bits(self, event: PerfEvent) -> int:
        """After how many bits the event's counter overflows."""

    @abstractmethod
    def longest_period(self, event: PerfEvent) -> int:
        """The longest period to program at once."""

    @abstractmethod
    def enable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        """Let the counters count, each what its event is about."""

    @abstractmethod
    def disable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        """They stand from now on. An event may have another counter by now."""

    @abstractmethod
    def status_reader(self, counters: CpuCounters) -> Callable[[], int]:
        """What reads a bit for each counter that has overflowed: those of `all_counters`, maybe others besides."""

    @abstractmethod
    def interrupt_handler(self, counters: CpuCounters) -> Callable[[], None]:
        """What handles the interrupts of one CPU's PMU. It does not stop the counters meanwhile, as Linux's handlers
        do, which would be most of a sample's cost: here nothing happens that they could count until it returns."""

    @abstractmethod
    def counter_register(self, index: int) -> tuple[type[Register], int]:
        """The register that is counter `index`: which it is, and its number in the bank."""

    def whole_register(self, index: int) -> tuple[type[Register], int]:
        """The one that is counter `index` with all its bits, and its number in the bank."""
        return self.counter_register(index)

    def counter_access(self, pmu: Pmu, index: int, hw: HardwareState) -> CounterAccess:
        """What reads counter `index` for `hw`'s event, and what writes it."""
        register, number = self.whole_register(index)
        return pmu.reader(register, number), pmu.writer(register, number)

    @abstractmethod
    def user_index(self, event: PerfEvent) -> int:
        """What user space reads the event's counter by, plus one."""
