"""Interrupts: how a pc's interrupt controllers are wired to each other, and devices to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.board.pc.acpi import IO_APIC_NUMBER, TIMER_INTERRUPT, TIMER_PIN
from emulator.board.pc.io_apic import PINS, IoApic
from emulator.board.pc.local_apic import Delivery, LocalApic, Message
from emulator.board.pc.pic import Pics

TO_SELF, TO_ALL, TO_OTHERS = 1, 2, 3  # shorthands


class Interrupts:
    """emulator.board.pc.local_apic.Messages."""

    kept = "pics", "io_apic", "_asserted"

    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed`: the first CPU's LINT0 may have."""
        self.pics = Pics(lambda asserted: changed())
        self.io_apic = IoApic(IO_APIC_NUMBER, lambda message: self.send(message, None))
        self._apics: Sequence[LocalApic] = ()
        self._asserted = [0] * PINS  # who asserts a shared pin, a bit for each

    def connect(self, apics: Sequence[LocalApic]) -> None:
        """The first of them gets the 8259s' output."""
        self._apics = apics
        apics[0].external_asserted = lambda: self.pics.asserted
        apics[0].external = self.pics.acknowledge

    # ---- devices

    def set_isa(self, interrupt: int, asserted: bool) -> None:
        """An IRQ of ISA's, which both kinds of controllers have."""
        self.pics.set_level(interrupt, asserted)
        self.io_apic.set_level(TIMER_PIN if interrupt == TIMER_INTERRUPT else interrupt, asserted)

    def pulse_timer(self) -> None:
        """The 8254's output rises, and what rises next, falls before."""
        self.set_isa(TIMER_INTERRUPT, False)
        self.set_isa(TIMER_INTERRUPT, True)

    def set_shared(self, pin: int, device: int, asserted: bool) -> None:
        """Of the I/O APIC alone: it is asserted as long as one device says so."""
        by = self._asserted[pin] & ~(1 << device) | asserted << device
        self._asserted[pin] = by
        self.io_apic.set_level(pin, bool(by))

    # ---- messages

    def send(self, message: Message, sender: LocalApic | None) -> None:
        targets = self._targets(message, sender)
        if message.delivery is Delivery.LOWEST_PRIORITY and targets:
            targets = [min(targets, key=lambda apic: apic.processor_priority)]  # the first of equals
        for apic in targets:
            apic.receive(message)

    def _targets(self, message: Message, sender: LocalApic | None) -> list[LocalApic]:
        if message.shorthand == TO_SELF:
            return [sender] if sender is not None else []
        if message.shorthand:
            return [apic for apic in self._apics if message.shorthand == TO_ALL or apic is not sender]
        return [apic for apic in self._apics if apic.is_destination(message.destination, logical=message.logical)]

    def end_of_interrupt(self, vector: int) -> None:
        self.io_apic.end_of_interrupt(vector)
