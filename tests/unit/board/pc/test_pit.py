"""The 8254 by its ports. Expectations: Intel 8254 data sheet; a tick is 1/1193182 s."""

from __future__ import annotations

from emulator.board.pc.pit import HZ, Pit, SystemControl
from emulator.clock import Clock

CORE_HZ = 1_193_182_000  # a tick is 1000 cycles


class Timer:
    def __init__(self) -> None:
        self.cycles = 0
        self.pulses = 0
        self.pit = Pit(Clock(lambda: self.cycles, CORE_HZ), self._pulse)

    def _pulse(self) -> None:
        self.pulses += 1

    def set(self, channel: int, mode: int, count: int) -> None:
        self.pit.write(3, 1, channel << 6 | 3 << 4 | mode << 1)
        self.pit.write(channel, 1, count & 0xFF)
        self.pit.write(channel, 1, count >> 8)

    def at_tick(self, tick: int) -> None:
        self.cycles = -(-tick * CORE_HZ // HZ) + 2

    def look(self) -> bool:
        return self.pit.look(self.cycles)

    def count(self, channel: int) -> int:
        self.pit.write(3, 1, channel << 6)  # latch
        return self.pit.read(channel, 1) | self.pit.read(channel, 1) << 8


def test_a_rate_is_one_pulse_a_period() -> None:
    timer = Timer()
    timer.set(0, 2, 1000)  # loaded at the next tick, 1
    due = timer.pit.due_cycle
    assert due is not None
    assert 1_001_000 <= due <= 1_001_001  # rounded up to a nanosecond
    timer.at_tick(1000)
    assert not timer.look()
    timer.at_tick(1001)
    assert (timer.look(), timer.look(), timer.pulses) == (True, False, 1)
    assert timer.count(0) == 1000
    timer.at_tick(1251)
    assert timer.count(0) == 750
    timer.at_tick(4001)  # several periods are one
    assert (timer.look(), timer.pulses) == (True, 2)
    due = timer.pit.due_cycle
    assert due is not None
    assert 5_001_000 <= due <= 5_001_001


def test_once_at_the_end_of_a_count() -> None:
    timer = Timer()
    timer.set(0, 0, 500)
    timer.at_tick(501)
    assert (timer.look(), timer.pit.due_cycle) == (True, None)
    assert timer.count(0) == 0
    timer.at_tick(502)
    assert timer.count(0) == 0xFFFF  # it goes on


def test_the_speakers_channel_waits_for_its_gate_and_shows_its_output() -> None:
    timer = Timer()
    control = SystemControl(timer.pit)
    timer.set(2, 0, 100)
    timer.at_tick(1000)
    assert (timer.count(2), control.read(0, 1) & 0x20) == (100, 0)
    control.write(0, 1, 1)
    timer.at_tick(1001 + 99)
    assert (timer.count(2), control.read(0, 1) & 0x21) == (1, 1)
    timer.at_tick(1001 + 100)
    assert control.read(0, 1) & 0x21 == 0x21


def test_bytes_come_low_then_high_or_one_alone() -> None:
    timer = Timer()
    timer.set(0, 2, 0x1234)
    timer.at_tick(1)
    assert (timer.pit.read(0, 1), timer.pit.read(0, 1)) == (0x34, 0x12)
    timer.pit.write(3, 1, 2 << 4 | 2 << 1)  # high alone
    timer.pit.write(0, 1, 0x20)
    timer.at_tick(3)
    assert timer.pit.read(0, 1) == 0x1F


def test_the_status_is_read_back() -> None:
    timer = Timer()
    timer.set(0, 3, 1000)
    timer.at_tick(10)
    timer.pit.write(3, 1, 0xE2)  # read back: status of channel 0
    assert timer.pit.read(0, 1) == 0x80 | 3 << 4 | 3 << 1  # output high; low then high; mode 3
    timer.at_tick(1 + 500)
    timer.pit.write(3, 1, 0xE2)
    assert timer.pit.read(0, 1) >> 7 == 0  # the second half of a square
