"""ShownCounters: a device some of whose registers are counters of its bank, whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from pmu.counter_bank import CounterBank
from pmu.register import Register
from pmu.register_device import RegisterDevice


class ShownCounters(RegisterDevice):
    """Who reads or writes those often does so in the bank."""

    _bank: CounterBank

    @abstractmethod
    def _counter_shown_by(self, register: type[Register], index: int) -> int | None:
        """Of the bank, with the register's width; None: it is no counter's register, or there is none."""

    def reader(self, register: type[Register], index: int = 0) -> Callable[[], int]:
        counter = self._counter_shown_by(register, index)
        return super().reader(register, index) if counter is None else partial(self._bank.read, counter)

    def reader_of_all(self, registers: Sequence[tuple[type[Register], int]]) -> Callable[[], Sequence[int]]:
        counters = self._all_shown_by(registers)
        return super().reader_of_all(registers) if counters is None else partial(self._bank.read_each, counters)

    def writer_of_all(self, registers: Sequence[tuple[type[Register], int]]) -> Callable[[Sequence[int]], None]:
        counters = self._all_shown_by(registers)
        return super().writer_of_all(registers) if counters is None else partial(self._bank.write_each, counters)

    def _all_shown_by(self, registers: Sequence[tuple[type[Register], int]]) -> list[int] | None:
        """None: not each of them shows a counter."""
        shown = [self._counter_shown_by(register, index) for register, index in registers]
        counters = [counter for counter in shown if counter is not None]
        return counters if len(counters) == len(shown) else None
