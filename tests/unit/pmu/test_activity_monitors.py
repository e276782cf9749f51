"""Every register and field of the Activity Monitors: against what Linux knows, and by access at each exception level.

The expectations are the manual's "Accessing" sections, as the tables here have them, not the declarations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.board.kept import restore, state_of
from emulator.cpu import Level
from emulator.probes import Probe
from emulator.sysregs import SysReg, SystemRegisters, TrappedRegister, UndefinedRegister
from pmu.arm.activity_monitors import ActivityMonitors
from pmu.arm.amu_registers import (
    AMCG1IDR_EL0,
    AMCNTENCLR0_EL0,
    AMCNTENCLR1_EL0,
    AMCNTENSET0_EL0,
    AMCNTENSET1_EL0,
    AMCR_EL0,
    AMUSERENR_EL0,
    CPTR_EL2,
    CPTR_EL3,
    HCR_EL2,
    SCR_EL3,
    AMEVCNTR0n_EL0,
    AMEVCNTR1n_EL0,
    AMEVCNTVOFF0n_EL2,
    AMEVCNTVOFF1n_EL2,
    AMEVTYPER0n_EL0,
    AMEVTYPER1n_EL0,
    AmuRegister,
    Version,
)
from pmu.arm.event_rows import ROWS
from pmu.arm.privileged import EL0, EL1, EL2, EL3, ExceptionLevel, Trap
from pmu.arm.privileged_monitors import PrivilegedActivityMonitors
from pmu.event import EventList
from pmu.register import OnWrite
from unit.pmu.fake_bank import FakeBank

ALL_ONES = (1 << 64) - 1
AUXILIARY = [ROWS["BR_MIS_PRED_RETIRED"], ROWS["L1D_CACHE_REFILL"]]


class Monitors(PrivilegedActivityMonitors):
    """With a system counter that the test moves."""

    def __init__(self, version: Version = Version.V1P1, auxiliary: int = 2) -> None:
        self.fake = FakeBank(4 + auxiliary)
        self.ticks = 1000
        events = EventList(ROWS.values())
        super().__init__(self.fake, version, events, AUXILIARY[:auxiliary], lambda: self.ticks)


def registers_of(monitors: Monitors) -> dict[str, type[AmuRegister]]:
    return {found.__name__: found for found in monitors.registers() if issubclass(found, AmuRegister)}


REGISTERS = registers_of(Monitors())
OF_EL2 = {"CPTR_EL2", "HCR_EL2", "AMEVCNTVOFF0n_EL2", "AMEVCNTVOFF1n_EL2"}
OF_EL3 = {"CPTR_EL3", "SCR_EL3"}


def facts() -> Iterator[tuple[str, list[str]]]:
    for line in (Path(__file__).parent / "vendor" / "amu-registers.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, *parts = line.split()
            yield name, parts


@pytest.mark.parametrize(("name", "parts"), list(facts()))
def test_linux_has_the_same_registers(name: str, parts: list[str]) -> None:
    register = REGISTERS[name]
    for n in range(register.bank.count) if register.bank else [0]:
        expected = SysReg(*(eval(part.replace("/", "//"), {"n": n}) for part in parts))
        assert register.encoding_of(n) == expected


def test_linux_knows_all_but_these() -> None:
    controls = {"CPTR_EL2", "CPTR_EL3", "HCR_EL2", "SCR_EL3"}
    assert REGISTERS.keys() - {name for name, _ in facts()} == {"AMCG1IDR_EL0", *controls}
    assert AMCG1IDR_EL0.encoding == SysReg(3, 3, 13, 2, 6)
    assert (CPTR_EL2.TAM.lo, CPTR_EL3.TAM.lo) == (30, 30)  # Linux: CPTR_EL2_TAM
    assert (HCR_EL2.AMVOFFEN.lo, SCR_EL3.AMVOFFEN.lo) == (51, 35)  # Linux: HCR_AMVOFFEN


def test_versions_have_their_registers() -> None:
    """Without auxiliary counters their enables are undefined; only v1p1 tells of them, and has offsets."""
    later = {"AMCG1IDR_EL0", "HCR_EL2", "SCR_EL3", "AMEVCNTVOFF0n_EL2", "AMEVCNTVOFF1n_EL2"}
    auxiliary = {"AMCNTENSET1_EL0", "AMCNTENCLR1_EL0", "AMEVCNTR1n_EL0", "AMEVTYPER1n_EL0", "AMEVCNTVOFF1n_EL2"}
    assert registers_of(Monitors(Version.V1)).keys() == REGISTERS.keys() - later
    assert registers_of(Monitors(auxiliary=0)).keys() == REGISTERS.keys() - auxiliary


# Six counters of 64 bits in two groups; HDBG
AT_RESET = {
    "AMCFGR_EL0": 5 | 63 << 8 | 1 << 24 | 1 << 28,
    "AMCGCR_EL0": 4 | 2 << 8,
    "AMCG1IDR_EL0": 0b11 | 0b11 << 16,
    "AMEVTYPER0n_EL0": 0x11,
    "AMEVTYPER1n_EL0": 0x22,
}
HIDDEN = {"AMCNTENSET1_EL0": 0b11, "AMCNTENCLR1_EL0": 0b11}  # bits that are there, of two auxiliary counters


@pytest.mark.parametrize("name", REGISTERS)
def test_reset_values(name: str) -> None:
    assert Monitors().read_at(EL3, REGISTERS[name]) == AT_RESET.get(name, 0)


def test_identification() -> None:
    monitors = Monitors(Version.V1, auxiliary=0)
    assert monitors.read_at(EL3, REGISTERS["AMCFGR_EL0"]) == 3 | 63 << 8 | 1 << 24
    assert monitors.read_at(EL3, REGISTERS["AMCGCR_EL0"]) == 4
    assert [monitors.read_at(EL1, AMEVTYPER0n_EL0, n) for n in range(4)] == [0x11, 0x4004, 0x08, 0x4005]
    assert [Monitors().read_at(EL1, AMEVTYPER1n_EL0, n) for n in range(2)] == [0x22, 0x03]
    for version, value in ((Version.V1, 1), (Version.V1P1, 2)):
        assert Monitors(version).identification == {SysReg(3, 0, 0, 4, 0): value << 44}  # ID_AA64PFR0_EL1.AMU


FIELDS = [
    pytest.param(register, field, id=f"{name}.{field}")
    for name, register in REGISTERS.items()
    for field in register.fields
]


@pytest.mark.parametrize(("register", "name"), FIELDS)
def test_each_field_is_of_its_kind(register: type[AmuRegister], name: str) -> None:
    """Written with ones and zeros at EL3, between neighbours that are written with the other."""
    monitors = Monitors()
    field = register.fields[name]
    if field.on_write is OnWrite.IGNORE:
        with pytest.raises(UndefinedRegister):
            monitors.write_at(EL3, register, 0)
        return
    there = field.mask & HIDDEN.get(register.__name__, ALL_ONES)
    for value, others in ((ALL_ONES, 0), (0, 0), (ALL_ONES, 0), (0, ALL_ONES)):
        before = monitors.read_at(EL3, register) & field.mask
        monitors.write_at(EL3, register, value & field.mask | others & ~field.mask)
        expected = {
            OnWrite.STORE: value & there,
            OnWrite.SET: (before | value) & there,
            OnWrite.CLEAR: before & ~value,
        }[field.on_write]
        assert monitors.read_at(EL3, register) & field.mask == expected


def test_only_v1p1_has_cg1rz() -> None:
    monitors = Monitors(Version.V1)
    monitors.write_at(EL3, AMCR_EL0, ALL_ONES)
    assert monitors.read_at(EL3, AMCR_EL0) == 1 << 10


UNDEFINED, FINE = "undefined", "fine"
R, W = "R", "W"
# AMUSERENR_EL0.EN, and CPTR_EL2.TAM, CPTR_EL3.TAM, SCR_EL3.AMVOFFEN
CONTROLS = [(en, el2, el3, off) for en in (0, 1) for el2 in (0, 1) for el3 in (0, 1) for off in (0, 1)]
WRITTEN_BY_EL3 = {
    "AMCR_EL0", "AMCNTENSET0_EL0", "AMCNTENCLR0_EL0", "AMCNTENSET1_EL0", "AMCNTENCLR1_EL0", "AMEVCNTR0n_EL0",
    "AMEVCNTR1n_EL0",
}  # fmt: skip


def expected_of(name: str, access: str, level: ExceptionLevel, control: tuple[int, int, int, int]) -> object:
    """UNDEFINED, FINE, or the level that the access traps to."""
    enabled, hypervisor, monitor, offsets = control
    if name in OF_EL2 or name in OF_EL3:
        if level < (EL2 if name in OF_EL2 else EL3):
            return UNDEFINED
        if not name.startswith("AMEV") or level == EL3:
            return FINE
        return EL3 if not offsets or monitor else FINE
    if access == W and name != "AMUSERENR_EL0":
        return FINE if name in WRITTEN_BY_EL3 and level == EL3 else UNDEFINED
    if level == EL0 and access == W:
        return UNDEFINED
    if level == EL0 and not enabled and name != "AMUSERENR_EL0":
        return EL1
    if level < EL2 and hypervisor:
        return EL2
    return EL3 if level < EL3 and monitor else FINE


def outcome(monitors: Monitors, register: type[AmuRegister], access: str, level: ExceptionLevel) -> object:
    try:
        if access == R:
            monitors.read_at(level, register)
        else:
            monitors.write_at(level, register, 0)
    except Trap as trap:
        return trap.level
    except UndefinedRegister:
        return UNDEFINED
    return FINE


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("name", REGISTERS)
def test_who_may_access_it(name: str, control: tuple[int, int, int, int]) -> None:
    for level in ExceptionLevel:
        for access in (R, W):
            monitors = Monitors()
            monitors.write(AMUSERENR_EL0, control[0])
            monitors.write(CPTR_EL2, control[1] << 30)
            monitors.write(CPTR_EL3, control[2] << 30)
            monitors.write(SCR_EL3, control[3] << 35)
            assert outcome(monitors, REGISTERS[name], access, level) == expected_of(name, access, level, control)


@pytest.mark.parametrize("register", [AMEVCNTR0n_EL0, AMEVTYPER0n_EL0, AMEVCNTR1n_EL0, AMEVTYPER1n_EL0])
def test_counters_that_are_not_there_are_undefined(register: type[AmuRegister]) -> None:
    monitors = Monitors(auxiliary=2)
    count = 4 if register in (AMEVCNTR0n_EL0, AMEVTYPER0n_EL0) else 2
    monitors.read_at(EL3, register, count - 1)
    with pytest.raises(UndefinedRegister):
        monitors.read_at(EL3, register, count)
    with pytest.raises(ValueError, match=f"there are {count} of them"):
        monitors.read(register, count)


def test_the_constant_counter_has_no_offset() -> None:
    monitors = Monitors()
    for n in range(5):
        if n in (0, 2, 3):
            monitors.write_at(EL3, AMEVCNTVOFF0n_EL2, n, n)
            assert monitors.read_at(EL3, AMEVCNTVOFF0n_EL2, n) == n
        else:
            for level in (EL2, EL3):
                with pytest.raises(UndefinedRegister):
                    monitors.read_at(level, AMEVCNTVOFF0n_EL2, n)


def test_each_counter_counts_its_event() -> None:
    monitors = Monitors()
    bank = monitors.fake
    bank.fire(Probe.INST_RETIRED, 5)  # nothing counts yet
    monitors.write(AMCNTENSET0_EL0, 0b1111)
    monitors.write(AMCNTENSET1_EL0, 0b11)
    bank.fire(Probe.INST_RETIRED, 70)  # a cycle each, on this bank
    bank.fire(Probe.INST_RETIRED, 7, Level.KERNEL)
    bank.fire(Probe.STALL_BACKEND_MEMORY, 30)
    bank.fire(Probe.L1D_REFILL_LOAD, 3)
    monitors.ticks += 40
    assert [monitors.read(AMEVCNTR0n_EL0, n) for n in range(4)] == [77, 40, 77, 30]
    assert [monitors.read(AMEVCNTR1n_EL0, n) for n in range(2)] == [0, 3]
    monitors.write(AMCNTENCLR0_EL0, 0b0110)
    monitors.write(AMCNTENCLR1_EL0, 0b10)
    bank.fire(Probe.INST_RETIRED, 100)
    bank.fire(Probe.L1D_REFILL_LOAD, 3)
    monitors.ticks += 50
    assert [monitors.read(AMEVCNTR0n_EL0, n) for n in range(4)] == [177, 40, 77, 30]
    monitors.write(AMCNTENSET0_EL0, 0b0010)
    monitors.write(AMCNTENSET0_EL0, 0b0010)  # counts already
    monitors.ticks += 2
    assert monitors.read(AMEVCNTR0n_EL0, 1) == 42
    assert monitors.read(AMEVCNTR1n_EL0, 1) == 3


def test_counters_are_written_and_wrap() -> None:
    monitors = Monitors()
    for register, index in ((AMEVCNTR0n_EL0, 1), (AMEVCNTR0n_EL0, 2), (AMEVCNTR1n_EL0, 1)):
        monitors.write_at(EL3, register, ALL_ONES - 1, index)
    monitors.write(AMCNTENSET0_EL0, 0b0110)
    monitors.write(AMCNTENSET1_EL0, 0b10)
    monitors.ticks += 4
    monitors.fake.fire(Probe.INST_RETIRED, 5)
    monitors.fake.fire(Probe.L1D_REFILL_STORE, 6)
    assert [monitors.read(AMEVCNTR0n_EL0, 1), monitors.read(AMEVCNTR0n_EL0, 2)] == [2, 3]
    assert monitors.read(AMEVCNTR1n_EL0, 1) == 4
    assert monitors.fake.stops == 0  # nobody is interrupted


def test_offsets_are_what_lower_levels_see_less() -> None:
    monitors = Monitors()
    for n, value in enumerate((1000, 2000, 3000, 4000)):
        monitors.write(AMEVCNTR0n_EL0, value, n)
    monitors.write(AMEVCNTR1n_EL0, 50, 1)
    for n in (0, 2, 3):
        monitors.write(AMEVCNTVOFF0n_EL2, 100 + n, n)
    monitors.write(AMEVCNTVOFF1n_EL2, 51, 1)
    monitors.write(AMUSERENR_EL0, 1)
    both = HCR_EL2.AMVOFFEN.mask, SCR_EL3.AMVOFFEN.mask
    for hypervisor, monitor in ((0, 0), (both[0], 0), (0, both[1]), both):
        monitors.write(HCR_EL2, hypervisor)
        monitors.write(SCR_EL3, monitor)
        offset = (hypervisor, monitor) == both
        for level in ExceptionLevel:
            seen = [monitors.read_at(level, AMEVCNTR0n_EL0, n) for n in range(4)]
            expected = [900, 2000, 2898, 3897] if offset and level < EL2 else [1000, 2000, 3000, 4000]
            assert seen == expected
            assert monitors.read_at(level, AMEVCNTR1n_EL0, 1) == (ALL_ONES if offset and level < EL2 else 50)


def test_the_auxiliary_group_reads_as_zero_if_it_is_told_so() -> None:
    monitors = Monitors()
    monitors.write(AMUSERENR_EL0, 1)
    monitors.write(AMEVCNTR0n_EL0, 7, 2)
    monitors.write(AMEVCNTR1n_EL0, 50, 1)
    monitors.write(AMCR_EL0, AMCR_EL0.CG1RZ.mask)
    assert [monitors.read_at(level, AMEVCNTR1n_EL0, 1) for level in ExceptionLevel] == [0, 0, 0, 50]
    assert [monitors.read_at(level, AMEVCNTR0n_EL0, 2) for level in ExceptionLevel] == [7] * 4


def test_a_kernel_reads_and_lets_user_mode_read() -> None:
    """As the board has it: EL1 and EL0 below firmware, which has started all counters."""
    monitors = ActivityMonitors(FakeBank(6), Version.V1P1, EventList(ROWS.values()), AUXILIARY, lambda: 12)
    level = [Level.KERNEL]
    registers = SystemRegisters()
    monitors.grant_access(registers, lambda: level[0])
    monitors.start_all()
    enables, counter, user = (
        AMCNTENSET0_EL0.encoding_of(), AMEVCNTR1n_EL0.encoding_of(1), AMUSERENR_EL0.encoding_of(),
    )  # fmt: skip
    assert len(registers.claimed()) == 9 + 2 * 4 + 2 * 2
    assert registers.read(enables) == 0xF
    assert registers.read(AMCNTENSET1_EL0.encoding_of()) == 0b11
    for register in (enables, counter, AMEVTYPER1n_EL0.encoding_of(0), AMCR_EL0.encoding_of()):
        with pytest.raises(UndefinedRegister):
            registers.writer(register)
    for enabled in (0, 1):
        level[0] = Level.KERNEL
        registers.writer(user)(enabled)
        level[0] = Level.USER
        assert registers.read(user) == enabled
        with pytest.raises(UndefinedRegister):
            registers.writer(user)
        if enabled:
            assert registers.read(counter) == 0
        else:
            with pytest.raises(TrappedRegister):
                registers.read(counter)


def test_what_they_keep_goes_on_elsewhere() -> None:
    """Besides the bank, which the core keeps; the system counter is where it was."""
    monitors = Monitors()
    monitors.write(AMUSERENR_EL0, 1)
    monitors.write(AMCNTENSET0_EL0, 0b0111)
    monitors.ticks += 30
    kept = json.loads(json.dumps(state_of(monitors)))
    other = Monitors()
    other.ticks = monitors.ticks
    restore(other, kept)
    assert [other.read(register) for register in (AMUSERENR_EL0, AMCNTENSET0_EL0)] == [1, 0b0111]
    for each in (monitors, other):
        each.ticks += 5
        assert each.read(AMEVCNTR0n_EL0, 1) == 35
        each.write(AMCNTENCLR0_EL0, 0b0010)
        each.ticks += 5
        assert each.read(AMEVCNTR0n_EL0, 1) == 35


def test_what_no_monitors_can_be_made_of() -> None:
    events = EventList(ROWS.values())
    with pytest.raises(ValueError, match="17 auxiliary activity monitors; there can be 16"):
        ActivityMonitors(FakeBank(21), Version.V1, events, [AUXILIARY[0]] * 17, lambda: 0)
    with pytest.raises(ValueError, match="5 counters in the bank, and 6 monitors"):
        ActivityMonitors(FakeBank(5), Version.V1, events, AUXILIARY, lambda: 0)
