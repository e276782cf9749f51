"""What a register's declaration means: access kinds, values by field, printing, errors."""

import pytest

from emulator.sysregs import Msr, SysReg
from pmu.arm.registers import PMCNTENCLR_EL0, PMCNTENSET_EL0, PMCR_EL0, PMEVCNTRn_EL0, PMEVTYPERn_EL0
from pmu.intel.registers import IA32_PERF_GLOBAL_STATUS_RESET, IA32_PERFEVTSELx, IA32_PMCx
from pmu.register import RO, RW, W1C, W1S, WO, Bank, Register


class Example(Register):
    """One field of each kind: bits 0, 1, 2, 3, 4 and 8..15."""

    encoding = Msr(0x10)

    A = RW(0)
    B = RO(1)
    C = WO(2)
    D = W1S(3)
    E = W1C(4)
    F = RW(15, 8)


def test_write_of_ones_stores_sets_and_clears() -> None:
    # from 0: A and F are stored (0xff01), D is set (0x8), E has nothing to clear, B and C are not stored
    assert Example.write(0, 0xFFFF_FFFF) == 0xFF09


def test_write_of_zeros_leaves_what_only_ones_change() -> None:
    # from all ones: A and F become 0; B (RO), C, D, E and the bits that are not declared stay
    assert Example.write(0xFFFF, 0) == 0xFFFF & ~0xFF01


def test_write_one_to_clear() -> None:
    assert Example.write(0x10, 0x10) == 0


def test_read_hides_write_only_and_undeclared_bits() -> None:
    assert Example.read(0xFFFF) == 0xFF1B  # all declared but C (0x4)


def test_set_and_clear_registers_share_a_storage() -> None:
    assert PMCNTENSET_EL0.stored_in == PMCNTENCLR_EL0.stored_in
    stored = PMCNTENSET_EL0.write(0, 0x8000_0005)
    assert stored == 0x8000_0005
    assert PMCNTENCLR_EL0.write(stored, 0x4000_0001) == 0x8000_0004


def test_fields_by_name() -> None:
    value = PMCR_EL0(0x4100_3041)  # IMP 0x41, N 6 (0x3000 = 6 << 11), LC and E
    assert (value.E, value.P, value.LC, value.N, value.IMP) == (1, 0, 1, 6, 0x41)
    assert PMCR_EL0.N.mask == 0xF800
    assert int(value) == 0x4100_3041


def test_printing_names_the_fields_that_are_set() -> None:
    assert str(PMCR_EL0(0x3041)) == "PMCR_EL0{E=1 LC=1 N=6}"
    assert str(Example(1 << 20)) == "Example{?=0x100000}"


def test_make_builds_a_value_from_fields() -> None:
    assert PMCR_EL0.make(E=1, N=6) == 0x3001


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"N": 32}, r"PMCR_EL0\.N: 0x20 does not fit in 5 bits"),
        ({"E": -1}, r"PMCR_EL0\.E: -0x1 does not fit"),
        ({"Z": 1}, "PMCR_EL0 has no field Z; it has E, P, C"),
    ],
)
def test_make_refuses_by_name(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PMCR_EL0.make(**fields)


def test_overlapping_fields_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Overlapping\.B: bits 1:0 are already declared"):
        type("Overlapping", (Register,), {"A": RW(0), "B": RO(1, 0)})


def test_bits_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Reversed\.A: bits 0:3 are not within 63:0"):
        type("Reversed", (Register,), {"A": RW(0, 3)})


def test_a_field_may_not_hide_the_registers_own_names() -> None:
    with pytest.raises(TypeError, match=r"Hiding\.read: the name is taken"):
        type("Hiding", (Register,), {"read": RW(0)})


def test_encodings_are_computed_for_banks() -> None:
    # PMEVCNTR<n>: CRm is 0b10:n[4:3], op2 is n[2:0]; PMEVTYPER<n>: CRm is 0b11:n[4:3]
    assert PMEVCNTRn_EL0.encoding_of(0) == SysReg(3, 3, 14, 8, 0)
    assert PMEVCNTRn_EL0.encoding_of(9) == SysReg(3, 3, 14, 9, 1)
    assert PMEVCNTRn_EL0.encoding_of(30) == SysReg(3, 3, 14, 11, 6)
    assert PMEVTYPERn_EL0.encoding_of(30) == SysReg(3, 3, 14, 15, 6)
    assert PMEVTYPERn_EL0.name_of(3) == "PMEVTYPER3_EL0"
    assert PMCR_EL0.encoding_of() == SysReg(3, 3, 9, 12, 0)
    assert PMCR_EL0.encoding_of().encoding == 0xDCE0  # 11 011 1001 1100 000
    assert IA32_PERFEVTSELx.encoding_of(3) == Msr(0x189)
    assert IA32_PMCx.name_of(2) == "IA32_PMC2"


def test_a_number_outside_the_bank_has_no_encoding() -> None:
    with pytest.raises(ValueError, match="PMEVCNTR31_EL0 has no encoding: there are 31"):
        PMEVCNTRn_EL0.encoding_of(31)


def test_reserved_bits_fault_where_declared() -> None:
    with pytest.raises(ValueError, match="IA32_PERFEVTSELx: bits 0x100000000 of 0x1000000c0 are reserved"):
        IA32_PERFEVTSELx.write(0, 0x1_0000_00C0)


def test_kinds_can_be_unreadable() -> None:
    assert IA32_PERF_GLOBAL_STATUS_RESET.readable == 0
    assert IA32_PERF_GLOBAL_STATUS_RESET.write(0b11, 0b01) == 0b10


def test_declarations_can_be_banks() -> None:
    class Numbered(Register):
        """Two registers of one bit."""

        bank = Bank(2, "NUMBER{}", lambda n: Msr(n))
        BIT = RW(0)

    assert Numbered.name_of(1) == "NUMBER1"
    assert Numbered(1).BIT == 1
