"""LoongArch's performance monitors as software sees them. Expectations: LoongArch Reference Manual volume 1, "Control
and Status Registers Related to Performance Monitoring"; Linux's headers and event maps (vendor/loongarch-*.txt)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.cpu import ExitReason, Level
from emulator.probes import Probe
from emulator.sysregs import ConfigurationWord, Csr, UndefinedRegister
from pmu.generic_events import CacheId, CacheOp, CacheResult, HardwareId
from pmu.loongarch.performance_monitors import InstructionPrivilegeError, PerformanceMonitors, PrivilegeLevel
from pmu.loongarch.registers import CPUCFG6, ECFG, ESTAT, MISC, PERFCNTRn, PERFCTRLn
from pmu.model import model
from pmu.register import OnWrite, Register
from unit.pmu.conftest import NewBank, new_core
from unit.pmu.fake_bank import FakeBank

VENDOR = Path(__file__).parent / "vendor"
MODEL = model("loongarch")
MONITORS = 4
INSTRUCTIONS = 0x001
PLV0, PLV3, IE = (PERFCTRLn.make(**{name: 1}) for name in ("PLV0", "PLV3", "IE"))
OVERFLOW = 1 << 63

Fire = Callable[..., None]
Device = tuple[PerformanceMonitors, Fire]


@pytest.fixture
def device(new_bank: NewBank) -> Device:
    bank, fire = new_bank(MODEL.bank_size(MONITORS))
    return PerformanceMonitors(bank, MODEL), fire


def facts(name: str) -> list[list[str]]:
    lines = (VENDOR / name).read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


REGISTERS = {register.__name__: register for register in PerformanceMonitors(FakeBank(4), MODEL).registers()}


def test_linux_has_the_same_registers() -> None:
    assert [name for name, *_ in facts("loongarch-registers.txt")] == list(REGISTERS)


@pytest.mark.parametrize("fact", facts("loongarch-registers.txt"), ids=lambda fact: fact[0])
def test_linux_has_the_same_fields(fact: list[str]) -> None:
    name, space, number, *fields = fact
    register = REGISTERS[name]
    kind = {"csr": Csr, "word": ConfigurationWord}[space]
    for n in range(MONITORS) if register.bank else [0]:
        assert register.encoding_of(n) == kind(eval(number, {"n": n}))
    for field in fields:
        named, _, bits = field.partition("=")
        high, _, low = bits.partition(":")
        assert (register.fields[named].hi, register.fields[named].lo) == (int(high), int(low or high))


def test_linux_has_the_same_events() -> None:
    known = facts("loongarch-events.txt")
    assert len(MODEL.generic_events) + len(MODEL.generic_cache_events) + len(MODEL.not_modelled) == len(known)
    for code, *names in known:
        if len(names) == 1:
            event = MODEL.generic_event(HardwareId[names[0]])
        else:
            event = MODEL.generic_cache_event((CacheId[names[0]], CacheOp[names[1]], CacheResult[names[2]]))
        if event is None:
            assert MODEL.cannot_know(int(code, 16)) is not None
        else:
            assert event.code == int(code, 16)


def test_cpucfg_tells_of_the_monitors() -> None:
    word = CPUCFG6(PerformanceMonitors(FakeBank(MONITORS), MODEL).read(CPUCFG6))
    assert (word.PMP, word.PAMVER, word.PMNUM + 1, word.PMBITS + 1, word.UPM) == (1, 1, 4, 64, 1)
    most = PerformanceMonitors(FakeBank(32), MODEL, 32)
    assert CPUCFG6(most.read(CPUCFG6)).PMNUM == 15  # all that the field can say


@pytest.mark.parametrize("register", [PERFCTRLn, PERFCNTRn, MISC, ECFG, ESTAT], ids=lambda register: register.__name__)
def test_each_field_is_of_its_kind(register: type[Register]) -> None:
    pmu = PerformanceMonitors(FakeBank(MONITORS), MODEL)
    assert pmu.read(register) == 0  # at reset
    if pmu.can_write(register):
        pmu.write(register, (1 << 64) - 1)
    stored = sum(field.mask for field in register.fields.values() if field.on_write is OnWrite.STORE)
    assert pmu.read(register) & ~register.declared == 0  # reserved bits read as zero
    assert pmu.read(register) & stored == stored
    assert not pmu.can_write(ESTAT)


@pytest.mark.parametrize(
    ("control", "level", "counted"),
    [
        (INSTRUCTIONS | PLV3, Level.USER, 5),
        (INSTRUCTIONS | PLV3, Level.KERNEL, 0),
        (INSTRUCTIONS | PLV0, Level.KERNEL, 5),
        (INSTRUCTIONS | PLV0, Level.USER, 0),
        (INSTRUCTIONS | PERFCTRLn.make(PLV1=1, PLV2=1), Level.USER, 0),  # where nothing executes
        (INSTRUCTIONS, Level.USER, 0),  # nowhere
        (0x000 | PLV3, Level.USER, 5),  # cycles
        (0x3FF | PLV3, Level.USER, 0),  # an event that nobody knows
    ],
)
def test_a_monitor_counts_its_event_at_its_levels(device: Device, control: int, level: Level, counted: int) -> None:
    pmu, fire = device
    pmu.write(PERFCTRLn, control, 3)
    fire(Probe.INST_RETIRED, 5, level)
    assert [pmu.read(PERFCNTRn, n) for n in range(MONITORS)] == [0, 0, 0, counted]


def test_a_counter_is_kept_while_its_monitor_changes(device: Device) -> None:
    pmu, fire = device
    pmu.write(PERFCTRLn, INSTRUCTIONS | PLV3)
    fire(Probe.INST_RETIRED, 3)
    pmu.write(PERFCTRLn, INSTRUCTIONS)
    fire(Probe.INST_RETIRED, 100)
    assert pmu.read(PERFCNTRn) == 3
    event = pmu.event_of(0)
    assert event is not None
    assert event.name == "INSTRUCTIONS_RETIRED"


def test_the_interrupt_is_the_counters_top_bit(device: Device) -> None:
    """A level: with IE while bit 63 is set, whoever set it; ESTAT shows it, ECFG lets it through."""
    pmu, fire = device
    pmu.write(PERFCTRLn, INSTRUCTIONS | PLV3 | IE)
    pmu.write(PERFCNTRn, OVERFLOW - 3)
    fire(Probe.INST_RETIRED, 2)
    assert pmu.read(ESTAT) == 0
    fire(Probe.INST_RETIRED)
    assert pmu.read(PERFCNTRn) == OVERFLOW
    assert ESTAT(pmu.read(ESTAT)).PCOV == 1
    assert not pmu.interrupt_asserted()  # ECFG.PCOV is 0
    pmu.write(ECFG, ECFG.make(PCOV=1))
    assert pmu.interrupt_asserted()
    pmu.take_interrupt()
    assert pmu.interrupt_asserted()  # until software clears the bit
    pmu.write(PERFCTRLn, INSTRUCTIONS | PLV3)
    assert (pmu.interrupt_asserted(), pmu.read(ESTAT)) == (False, 0)  # without IE
    pmu.write(PERFCTRLn, INSTRUCTIONS | PLV3 | IE)
    assert pmu.interrupt_asserted()
    pmu.write(PERFCNTRn, 7)
    assert not pmu.interrupt_asserted()


def test_a_counter_that_is_written_with_the_bit_interrupts_at_once(device: Device) -> None:
    pmu, _ = device
    pmu.write(ECFG, ECFG.make(PCOV=1))
    pmu.write(PERFCTRLn, INSTRUCTIONS | IE, 2)
    pmu.write(PERFCNTRn, OVERFLOW | 5, 2)
    assert pmu.interrupt_asserted()


def test_a_counter_wraps_at_64_bits_and_ends_the_interrupt(device: Device) -> None:
    pmu, fire = device
    pmu.write(ECFG, ECFG.make(PCOV=1))
    pmu.write(PERFCTRLn, INSTRUCTIONS | PLV3 | IE)
    pmu.write(PERFCNTRn, (1 << 64) - 2)
    assert pmu.interrupt_asserted()
    fire(Probe.INST_RETIRED, 3)
    assert (pmu.read(PERFCNTRn), pmu.interrupt_asserted()) == (1, False)


@pytest.mark.parametrize("period", [1, 997, 10_007])
def test_the_core_stops_at_the_instruction_that_sets_the_bit(period: int) -> None:
    core = new_core("aarch64")
    pmu = PerformanceMonitors(core.add_bank(MONITORS), MODEL)
    pmu.write(ECFG, ECFG.make(PCOV=1))
    pmu.write(PERFCTRLn, INSTRUCTIONS | PLV3 | IE, 3)
    pmu.write(PERFCNTRn, OVERFLOW - period, 3)
    overflows = []
    while core.run(50_000) == ExitReason.OVERFLOW:
        assert pmu.interrupt_asserted()
        overflows.append(core.cycles)
        pmu.write(PERFCNTRn, OVERFLOW - period, 3)
    assert overflows == list(range(period, 50_001, period))


def test_a_write_that_sets_the_bit_stops_the_core() -> None:
    core = new_core("aarch64")
    pmu = PerformanceMonitors(core.add_bank(MONITORS), MODEL)
    pmu.write(PERFCTRLn, INSTRUCTIONS | PLV3 | IE)
    pmu.write(PERFCNTRn, OVERFLOW)
    assert core.run(100) == ExitReason.OVERFLOW
    pmu.write(PERFCNTRn, 0)
    assert core.run(core.cycles + 100) == ExitReason.DEADLINE


LEVELS = list(PrivilegeLevel)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("allowed", LEVELS[1:])
def test_who_may_read_a_counter(level: PrivilegeLevel, allowed: PrivilegeLevel) -> None:
    """MISC.RPCNTL<n> lets level n read the counters; all else is level 0's, but for CPUCFG."""
    pmu = PerformanceMonitors(FakeBank(MONITORS), MODEL)
    pmu.write(PERFCNTRn, 42)
    pmu.write_at(PrivilegeLevel.PLV0, MISC, MISC.make(**{f"RPCNTL{allowed:d}": 1}))
    assert pmu.read_at(level, CPUCFG6) == pmu.read(CPUCFG6)
    if level in (PrivilegeLevel.PLV0, allowed):
        assert pmu.read_at(level, PERFCNTRn) == 42
    else:
        with pytest.raises(InstructionPrivilegeError, match=f"read of PERFCNTR0 at PLV{level:d}: IPE"):
            pmu.read_at(level, PERFCNTRn)
    if level is PrivilegeLevel.PLV0:
        return
    for register in (PERFCTRLn, MISC, ECFG, ESTAT):
        with pytest.raises(InstructionPrivilegeError):
            pmu.read_at(level, register)
    for register in (PERFCTRLn, PERFCNTRn, MISC, ECFG, ESTAT):
        with pytest.raises(InstructionPrivilegeError):
            pmu.write_at(level, register, 0)


def test_registers_that_there_are_not() -> None:
    pmu = PerformanceMonitors(FakeBank(MONITORS), MODEL)
    for access in (lambda: pmu.read_at(PrivilegeLevel.PLV0, PERFCNTRn, 4),
                   lambda: pmu.write_at(PrivilegeLevel.PLV0, PERFCTRLn, 0, 4),
                   lambda: pmu.write_at(PrivilegeLevel.PLV0, CPUCFG6, 0)):  # fmt: skip
        with pytest.raises(UndefinedRegister):
            access()
    with pytest.raises(ValueError, match="PERFCTRL4: this PMU has 4 monitors"):
        pmu.read(PERFCTRLn, 4)
    pmu.write_at(PrivilegeLevel.PLV0, ESTAT, ESTAT.make(PCOV=1))
    assert pmu.read_at(PrivilegeLevel.PLV0, ESTAT) == 0  # ignores writes


@pytest.mark.parametrize("monitors", [0, 33])
def test_impossible_numbers_of_monitors_are_refused(monitors: int) -> None:
    with pytest.raises(ValueError, match=f"loongarch: {monitors} performance monitors; there can be 1 to 32"):
        PerformanceMonitors(FakeBank(33), MODEL, monitors)
