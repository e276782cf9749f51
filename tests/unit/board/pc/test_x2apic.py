"""The local APIC in x2APIC mode. Expectations: Intel SDM volume 3, "Extended XAPIC (x2APIC)"."""

from __future__ import annotations

import pytest

from emulator.board.pc import x2apic
from emulator.board.pc.local_apic import (
    DFR,
    ESR,
    EVERYBODY,
    ICR_HIGH,
    ICR_LOW,
    LDR,
    LVT_LINT0,
    SVR,
    Delivery,
    Message,
    Mode,
    of_32_bits,
)
from emulator.sysregs import Msr, SystemRegisters, UndefinedRegister
from tests.unit.board.pc.test_local_apic import Package

BASE, ENABLED, EXTENDED, FIRST_CPU = 0xFEE0_0000, 1 << 11, 1 << 10, 1 << 8
APIC_BASE = Msr(0x1B)


class X2Package(Package):
    """All of them in x2APIC mode, with their MSRs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.registers = [SystemRegisters() for _ in self.apics]
        for apic, registers in zip(self.apics, self.registers, strict=True):
            x2apic.claim(registers, apic)
            apic.set_mode(Mode.X2APIC)

    def write(self, number: int, value: int, cpu: int = 0) -> None:
        """As WRMSR does."""
        registers = self.registers[cpu]
        write = registers.writer(Msr(number))
        registers.check_value(Msr(number), value)
        write(value)

    def read(self, number: int, cpu: int = 0) -> int:
        return self.registers[cpu].read(Msr(number))


def one(mode: Mode) -> tuple[X2Package, SystemRegisters]:
    package = X2Package()
    package[0].mode = mode
    return package, package.registers[0]


BITS = {Mode.OFF: 0, Mode.XAPIC: ENABLED, Mode.X2APIC: ENABLED | EXTENDED}
LEGAL = {  # figure "Local x2APIC State Transitions with IA32_APIC_BASE, INIT, and Reset"
    (Mode.OFF, Mode.XAPIC), (Mode.XAPIC, Mode.OFF), (Mode.XAPIC, Mode.X2APIC), (Mode.X2APIC, Mode.OFF),
}  # fmt: skip


@pytest.mark.parametrize("before", Mode)
@pytest.mark.parametrize("after", Mode)
def test_transitions(before: Mode, after: Mode) -> None:
    package, registers = one(before)
    assert registers.read(APIC_BASE) == BASE | FIRST_CPU | BITS[before]
    value = BASE | FIRST_CPU | BITS[after]
    if before is after or (before, after) in LEGAL:
        package.write(0x1B, value)
        assert (package[0].mode, registers.read(APIC_BASE)) == (after, value)
    else:
        with pytest.raises(UndefinedRegister, match="no legal transition"):
            package.write(0x1B, value)
        assert package[0].mode is before


@pytest.mark.parametrize("value", [BASE | EXTENDED | FIRST_CPU, 0xFED0_0000 | ENABLED | FIRST_CPU, BASE | ENABLED | 1])
def test_what_ia32_apic_base_is_not(value: int) -> None:
    """x2APIC mode of one that is off; elsewhere; a reserved bit."""
    package, _ = one(Mode.XAPIC)
    with pytest.raises(UndefinedRegister):
        package.write(0x1B, value)


def test_identifications() -> None:
    package = X2Package(18)
    assert package.read(0x802, 17) == 17
    assert package.read(0x80D, 17) == 1 << 16 | 1 << 1  # the second cluster of 16
    assert package.read(0x803) == 0x5_0014
    assert package.read(0x1B, 1) == BASE | ENABLED | EXTENDED


def test_what_is_in_memory_is_in_msrs_at_16_bytes_each() -> None:
    package = X2Package()
    package.write(0x808, 0x35)
    package.write(0x80F, 0x1FE)
    package.write(0x835, Delivery.NMI << 8)
    assert (package.read(0x808), package.read(0x80A), package.read(0x80F)) == (0x35, 0x35, 0x1FE)
    assert package[0].read(LVT_LINT0, 4) == package.read(0x835) == Delivery.NMI << 8
    package.write(0x83F, 0x45)
    assert package.read(0x822) == 1 << 5  # IRR, vectors 40H to 5FH
    assert package[0].acknowledge() == 0x45
    assert (package.read(0x812), package.read(0x822)) == (1 << 5, 0)  # ISR
    package.write(0x80B, 0)
    assert package.read(0x812) == 0


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (0x80B, 1),  # EOI: zero alone
        (0x828, 1),  # ESR, likewise
        (0x808, 0x100), (0x80F, 1 << 12), (0x832, 1 << 15), (0x83E, 1 << 2), (0x838, 1 << 32), (0x83F, 0x100),
        (0x830, 1 << 20),  # reserved bits
        (0x802, 0), (0x803, 0), (0x80A, 0), (0x80D, 0), (0x810, 0), (0x820, 0), (0x839, 0),  # read only
        (0x80E, 0), (0x831, 0), (0x809, 0), (0x82F, 0), (0x804, 0),  # DFR, the ICR's other half, APR: not there
    ],
)  # fmt: skip
def test_what_may_not_be_written(number: int, value: int) -> None:
    with pytest.raises(UndefinedRegister):
        X2Package().write(number, value)


@pytest.mark.parametrize("number", [0x80B, 0x83F, 0x80E, 0x831, 0x809, 0x82F])
def test_what_may_not_be_read(number: int) -> None:
    with pytest.raises(UndefinedRegister):
        X2Package().read(number)


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.XAPIC])
def test_there_are_no_msrs_in_other_modes(mode: Mode) -> None:
    package, registers = one(mode)
    with pytest.raises(UndefinedRegister):
        registers.read(Msr(0x802))
    with pytest.raises(UndefinedRegister):
        package.write(0x808, 0)


# The ICR's high half and low half, and who is interrupted of 18
@pytest.mark.parametrize(
    ("destination", "low", "expected"),
    [
        (17, 0x42, [17]),
        (EVERYBODY, 0x42, list(range(18))),
        (0xFF, 0x42, []),
        (0x0000_8001, 0x842, [0, 15]),
        (0x0001_0003, 0x842, [16, 17]),
        (EVERYBODY, 0x842, list(range(18))),
        (0, 0x4_0042, [3]),
        (0, 0xC_0042, [cpu for cpu in range(18) if cpu != 3]),
        (0x0000_0006, 0x942, [1]),  # lowest priority: the first of equals
    ],
)
def test_destinations(destination: int, low: int, expected: list[int]) -> None:
    package = X2Package(18)
    package.write(0x830, destination << 32 | low, cpu=3)
    assert package.read(0x830, 3) == destination << 32 | low
    assert [number for number, vector in enumerate(package.requested()) if vector == 0x42] == expected


def test_an_i_o_apics_destinations_have_8_bits() -> None:
    package = X2Package(18)
    for destination, logical, expected in ((17, False, [17]), (0xFF, False, list(range(18))), (0b101, True, [0, 2])):
        message = Message(Delivery.FIXED, 0x42, of_32_bits(destination, logical=logical), logical=logical)
        package.interrupts.send(message, None)
        assert [number for number, vector in enumerate(package.requested()) if vector] == expected
        for apic in package.apics:
            apic.requested = 0


def test_errors() -> None:
    package = X2Package()
    package.write(0x83F, 15)
    package.write(0x828, 0)
    assert package.read(0x828) == 1 << 5  # send illegal vector
    package.write(0x828, 0)
    assert package[0].read(ESR, 4) == 0


def test_an_init_leaves_the_mode_and_the_identification() -> None:
    package = X2Package(2)
    package[1].reset()
    assert (package[1].mode, package.read(0x802, 1), package.read(0x80D, 1)) == (Mode.X2APIC, 1, 2)
    assert package.read(0x80F, 1) == 0xFF


def test_one_that_is_off_has_forgotten_all_and_hears_the_8259_alone() -> None:
    package, _ = one(Mode.XAPIC)
    apic = package[0]
    apic.write(LDR, 4, 1 << 24)
    apic.write(ICR_HIGH, 4, 0)
    apic.set_mode(Mode.OFF)
    apic.write(ICR_LOW, 4, 0x4_0042)
    assert not apic.is_asserted
    apic.external_asserted = lambda: True
    assert apic.is_asserted  # LINT0 is the processor's INTR
    apic.external_asserted = lambda: False
    apic.set_mode(Mode.XAPIC)
    assert (apic.read(SVR, 4), apic.read(LDR, 4), apic.read(DFR, 4), apic.requested) == (0xFF, 0, 0xFFFF_FFFF, 0)
