"""The I/O APIC by its registers. Expectations: Intel 82093AA data sheet."""

from __future__ import annotations

from emulator.board.pc.io_apic import EOI, PINS, SELECT, WINDOW, IoApic
from emulator.board.pc.local_apic import Delivery, Message

MASKED, LEVEL, REMOTE_IRR, LOGICAL = 1 << 16, 1 << 15, 1 << 14, 1 << 11


class Controller:
    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.io_apic = IoApic(0, self.sent.append)

    def read(self, register: int) -> int:
        self.io_apic.write(SELECT, 4, register)
        return self.io_apic.read(WINDOW, 4)

    def write(self, register: int, value: int) -> None:
        self.io_apic.write(SELECT, 4, register)
        self.io_apic.write(WINDOW, 4, value)

    def entry(self, pin: int, low: int, destination: int = 0) -> None:
        self.write(0x11 + 2 * pin, destination << 24)
        self.write(0x10 + 2 * pin, low)


def test_it_has_24_masked_pins() -> None:
    controller = Controller()
    assert controller.read(1) == (PINS - 1) << 16 | 0x20
    assert [controller.read(0x10 + 2 * pin) for pin in range(PINS)] == [MASKED] * PINS
    assert controller.read(0x10 + 2 * PINS) == 0


def test_an_edge_is_one_message_and_lost_where_it_is_masked() -> None:
    controller = Controller()
    controller.io_apic.set_level(4, True)
    controller.entry(4, LOGICAL | Delivery.LOWEST_PRIORITY << 8 | 0x34, 0x0F)
    assert controller.sent == []
    for asserted in (False, True, True):
        controller.io_apic.set_level(4, asserted)
    (message,) = controller.sent
    assert (message.delivery, message.vector, message.destination) == (Delivery.LOWEST_PRIORITY, 0x34, 0x0F)
    assert (message.logical, message.level_triggered) == (True, False)


def test_a_level_is_one_message_until_its_end_is_heard() -> None:
    controller = Controller()
    controller.entry(17, LEVEL | MASKED | 0x51)
    controller.io_apic.set_level(17, True)
    assert controller.sent == []
    controller.entry(17, LEVEL | 0x51)  # unmasked while it is asserted
    assert len(controller.sent) == 1
    assert controller.read(0x10 + 2 * 17) == LEVEL | REMOTE_IRR | 0x51
    controller.io_apic.set_level(17, True)
    controller.io_apic.end_of_interrupt(0x50)  # another's
    assert len(controller.sent) == 1
    controller.io_apic.end_of_interrupt(0x51)  # it is asserted still
    assert len(controller.sent) == 2
    controller.io_apic.set_level(17, False)
    controller.io_apic.write(EOI, 4, 0x51)
    assert len(controller.sent) == 2
    assert controller.read(0x10 + 2 * 17) == LEVEL | 0x51
