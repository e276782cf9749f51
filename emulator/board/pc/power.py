"""Power: ACPI's fixed registers, and the ways in which PCs are turned off and reset."""

from __future__ import annotations

from collections.abc import Callable

from emulator.clock import Clock

PM_EVENTS, EVENT_BYTES = 0x600, 4  # where QEMU's PC has them: PM1_STS, PM1_EN
PM_CONTROL, CONTROL_BYTES = 0x604, 2
PM_TIMER, TIMER_BYTES = 0x608, 4
PORTS = 12
PM_TIMER_HZ = 3_579_545
RESET, RESET_VALUE = 0xCF9, 0x06
KEYBOARD_COMMAND, PULSE_RESET = 0x64, 0xFE
SYSTEM_CONTROL_A, FAST_RESET = 0x92, 1
ACPI_IS_ON, SLEEP_ENABLE = 1, 1 << 13  # PM1_CNT: SCI_EN, SLP_EN
OFF = 0  # SLP_TYP of S5, in which a machine is off; there is no other state
NS_PER_S = 1_000_000_000


class PowerManagement:
    """PM1 event and control block, PM timer. No event ever happens."""

    kept = "_enabled", "_control"

    def __init__(self, clock: Clock, turn_off: Callable[[], None]) -> None:
        self._clock = clock
        self._turn_off = turn_off
        self._enabled = 0
        self._control = ACPI_IS_ON

    @property
    def _timer(self) -> int:
        return self._clock.elapsed_ns() * PM_TIMER_HZ // NS_PER_S & 0xFFFF_FFFF

    def _bytes(self) -> bytes:
        events = bytes(2) + self._enabled.to_bytes(2, "little")
        return events + self._control.to_bytes(2, "little") + bytes(2) + self._timer.to_bytes(4, "little")

    def read(self, offset: int, size: int) -> int:
        return int.from_bytes(self._bytes()[offset : offset + size], "little")

    def write(self, offset: int, size: int, value: int) -> None:
        if offset <= 2 < offset + size:
            self._enabled = value >> 8 * (2 - offset) & 0xFFFF
        elif offset == PM_CONTROL - PM_EVENTS:
            self._control = value & 0x1C00 | ACPI_IS_ON
            if value & SLEEP_ENABLE and value >> 10 & 7 == OFF:
                self._turn_off()


class ResetControl:
    """Port 0CF9H: a reset where bit 2 rises."""

    kept = ("_kept",)

    def __init__(self, reset: Callable[[], None]) -> None:
        self._reset = reset
        self._kept = 0

    def read(self, offset: int, size: int) -> int:
        return self._kept

    def write(self, offset: int, size: int, value: int) -> None:
        if value & ~self._kept & 4:
            self._reset()
        self._kept = value & 0xFF


class KeyboardPort:
    """Port 64H without a keyboard controller: nothing answers, but the reset that all PCs have there."""

    def __init__(self, reset: Callable[[], None]) -> None:
        self._reset = reset

    def read(self, offset: int, size: int) -> int:
        return (1 << 8 * size) - 1

    def write(self, offset: int, size: int, value: int) -> None:
        if value & 0xFF == PULSE_RESET:
            self._reset()


class SystemControlA:
    """Port 92H: A20 is always open; bit 0 resets."""

    def __init__(self, reset: Callable[[], None]) -> None:
        self._reset = reset

    def read(self, offset: int, size: int) -> int:
        return 2

    def write(self, offset: int, size: int, value: int) -> None:
        if value & FAST_RESET:
            self._reset()


class ExitPort:
    """isa-debug-exit of QEMU: what is written ends the run, with status 2n + 1."""

    def __init__(self, end: Callable[[int], None]) -> None:
        self._end = end

    def read(self, offset: int, size: int) -> int:
        return 0

    def write(self, offset: int, size: int, value: int) -> None:
        self._end((value << 1 | 1) & 0xFF)
