"""Pics: two 8259A interrupt controllers, the second at pin 2 of the first. Intel 8259A data sheet; ELCR as in PIIX."""

from __future__ import annotations

from collections.abc import Callable

FIRST, SECOND, PORTS = 0x20, 0xA0, 2
EDGE_LEVEL, EDGE_LEVEL_PORTS = 0x4D0, 2
CASCADE = 2
PINS = 8
ICW1, ICW1_NEEDS_ICW4, ICW1_SINGLE = 1 << 4, 1, 1 << 1
OCW3, POLL, READ_REGISTER = 1 << 3, 1 << 2, 1 << 1
AUTOMATIC_END = 1 << 1  # ICW4
SPURIOUS = 7


class Pic:
    """One of them. `changed` is called when its output may have changed."""

    kept = (
        "edge_level", "_levels", "_base", "_mask", "_step", "_requested", "_in_service", "_reads_in_service", "_polls",
        "_automatic_end", "_special_mask", "_lowest", "_icw1",
    )  # fmt: skip
    kept_ranges = {"_lowest": range(PINS)}

    def __init__(self, changed: Callable[[], None]) -> None:
        self.edge_level = 0  # ELCR: pins that are level-triggered
        self._changed = changed
        self._levels = 0
        self._initialise(0)
        self._base = 0  # ICW2
        self._mask = 0xFF
        self._step = 0  # which initialisation word comes next; 0: none

    def _initialise(self, icw1: int) -> None:
        self._requested = self._in_service = self._mask = 0
        self._reads_in_service = self._polls = False
        self._automatic_end = self._special_mask = False
        self._lowest = SPURIOUS  # of the priorities
        self._icw1 = icw1
        self._step = 2

    def set_level(self, pin: int, asserted: bool) -> None:
        bit = 1 << pin
        before = self._levels & bit
        self._levels = self._levels & ~bit | asserted << pin
        if self.edge_level & bit:
            self._requested = self._requested & ~bit | asserted << pin
        elif asserted and not before:
            self._requested |= bit
        elif not asserted:
            self._requested &= ~bit  # an edge whose level goes before it is acknowledged is none
        self._changed()

    @property
    def pin(self) -> int | None:
        """The one that the processor would be told of now."""
        candidates = self._requested & ~self._mask
        for step in range(PINS):
            pin = (self._lowest + 1 + step) % PINS
            if self._in_service >> pin & 1 and not (self._special_mask and self._mask >> pin & 1):
                return None
            if candidates >> pin & 1:
                return pin
        return None

    def acknowledge(self) -> int:
        """The vector of `pin`, or the spurious one."""
        pin = self.pin
        if pin is None:
            return self._base + SPURIOUS
        bit = 1 << pin
        if not self.edge_level & bit:
            self._requested &= ~bit
        if not self._automatic_end:
            self._in_service |= bit
        self._changed()
        return self._base + pin

    def read(self, offset: int) -> int:
        if self._polls:
            self._polls = False
            pin = self.pin
            return 0 if pin is None else 0x80 | self.acknowledge() - self._base
        if offset:
            return self._mask
        return self._in_service if self._reads_in_service else self._requested

    def write(self, offset: int, value: int) -> None:
        if offset:
            self._write_data(value)
        elif value & ICW1:
            self._initialise(value)
        elif value & OCW3:
            self._polls = bool(value & POLL)
            if value & READ_REGISTER:
                self._reads_in_service = bool(value & 1)
            if value & 1 << 6:
                self._special_mask = bool(value & 1 << 5)
        else:
            self._end(value >> 5, value & 7)
        self._changed()

    def _write_data(self, value: int) -> None:
        if self._step == 0:
            self._mask = value
        elif self._step == 2:
            self._base = value & 0xF8
            self._step = 3 if not self._icw1 & ICW1_SINGLE else self._after_icw3
        elif self._step == 3:  # who is at which pin: as it is wired
            self._step = self._after_icw3
        else:
            self._automatic_end = bool(value & AUTOMATIC_END)
            self._step = 0

    @property
    def _after_icw3(self) -> int:
        return 4 if self._icw1 & ICW1_NEEDS_ICW4 else 0

    def _end(self, command: int, pin: int) -> None:
        """OCW2: EOI, specific or not, and rotation."""
        specific, rotates = bool(command & 2), bool(command & 4)
        if command & 1:
            if not specific:
                by_priority = ((self._lowest + 1 + step) % PINS for step in range(PINS))
                found = next((each for each in by_priority if self._in_service >> each & 1), None)
                if found is None:
                    return
                pin = found
            self._in_service &= ~(1 << pin)
        if rotates and (specific or command & 1):
            self._lowest = pin


class Pics:
    """Both. `set_output` hears whether the processor is asked for attention."""

    kept = "first", "second"

    def __init__(self, set_output: Callable[[bool], None]) -> None:
        self._set_output = set_output
        self.second = Pic(self._second_changed)
        self.first = Pic(self._first_changed)

    def _first_changed(self) -> None:
        self._set_output(self.asserted)

    def _second_changed(self) -> None:
        self.first.set_level(CASCADE, self.second.pin is not None)

    @property
    def asserted(self) -> bool:
        return self.first.pin is not None

    def set_level(self, interrupt: int, asserted: bool) -> None:
        """ISA's IRQ 0 to 15."""
        (self.first if interrupt < PINS else self.second).set_level(interrupt % PINS, asserted)

    def acknowledge(self) -> int:
        """The processor takes an interrupt: its vector."""
        if self.first.pin == CASCADE:
            self.first.acknowledge()
            return self.second.acknowledge()
        return self.first.acknowledge()


class PicPorts:
    """Ports of one of them."""

    def __init__(self, pic: Pic) -> None:
        self._pic = pic

    def read(self, offset: int, size: int) -> int:
        return self._pic.read(offset)

    def write(self, offset: int, size: int, value: int) -> None:
        self._pic.write(offset, value & 0xFF)


class EdgeLevelPorts:
    """ELCR of both: which pins are level-triggered. Pins 0, 1, 2, 8 and 13 never are."""

    def __init__(self, pics: Pics) -> None:
        self._pics = pics.first, pics.second

    def read(self, offset: int, size: int) -> int:
        return self._pics[offset].edge_level

    def write(self, offset: int, size: int, value: int) -> None:
        self._pics[offset].edge_level = value & (0xF8, 0xDE)[offset]
