"""Every MSR of perfmon: its number, reset value, access kind and reserved bits, for each version and model.

The table is written from the manual (Intel SDM volume 4, table "IA-32 Architectural MSRs", and volume 3 for fields),
and its numbers are those of Linux's arch/x86/include/asm/msr-index.h and perf_event.h; none of it comes from our
declarations, whose registers must be the table's, no fewer and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from emulator.core_file.core_file import load_core
from emulator.cpu import Cpu
from emulator.machine import Hardware, MachineConfig
from emulator.sysregs import Msr, SystemRegisters, UndefinedRegister
from pmu.intel.cpuid import answer, cpuid_leaf_0a, cpuid_leaf_23
from pmu.intel.perfmon import Perfmon
from pmu.model import PmuModel, model

N, WIDTH = 4, 48  # of skylake: general-purpose counters, and bits of all
COUNT = (1 << WIDTH) - 1
ANY = 1 << 21
FROZEN, METRICS = 1 << 59, 1 << 48
OTHERS = 0b111 << 61  # uncore, buffer, condition changed


@dataclass(frozen=True)
class Row:
    """`kind`: "rw", "ro" (WRMSR is #GP) or "command" (takes bits, reads as 0). `bits`: those that may be written."""

    number: int
    name: str
    kind: str
    bits: int = 0
    reset: int = 0


def fixed_control(fixed: int, any_thread: bool) -> int:
    return sum((0b1111 if any_thread else 0b1011) << 4 * n for n in range(fixed))


def rows(version: int, fixed: int, metrics: bool) -> Iterator[Row]:
    any_thread = version in (3, 4)
    select = 0xFFFF_FFFF & ~(0 if any_thread else ANY)
    counters = (1 << N) - 1 | (1 << fixed) - 1 << 32 | (METRICS if metrics else 0)
    for n in range(N):
        yield Row(0x186 + n, f"IA32_PERFEVTSEL{n}", "rw", select)
        yield Row(0xC1 + n, f"IA32_PMC{n}", "sign-extended", 0xFFFF_FFFF)
        yield Row(0x4C1 + n, f"IA32_A_PMC{n}", "rw", COUNT)
        if version >= 6:
            yield Row(0x1900 + 4 * n, f"IA32_PMC_GP{n}_CTR", "rw", COUNT)
            yield Row(0x1901 + 4 * n, f"IA32_PMC_GP{n}_CFG_A", "rw", select)
    for n in range(fixed):
        yield Row(0x309 + n, f"IA32_FIXED_CTR{n}", "rw", COUNT)
        if version >= 6:
            yield Row(0x1980 + 4 * n, f"IA32_PMC_FX{n}_CTR", "rw", COUNT)
    yield Row(0x38D, "IA32_FIXED_CTR_CTRL", "rw", fixed_control(fixed, any_thread))
    yield Row(0x38E, "IA32_PERF_GLOBAL_STATUS", "ro")
    yield Row(0x38F, "IA32_PERF_GLOBAL_CTRL", "rw", counters, reset=(1 << N) - 1)
    frozen = FROZEN if version >= 4 else 0
    yield Row(0x390, "IA32_PERF_GLOBAL_STATUS_RESET", "command", counters | frozen | OTHERS)
    if version >= 4:
        yield Row(0x391, "IA32_PERF_GLOBAL_STATUS_SET", "command", counters | frozen)
        yield Row(0x392, "IA32_PERF_GLOBAL_INUSE", "ro")
    yield Row(0x345, "IA32_PERF_CAPABILITIES", "ro", reset=1 << 12 | 1 << 13 | (1 << 15 if metrics else 0))
    yield Row(0x1D9, "IA32_DEBUGCTL", "rw", 1 << 12 | 1 << 14)  # freeze on PMI, in SMM
    if metrics:
        yield Row(0x329, "MSR_PERF_METRICS", "rw", (1 << 64) - 1)


def with_slots(version: int) -> PmuModel:
    skylake = model("skylake")
    slots = replace(skylake.fixed_counters[0], event="TOPDOWN.SLOTS", config=0x0400, programmable=False)
    names = ("RETIRING", "BAD_SPECULATION", "FRONTEND_BOUND", "BACKEND_BOUND")
    fields = (*(f"PERF_METRICS.{name}" for name in names), "", "", "", "")
    return replace(skylake, version=version, fixed_counters=(*skylake.fixed_counters, slots), metrics=fields)


KINDS = [*((version, False) for version in range(2, 7)), (5, True), (6, True)]


def claimed(version: int, metrics: bool) -> tuple[SystemRegisters, Perfmon, dict[int, str], list[Row], Cpu]:
    kind = with_slots(version) if metrics else replace(model("skylake"), version=version)
    cpu = Hardware(MachineConfig("x86_64", load_core("skylake"), 16 << 20)).cpus[0]
    pmu = Perfmon(cpu.core.add_bank(kind.bank_size(N)), kind, N)
    names = pmu.claim(cpu.system_registers)
    return cpu.system_registers, pmu, names, list(rows(version, 4 if metrics else 3, metrics)), cpu


def is_taken(registers: SystemRegisters, number: int, value: int) -> bool:
    try:
        write = registers.writer(Msr(number))
        registers.check_value(Msr(number), value)
    except UndefinedRegister:
        return False
    write(value)
    return True


@pytest.mark.parametrize(("version", "metrics"), KINDS)
def test_the_registers_are_those_of_the_manual(version: int, metrics: bool) -> None:
    _, _, names, table, _ = claimed(version, metrics)
    assert names == {row.number: row.name for row in table}


@pytest.mark.parametrize(("version", "metrics"), KINDS)
def test_what_each_reads_at_reset(version: int, metrics: bool) -> None:
    registers, _, _, table, _ = claimed(version, metrics)
    assert {row.name: registers.read(Msr(row.number)) for row in table} == {row.name: row.reset for row in table}


@pytest.mark.parametrize(("version", "metrics"), KINDS)
def test_each_bit_is_written_or_faults(version: int, metrics: bool) -> None:
    registers, _, _, table, _ = claimed(version, metrics)
    for row in table:
        for bit in range(64):
            value = 1 << bit
            taken = is_taken(registers, row.number, value)
            if row.kind == "sign-extended":  # the upper half is ignored
                assert taken
                expected = (value & 0xFFFF_FFFF) | (COUNT & ~0x7FFF_FFFF if bit == 31 else 0)
                assert registers.read(Msr(row.number)) == expected, f"{row.name} bit {bit}"
                continue
            assert taken == bool(row.kind != "ro" and row.bits & value), f"{row.name} bit {bit}"
            if taken and row.name != "MSR_PERF_METRICS":  # shares of no slots are nothing
                assert registers.read(Msr(row.number)) == (0 if row.kind == "command" else value), f"{row.name} {bit}"


@pytest.mark.parametrize(("version", "metrics"), KINDS)
def test_the_status_is_what_the_commands_make_of_it(version: int, metrics: bool) -> None:
    registers, pmu, _, table, _ = claimed(version, metrics)
    settable = next((row.bits for row in table if row.number == 0x391), 0)
    for bit in range(64):
        if settable >> bit & 1:
            registers.write(Msr(0x391), 1 << bit)
            assert registers.read(Msr(0x38E)) == 1 << bit
            registers.write(Msr(0x390), 1 << bit)
            assert registers.read(Msr(0x38E)) == 0
    assert not pmu.interrupt_asserted()


@pytest.mark.parametrize("version", range(2, 7))
def test_a_freeze_is_a_status_bit_since_version_4_and_a_cleared_control_before(version: int) -> None:
    """SDM volume 3, "Streamlined Freeze_PerfMon_On_PMI" against the legacy one."""
    registers, pmu, _, _, _ = claimed(version, False)
    registers.write(Msr(0x1D9), 1 << 12)
    pmu.take_interrupt()
    streamlined = version >= 4
    assert registers.read(Msr(0x38E)) == (FROZEN if streamlined else 0)
    assert registers.read(Msr(0x38F)) == (0b1111 if streamlined else 0)


@pytest.mark.parametrize(
    ("version", "metrics", "leaf"),
    [  # EAX: version, 4 counters, 48 bits, so many events; EBX; ECX: fixed counters; EDX: how many, 48 << 5, no ANY
        (2, False, (0x0730_0402, 0, 0, 0x603)),
        (4, False, (0x0730_0404, 0, 0, 0x603)),
        (5, False, (0x0830_0405, 0x80, 0b111, 0x8603)),  # Skylake has no event of slots
        (6, True, (0x0830_0406, 0x80, 0b1111, 0x8604)),
    ],
)
def test_cpuid_leaf_0a(version: int, metrics: bool, leaf: tuple[int, int, int, int]) -> None:
    kind = with_slots(version) if metrics else replace(model("skylake"), version=version)
    assert cpuid_leaf_0a(kind) == leaf


def test_version_6_tells_of_leaf_23() -> None:
    """The largest leaf, the largest subleaf of 7, and the bit there: before it none of them."""
    plain = {(0x0, 0): (0x16, 1, 2, 3), (0x7, 0): (0, 8, 0, 0), (0x7, 1): (0, 0, 0, 0), (0x23, 1): (0, 0, 0, 0)}
    assert {leaf: answer(with_slots(5), *leaf, said) for leaf, said in plain.items()} == plain
    assert [answer(with_slots(6), *leaf, said) for leaf, said in plain.items()] == [
        (0x23, 1, 2, 3),
        (1, 8, 0, 0),
        (1 << 8, 0, 0, 0),
        (0b1111, 0b1111, 0, 0),
    ]


def test_cpuid_leaf_23() -> None:
    assert cpuid_leaf_23(with_slots(5), 0) == (0, 0, 0, 0)
    assert [cpuid_leaf_23(with_slots(6), subleaf) for subleaf in range(5)] == [
        (0b1011, 0, 0, 0),
        (0b1111, 0b1111, 0, 0),
        (0, 0, 0, 0),
        (0x7F, 0, 0, 0),
        (0, 0, 0, 0),
    ]
