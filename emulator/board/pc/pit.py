"""Pit: the 8254 timer, and port 61H, where its channel 2 is gated and seen. Intel 8254 data sheet.

It counts in time of the machine; nothing of it costs anything until it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.clock import Clock

FIRST_PORT, PORTS, SYSTEM_CONTROL = 0x40, 4, 0x61
HZ = 1_193_182
NS_PER_S = 1_000_000_000
CONTROL, READ_BACK = 3, 3
LATCH, LOW, HIGH, LOW_THEN_HIGH = 0, 1, 2, 3  # access
SPEAKER = 2  # channel
GATE_OF_SPEAKER, SPEAKER_DATA, REFRESH, OUTPUT_OF_SPEAKER = 1 << 0, 1 << 1, 1 << 4, 1 << 5  # port 61H
_MOST = 0x1_0000


class Channel:
    """One counter."""

    kept = (
        "_access", "_mode", "_bcd", "_reload", "_started", "_low", "_high_is_next", "_latched", "_status", "gate",
    )  # fmt: skip
    kept_ranges = {"_mode": range(6), "_reload": range(1, _MOST + 1)}
    kept_growing = ("_latched",)

    def __init__(self, now: Callable[[], int]) -> None:
        """`now`: ticks since the machine's start."""
        self._now = now
        self._access, self._mode, self._bcd = LOW_THEN_HIGH, 0, False
        self._reload = _MOST
        self._started: int | None = None  # tick from which on it counts
        self._low: int | None = None  # byte of a count that is half written
        self._high_is_next = False  # to be read
        self._latched: list[int] = []
        self._status: int | None = None
        self.gate = True

    @property
    def is_periodic(self) -> bool:
        return self._mode in (2, 3)

    @property
    def period_ticks(self) -> int:
        return self._reload

    @property
    def started(self) -> int | None:
        return self._started

    def control(self, value: int) -> None:
        access = value >> 4 & 3
        if access == LATCH:
            self._latch()
            return
        mode = value >> 1 & 7
        self._access, self._mode, self._bcd = access, mode if mode < 6 else mode - 4, bool(value & 1)
        self._started = self._low = self._status = None
        self._high_is_next = False
        self._latched = []

    def read_back(self, *, count: bool, status: bool) -> None:
        if status and self._status is None:
            null_count = self._started is None
            self._status = self.output << 7 | null_count << 6 | self._access << 4 | self._mode << 1 | self._bcd
        if count:
            self._latch()

    def _latch(self) -> None:
        if not self._latched:
            count = self._shown()
            self._latched = {LOW: [count & 0xFF], HIGH: [count >> 8]}.get(self._access, [count & 0xFF, count >> 8])

    def read(self) -> int:
        if self._status is not None:
            status, self._status = self._status, None
            return status
        if self._latched:
            return self._latched.pop(0)
        count = self._shown()
        if self._access == LOW_THEN_HIGH:
            self._high_is_next = not self._high_is_next
            return count & 0xFF if self._high_is_next else count >> 8
        return count & 0xFF if self._access == LOW else count >> 8

    def write(self, value: int) -> None:
        """A byte of the count; it starts with the last."""
        if self._access == LOW_THEN_HIGH and self._low is None:
            self._low = value
            if self._mode == 0:
                self._started = None  # writing the first byte stops it
            return
        low, high = {LOW: (value, 0), HIGH: (0, value)}.get(self._access, (self._low or 0, value))
        self._low = None
        count = low | high << 8
        self._reload = (_from_bcd(count) if self._bcd else count) or (10_000 if self._bcd else _MOST)
        if self._mode not in (1, 5):  # those start at their gate
            self._started = self._now() + 1 if self.gate else None

    def set_gate(self, gate: bool) -> None:
        if gate and not self.gate and (self._started is None or self._mode in (1, 2, 3, 5)):
            self._started = self._now() + 1  # modes 0 and 4 go on
        self.gate = gate

    @property
    def count(self) -> int:
        if self._started is None:
            return self._reload
        passed = max(self._now() - self._started, 0)
        if self._mode == 3:
            return self._reload - 2 * passed % self._reload
        if self._mode == 2:
            return self._reload - passed % self._reload
        return (self._reload - passed) % _MOST

    def _shown(self) -> int:
        count = self.count % _MOST
        return _to_bcd(count % 10_000) if self._bcd else count

    @property
    def output(self) -> bool:
        if self._started is None:
            return self._mode != 0
        passed = max(self._now() - self._started, 0)
        if self._mode in (0, 1):
            return passed >= self._reload
        if self._mode == 2:
            return passed % self._reload != self._reload - 1
        if self._mode == 3:
            return passed % self._reload < (self._reload + 1) // 2
        return passed != self._reload  # 4, 5: a strobe


class Pit:
    """Three channels; `pulse` is IRQ 0's edge, when channel 0's output rises."""

    kept = "channels", "_raised", "_due_cycle"

    def __init__(self, clock: Clock, pulse: Callable[[], None]) -> None:
        self._clock = clock
        self._pulse = pulse
        self.channels = [Channel(self._ticks) for _ in range(3)]
        self.channels[SPEAKER].gate = False
        self._raised = 0  # rises of channel 0 since it was started
        self._due_cycle: int | None = None
        self._speaker_data = 0

    def _ticks(self) -> int:
        return self._clock.elapsed_ns() * HZ // NS_PER_S

    # ---- channel 0's interrupts

    @property
    def due_cycle(self) -> int | None:
        return self._due_cycle

    idle_cycle = due_cycle

    def look(self, now: int) -> bool:
        """It is cycle `now`: whether IRQ 0 rises. Several periods are one."""
        if self._due_cycle is None or now < self._due_cycle:
            return False
        channel = self.channels[0]
        assert channel.started is not None, "it counts"
        self._raised = max(self._ticks() - channel.started, 0) // channel.period_ticks
        self._pulse()
        self._update()
        return True

    def _update(self) -> None:
        channel = self.channels[0]
        self._due_cycle = None
        if channel.started is not None and (channel.is_periodic or not self._raised):
            tick = channel.started + (self._raised + 1) * channel.period_ticks
            self._due_cycle = self._clock.cycle_at(-(-tick * NS_PER_S // HZ))

    # ---- ports

    def read(self, offset: int, size: int) -> int:
        return 0 if offset == CONTROL else self.channels[offset].read()

    def write(self, offset: int, size: int, value: int) -> None:
        if offset == CONTROL and value >> 6 == READ_BACK:
            for number, channel in enumerate(self.channels):
                if value >> number & 2:
                    channel.read_back(count=not value & 1 << 5, status=not value & 1 << 4)
            return
        number = value >> 6 if offset == CONTROL else offset
        channel = self.channels[number]
        if offset != CONTROL:
            channel.write(value)
        else:
            channel.control(value)
            if value >> 4 & 3 == LATCH:
                return
        if number == 0:
            self._raised = 0
            self._update()


class SystemControl:
    """Port 61H: NMI status and control register B of the PC/AT, as far as it is about the timer."""

    kept = "_kept", "_refresh"

    def __init__(self, pit: Pit) -> None:
        self._pit = pit
        self._kept = 0
        self._refresh = 0

    def read(self, offset: int, size: int) -> int:
        self._refresh ^= REFRESH
        speaker = self._pit.channels[SPEAKER]
        return self._kept | self._refresh | (OUTPUT_OF_SPEAKER if speaker.output else 0)

    def write(self, offset: int, size: int, value: int) -> None:
        self._kept = value & 0xF
        self._pit.channels[SPEAKER].set_gate(bool(value & GATE_OF_SPEAKER))


def _from_bcd(value: int) -> int:
    return sum((value >> 4 * digit & 0xF) * 10**digit for digit in range(4))


def _to_bcd(value: int) -> int:
    return sum(value // 10**digit % 10 << 4 * digit for digit in range(4))
