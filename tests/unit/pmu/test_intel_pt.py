"""Intel PT's registers: what the manual forbids is #GP, and what is wrong in memory is an operational error."""

from __future__ import annotations

import pytest

from emulator.core_file.core_file import load_core
from emulator.cpu import Waking
from emulator.machine import Hardware, MachineConfig
from pmu.intel.pt import CAPABILITIES, POWER_EVENTS, PTWRITE, GeneralProtection, IntelPt, answer, capabilities_of
from pmu.intel.pt_registers import (
    IA32_RTIT_ADDR_A,
    IA32_RTIT_CTL,
    IA32_RTIT_OUTPUT_BASE,
    IA32_RTIT_OUTPUT_MASK_PTRS,
    IA32_RTIT_STATUS,
    TOPA_ENTRY,
)
from pmu.unit_memory import UnitMemory

PAGE = 4096
ON = IA32_RTIT_CTL.make(TRACE_EN=1, USER=1, TOPA=1, BRANCH_EN=1)
NOT_CANONICAL = 1 << 47


@pytest.fixture
def memory() -> UnitMemory:
    return UnitMemory()


@pytest.fixture
def unit(memory: UnitMemory) -> IntelPt:
    hardware = Hardware(MachineConfig("x86_64", core=load_core("ideal")))
    return IntelPt(hardware.cpus[0], hardware.clock, CAPABILITIES, memory)


def table(memory: UnitMemory, *entries: int) -> int:
    """A table of these, and of a last one that leads back to it; where it is."""
    address, words = memory.allocate((len(entries) + 1) * 8)
    for number, entry in enumerate((*entries, address | TOPA_ENTRY.END.mask)):
        words[8 * number : 8 * number + 8] = entry.to_bytes(8, "little")
    return address


def test_reset_values(unit: IntelPt) -> None:
    assert (unit.read(IA32_RTIT_CTL), unit.read(IA32_RTIT_STATUS), unit.read(IA32_RTIT_OUTPUT_BASE)) == (0, 0, 0)
    assert unit.read(IA32_RTIT_OUTPUT_MASK_PTRS) == 0x7F


@pytest.mark.parametrize(
    "control",
    [
        pytest.param(1 << 7, id="CR3 filtering, which is not there"),
        pytest.param(1 << 12, id="PTWRITE, which is not there"),
        pytest.param(1 << 5, id="addresses of PTWRITE, which is not there"),
        pytest.param(1 << 4, id="power events, which are not there"),
        pytest.param(1 << 18, id="reserved"),
        pytest.param(IA32_RTIT_CTL.make(MTC_FREQ=1), id="an MTC period that is not in CPUID"),
        pytest.param(IA32_RTIT_CTL.make(PSB_FREQ=6), id="a PSB period that is not in CPUID"),
        pytest.param(IA32_RTIT_CTL.make(CYC_THRESH=14), id="a threshold that is not in CPUID"),
        pytest.param(IA32_RTIT_CTL.make(ADDR0_CFG=3), id="a kind of range that is reserved"),
        pytest.param(IA32_RTIT_CTL.make(ADDR2_CFG=1), id="a range that is not there"),
    ],
)
def test_control_that_faults(unit: IntelPt, control: int) -> None:
    with pytest.raises(GeneralProtection):
        unit.write(IA32_RTIT_CTL, control)
    assert unit.read(IA32_RTIT_CTL) == 0


@pytest.mark.parametrize(
    ("register", "value"), [(IA32_RTIT_STATUS, 0), (IA32_RTIT_OUTPUT_BASE, 0), (IA32_RTIT_OUTPUT_MASK_PTRS, 0)]
)
def test_nothing_else_is_written_while_it_traces(
    unit: IntelPt, memory: UnitMemory, register: type[IA32_RTIT_STATUS], value: int
) -> None:
    page, _ = memory.allocate(PAGE)
    unit.write(IA32_RTIT_OUTPUT_BASE, table(memory, page))
    unit.write(IA32_RTIT_CTL, ON)
    assert IA32_RTIT_STATUS(unit.read(IA32_RTIT_STATUS)).TRIGGER_EN
    with pytest.raises(GeneralProtection, match=register.__name__):
        unit.write(register, value)
    with pytest.raises(GeneralProtection, match="TRACE_EN stays 1"):
        unit.write(IA32_RTIT_CTL, ON | IA32_RTIT_CTL.TSC_EN.mask)
    unit.write(IA32_RTIT_CTL, 0)
    unit.write(register, value)


@pytest.mark.parametrize(("index", "address"), [(0, NOT_CANONICAL), (2, 0)])
def test_addresses_that_fault(unit: IntelPt, index: int, address: int) -> None:
    """One that is not canonical; a register that is not there, since there are two."""
    with pytest.raises(GeneralProtection):
        unit.write(IA32_RTIT_ADDR_A, address, index)


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param((), id="no region"),
        pytest.param((1 << 11,), id="reserved bits"),
        pytest.param((0x5000,), id="no memory there"),
    ],
)
def test_a_malformed_table_is_an_operational_error(unit: IntelPt, memory: UnitMemory, entries: tuple[int, ...]) -> None:
    unit.write(IA32_RTIT_OUTPUT_BASE, table(memory, *entries))
    unit.write(IA32_RTIT_CTL, ON)
    status = IA32_RTIT_STATUS(unit.read(IA32_RTIT_STATUS))
    assert (status.ERROR, status.TRIGGER_EN) == (1, 0)
    unit.write(IA32_RTIT_CTL, 0)
    assert IA32_RTIT_STATUS(unit.read(IA32_RTIT_STATUS)).ERROR == 1


def test_what_cannot_be_written_to_is_found_at_the_beginning(unit: IntelPt, memory: UnitMemory) -> None:
    """A mask of a single range that is no power of two less one; an offset behind its region."""
    page, _ = memory.allocate(PAGE)
    unit.write(IA32_RTIT_OUTPUT_BASE, page)
    unit.write(IA32_RTIT_OUTPUT_MASK_PTRS, 0x5 << 7)
    unit.write(IA32_RTIT_CTL, ON & ~IA32_RTIT_CTL.TOPA.mask)
    assert IA32_RTIT_STATUS(unit.read(IA32_RTIT_STATUS)).ERROR
    unit.write(IA32_RTIT_CTL, 0)
    unit.write(IA32_RTIT_STATUS, 0)
    unit.write(IA32_RTIT_OUTPUT_BASE, table(memory, page))
    unit.write(IA32_RTIT_OUTPUT_MASK_PTRS, PAGE << 32)
    unit.write(IA32_RTIT_CTL, ON)
    assert IA32_RTIT_STATUS(unit.read(IA32_RTIT_STATUS)).ERROR


def test_a_psb_comes_first_in_a_single_range(unit: IntelPt, memory: UnitMemory) -> None:
    """PSB (16 bytes), CBR (4), PSBEND (2): nothing has executed yet."""
    page, bytes_there = memory.allocate(PAGE)
    unit.write(IA32_RTIT_OUTPUT_BASE, page)
    unit.write(IA32_RTIT_OUTPUT_MASK_PTRS, PAGE - 1)
    unit.write(IA32_RTIT_CTL, ON & ~IA32_RTIT_CTL.TOPA.mask)
    unit.write(IA32_RTIT_CTL, 0)
    assert IA32_RTIT_OUTPUT_MASK_PTRS(unit.read(IA32_RTIT_OUTPUT_MASK_PTRS)).OUTPUT_OFFSET == 16 + 4 + 2
    assert bytes(bytes_there[:16]) == b"\x02\x82" * 8
    assert bytes(bytes_there[20:22]) == b"\x02\x23"


def test_a_region_that_is_full_stops_it(unit: IntelPt, memory: UnitMemory) -> None:
    """22 bytes of a PSB, where there is room for 20: of the interrupt and the stop its registers tell."""
    page, _ = memory.allocate(PAGE)
    unit.write(IA32_RTIT_OUTPUT_BASE, table(memory, page | TOPA_ENTRY.STOP.mask | TOPA_ENTRY.INT.mask))
    unit.write(IA32_RTIT_OUTPUT_MASK_PTRS, PAGE - 20 << 32)
    unit.write(IA32_RTIT_CTL, ON)
    assert unit.interrupt_asserted()
    status = IA32_RTIT_STATUS(unit.read(IA32_RTIT_STATUS))
    assert (status.STOPPED, status.TRIGGER_EN) == (1, 0)
    assert IA32_RTIT_OUTPUT_MASK_PTRS(unit.read(IA32_RTIT_OUTPUT_MASK_PTRS)).OUTPUT_OFFSET == PAGE
    unit.write(IA32_RTIT_CTL, 0)
    assert IA32_RTIT_STATUS(unit.read(IA32_RTIT_STATUS)).STOPPED == 1


def test_ptwrite_is_where_the_core_has_it(memory: UnitMemory) -> None:
    """CPUID leaf 14H, EBX bit 4; IA32_RTIT_CTL.PTWEn and FUPonPTW, which others refuse."""
    hardware = Hardware(MachineConfig("x86_64", core=load_core("redwood-cove")))
    capabilities = capabilities_of(PTWRITE)
    unit = IntelPt(hardware.cpus[0], hardware.clock, capabilities, memory)
    unit.write(IA32_RTIT_CTL, IA32_RTIT_CTL.make(PTW_EN=1, FUP_ON_PTW=1))
    assert unit.read(IA32_RTIT_CTL) == 1 << 12 | 1 << 5
    with pytest.raises(GeneralProtection):
        unit.write(IA32_RTIT_CTL, IA32_RTIT_CTL.make(PWR_EVT_EN=1))
    assert [each.leaf(0)[1] >> 4 & 1 for each in (CAPABILITIES, capabilities, capabilities_of(""))] == [0, 1, 0]
    assert [load_core(core).unit_versions["pt"] for core in ("redwood-cove", "skylake", "zen5")] == [
        f"{PTWRITE} {POWER_EVENTS}",
        "",
        "",
    ]


def test_power_events_are_where_the_core_has_them(memory: UnitMemory) -> None:
    """CPUID leaf 14H, EBX bit 5. PSB, TSC, CBR, PSBEND; PWRE, CYC of no cycles, EXSTOP; and behind a sleep whose cycles
    are not counted CYC of none, TSC, CBR and PWRX, which says that another CPU has ended it."""
    hardware = Hardware(MachineConfig("x86_64", core=load_core("redwood-cove")))
    capabilities = capabilities_of(POWER_EVENTS)
    assert capabilities.leaf(0)[1] >> 5 & 1
    cpu = hardware.cpus[0]
    unit = IntelPt(cpu, hardware.clock, capabilities, memory)
    page, written = memory.allocate(PAGE)
    unit.write(IA32_RTIT_OUTPUT_BASE, page)
    unit.write(IA32_RTIT_OUTPUT_MASK_PTRS, PAGE - 1)
    unit.write(IA32_RTIT_CTL, IA32_RTIT_CTL.make(TRACE_EN=1, USER=1, TSC_EN=1, CYC_EN=1, PWR_EVT_EN=1))
    cpu.sleep()
    cpu.idle(1_000_000)
    cpu.wake(Waking.STORE)
    unit.write(IA32_RTIT_CTL, 0)
    start = 16 + 8 + 4 + 2
    time = int.from_bytes(written[17:24], "little") + 1_000_000
    woken = b"\x19" + time.to_bytes(7, "little")
    assert bytes(written[start : start + 28]) == b"".join(
        (bytes.fromhex("02220000 03 0262 03"), woken, bytes.fromhex("02032700 02a20004000000"), bytes(1))
    )


def test_cpuid_says_what_the_registers_take() -> None:
    nothing = (0, 0, 0, 0)
    assert answer(CAPABILITIES, 4_000_000_000, 0, 0, (0x10, 1, 2, 3)) == (0x15, 1, 2, 3)
    assert answer(CAPABILITIES, 4_000_000_000, 7, 0, nothing)[1] == 1 << 25
    assert answer(CAPABILITIES, 4_000_000_000, 0x14, 1, nothing)[:2] == (2 | 0x249 << 16, 0x3FFF | 0x3F << 16)
    assert answer(CAPABILITIES, 4_000_000_000, 0x15, 0, nothing) == (3, 500, 24_000_000, 0)  # 4 GHz / 24 MHz


def test_a_saved_one_whose_table_was_spoiled_meanwhile_is_in_error(unit: IntelPt, memory: UnitMemory) -> None:
    """The guest's software may write there at any time; what is found at the beginning is read again."""
    page, _ = memory.allocate(PAGE)
    address = table(memory, page)
    unit.write(IA32_RTIT_OUTPUT_BASE, address)
    unit.write(IA32_RTIT_CTL, ON)
    unit.pause()
    words = memory.find(address, 8)
    assert words is not None
    words[:8] = bytes(8)
    unit.resume()
    status = IA32_RTIT_STATUS(unit.read(IA32_RTIT_STATUS))
    assert (status.ERROR, status.TRIGGER_EN) == (1, 0)
    assert unit.read(IA32_RTIT_OUTPUT_BASE) == address
    unit.write(IA32_RTIT_CTL, 0)
