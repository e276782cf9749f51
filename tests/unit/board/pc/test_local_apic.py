"""The local APIC by its registers. Expectations: Intel SDM volume 3, "Advanced Programmable Interrupt Controller"."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from emulator.board.pc.apic_timer import ApicTimer
from emulator.board.pc.interrupts import Interrupts
from emulator.board.pc.local_apic import (
    DFR,
    DIVIDE,
    EOI,
    ESR,
    ICR_HIGH,
    ICR_LOW,
    INITIAL_COUNT,
    IRR,
    ISR,
    LDR,
    LVT_ERROR,
    LVT_LINT0,
    LVT_PMC,
    LVT_TIMER,
    PPR,
    SVR,
    TPR,
    Delivery,
    LocalApic,
    Message,
)

MASKED = 1 << 16
CURRENT_COUNT = 0x390


@dataclass
class Time:
    """One cycle is one nanosecond, and one tick of the time stamp counter."""

    now: int = 0

    def ns(self) -> int:
        return self.now

    def tsc(self) -> int:
        return self.now

    def cycle_at_ns(self, ns: int) -> int:
        return ns

    def cycle_at_tsc(self, tsc: int) -> int:
        return tsc


@dataclass
class Pins:
    heard: list[str] = field(default_factory=list)

    def nmi(self) -> None:
        self.heard.append("NMI")

    def init(self) -> None:
        self.heard.append("INIT")

    def start_up(self, vector: int) -> None:
        self.heard.append(f"SIPI {vector:#x}")


@dataclass
class Package:
    """CPUs' local APICs, on, and what is around them."""

    cpus: int = 1
    time: Time = field(default_factory=Time)

    def __post_init__(self) -> None:
        self.interrupts = Interrupts(lambda: None)
        self.pins = [Pins() for _ in range(self.cpus)]
        self.apics = [
            LocalApic(n, ApicTimer(self.time, lambda: None), self.interrupts, self.pins[n], lambda: None)
            for n in range(self.cpus)
        ]
        self.interrupts.connect(self.apics)
        for apic in self.apics:
            apic.write(SVR, 4, 0x1FF)

    def requested(self) -> list[int]:
        """The highest vector that each CPU's APIC asks for; 0: none."""
        return [max(apic.requested.bit_length() - 1, 0) for apic in self.apics]

    def __getitem__(self, number: int) -> LocalApic:
        return self.apics[number]


def interrupt(apic: LocalApic, vector: int, *, level: bool = False) -> None:
    apic.receive(Message(Delivery.FIXED, vector, level_triggered=level))


def test_at_reset() -> None:
    apic = LocalApic(3, ApicTimer(Time(), lambda: None), Interrupts(lambda: None), Pins(), lambda: None)
    assert apic.read(0x20, 4) == 3 << 24
    assert apic.read(0x30, 4) == 0x5_0014  # six entries; an integrated APIC
    assert (apic.read(SVR, 4), apic.read(DFR, 4), apic.read(LVT_TIMER, 4)) == (0xFF, 0xFFFF_FFFF, MASKED)
    interrupt(apic, 0x40)
    assert not apic.is_asserted  # it is off


def test_the_highest_vector_comes_first_and_others_wait_for_its_end() -> None:
    apic = Package()[0]
    for vector in (0x31, 0x52, 0x45):
        interrupt(apic, vector)
    assert apic.acknowledge() == 0x52
    assert apic.read(PPR, 4) == 0x50
    assert not apic.is_asserted  # 0x45 is of a lower class
    interrupt(apic, 0x5F)
    assert not apic.is_asserted  # of the same class
    interrupt(apic, 0x61)
    assert (apic.is_asserted, apic.acknowledge()) == (True, 0x61)
    # vectors 0x40 to 0x5F: bits of the third word
    assert apic.read(ISR + 0x20, 4) == 1 << (0x52 - 0x40)
    assert apic.read(IRR + 0x20, 4) == 1 << 5 | 1 << (0x5F - 0x40)
    order = []
    for _ in range(2):
        apic.write(EOI, 4, 0)
    while apic.is_asserted:
        order.append(apic.acknowledge())
        apic.write(EOI, 4, 0)
    assert order == [0x5F, 0x45, 0x31]


@pytest.mark.parametrize(("priority", "asserted"), [(0x3F, True), (0x40, False), (0x4F, False), (0x50, False)])
def test_the_task_priority_keeps_out_its_class_and_those_below(priority: int, asserted: bool) -> None:
    apic = Package()[0]
    interrupt(apic, 0x41)
    apic.write(TPR, 4, priority)
    assert apic.is_asserted is asserted
    assert apic.read(PPR, 4) == priority


def test_a_vector_below_16_is_an_error() -> None:
    apic = Package()[0]
    apic.write(LVT_ERROR, 4, 0x77)
    interrupt(apic, 15)
    assert apic.acknowledge() == 0x77
    assert apic.read(ESR, 4) == 0  # until it is written
    apic.write(ESR, 4, 0)
    assert apic.read(ESR, 4) == 1 << 6  # received illegal vector
    apic.write(ICR_LOW, 4, 0x4003)
    apic.write(ESR, 4, 0)
    assert apic.read(ESR, 4) == 1 << 5  # send illegal vector
    apic.write(0x3F0, 4, 1)
    apic.write(ESR, 4, 0)
    assert apic.read(ESR, 4) == 1 << 7  # illegal register


# destination mode and shorthand in the ICR's low half, the destination in its high half, and who is interrupted of four
@pytest.mark.parametrize(
    ("low", "destination", "expected"),
    [
        (0x0_0042, 2, [2]),
        (0x0_0042, 0xFF, [0, 1, 2, 3]),
        (0x0_0842, 0b0110, [1, 2]),
        (0x0_0842, 0b1000, [3]),
        (0x4_0042, 3, [0]),
        (0x8_0042, 3, [0, 1, 2, 3]),
        (0xC_0042, 3, [1, 2, 3]),
        (0x0_0942, 0b1110, [1]),  # lowest priority: the first of equals
        (0x0_0042, 9, []),
    ],
)
def test_destinations(low: int, destination: int, expected: list[int]) -> None:
    package = Package(4)
    for number, apic in enumerate(package.apics):
        apic.write(DFR, 4, 0xFFFF_FFFF)
        apic.write(LDR, 4, 1 << 24 + number)
    package[0].write(ICR_HIGH, 4, destination << 24)
    package[0].write(ICR_LOW, 4, low)
    assert [number for number, vector in enumerate(package.requested()) if vector == 0x42] == expected


def test_clusters() -> None:
    package = Package(4)
    for number, apic in enumerate(package.apics):  # two clusters of two
        apic.write(DFR, 4, 0x0FFF_FFFF)
        apic.write(LDR, 4, (number // 2) << 28 | 1 << 24 + number % 2)
    for destination, expected in ((0x12, [3]), (0x03, [0, 1]), (0xF1, [0, 2])):
        package[0].write(ICR_HIGH, 4, destination << 24)
        package[0].write(ICR_LOW, 4, 0x842)
        assert [n for n, vector in enumerate(package.requested()) if vector] == expected
        for apic in package.apics:
            apic.requested = 0


def test_lowest_priority_goes_to_who_does_the_least() -> None:
    package = Package(3)
    interrupt(package[0], 0x80)
    package[0].acknowledge()
    package[1].write(TPR, 4, 0x30)
    package[0].write(ICR_HIGH, 4, 0xFF << 24)
    package[0].write(ICR_LOW, 4, 0x0142)
    assert package.requested() == [0, 0, 0x42]


def test_init_start_up_and_nmi() -> None:
    package = Package(2)
    package[0].write(ICR_HIGH, 4, 1 << 24)
    for low in (0xC500, 0x8500, 0x4608, 0x4400):  # INIT asserted, and de-asserted, which nobody hears
        package[0].write(ICR_LOW, 4, low)
    assert (package.pins[0].heard, package.pins[1].heard) == ([], ["INIT", "SIPI 0x8", "NMI"])


def test_the_timer_once() -> None:
    package = Package()
    apic, time = package[0], package.time
    apic.write(LVT_TIMER, 4, 0x40)
    apic.write(DIVIDE, 4, 0b0011)  # by 16
    apic.write(INITIAL_COUNT, 4, 100)
    assert apic.timer.due_cycle == 1600
    time.now = 320
    assert apic.read(CURRENT_COUNT, 4) == 80
    time.now = 1599
    apic.look_at_timer()
    assert not apic.is_asserted
    time.now = 1600
    apic.look_at_timer()
    assert (apic.read(CURRENT_COUNT, 4), apic.acknowledge()) == (0, 0x40)
    assert apic.timer.due_cycle is None


def test_the_timer_again_and_again() -> None:
    package = Package()
    apic, time = package[0], package.time
    apic.write(LVT_TIMER, 4, 1 << 17 | 0x40)
    apic.write(DIVIDE, 4, 0b1011)  # by 1
    apic.write(INITIAL_COUNT, 4, 1000)
    assert apic.timer.due_cycle == 1000
    time.now = 2500  # two periods are one interrupt
    apic.look_at_timer()
    assert apic.acknowledge() == 0x40
    apic.write(EOI, 4, 0)
    assert (apic.is_asserted, apic.timer.due_cycle, apic.read(CURRENT_COUNT, 4)) == (False, 3000, 500)


def test_the_timer_by_the_time_stamp_counter() -> None:
    package = Package()
    apic, time = package[0], package.time
    apic.timer.set_deadline(50)
    assert apic.timer.deadline == 0  # not in this mode
    apic.write(LVT_TIMER, 4, 2 << 17 | 0x40)
    apic.timer.set_deadline(5000)
    apic.write(INITIAL_COUNT, 4, 7)  # ignored
    assert (apic.timer.deadline, apic.timer.due_cycle, apic.read(CURRENT_COUNT, 4)) == (5000, 5000, 0)
    time.now = 5000
    apic.look_at_timer()
    assert (apic.acknowledge(), apic.timer.deadline, apic.timer.due_cycle) == (0x40, 0, None)
    apic.timer.set_deadline(9000)
    apic.write(LVT_TIMER, 4, 0x40)
    assert (apic.timer.deadline, apic.timer.due_cycle) == (0, None)  # another mode disarms it


def test_a_masked_entry_says_nothing_and_being_off_masks_all() -> None:
    package = Package()
    apic = package[0]
    apic.write(LVT_PMC, 4, MASKED | 0x44)
    assert not apic.local(LVT_PMC)
    apic.write(LVT_PMC, 4, Delivery.NMI << 8)
    assert apic.local(LVT_PMC)
    assert package.pins[0].heard == ["NMI"]
    apic.write(SVR, 4, 0xFF)
    assert apic.read(LVT_PMC, 4) == MASKED | Delivery.NMI << 8
    apic.write(LVT_PMC, 4, 0x44)
    assert apic.read(LVT_PMC, 4) == MASKED | 0x44


def test_the_8259_is_heard_through_lint0() -> None:
    package = Package(2)
    pics = package.interrupts.pics
    for word, port in ((0x11, 0), (0x20, 1), (4, 1), (1, 1), (0xFE, 1)):
        pics.first.write(port, word)
    package.interrupts.set_isa(0, True)
    assert not package[0].is_asserted
    package[0].write(LVT_LINT0, 4, Delivery.EXTERNAL << 8)
    package[1].write(LVT_LINT0, 4, Delivery.EXTERNAL << 8)
    assert [apic.is_asserted for apic in package.apics] == [True, False]
    assert package[0].acknowledge() == 0x20
    assert not package[0].is_asserted
    assert package[0].in_service == 0  # an external one is none of the APIC's
