"""Every MSR of AMD's core counters: its number, reset value, access kind and reserved bits, from both rings.

The table is written from the manual (AMD64 APM volume 2, "Performance Monitoring Counters" and "MSR Cross-Reference"),
and its numbers are those of Linux's arch/x86/include/asm/msr-index.h and perf_event.h; none of it comes from our
declarations, whose registers must be the table's, no fewer and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from emulator.sysregs import Msr
from pmu.live.access import AccessError
from pmu.live.live_pmu import LivePmu, open_pmu

N, WIDTH = 6, 48  # core counters, and their bits
LEGACY = 4  # counters with the K7's numbers
COUNT = (1 << WIDTH) - 1
# ARCH_PERFMON_EVENTSEL_* but PIN_CONTROL (19) and ANY (21), which AMD reserves; AMD64_EVENTSEL_EVENT's upper four bits,
# GUESTONLY and HOSTONLY
SELECT = (0xFFFF_FFFF & ~(1 << 19 | 1 << 21)) | 0xF << 32 | 0b11 << 40
ALL = (1 << N) - 1
FROZEN = 1 << 59


@dataclass(frozen=True)
class Row:
    """`kind`: "rw", "ro" (WRMSR is #GP) or "command" (reads as 0). `bits`: those that are kept."""

    number: int
    name: str
    kind: str
    bits: int = 0
    reset: int = 0
    faults: bool = False  # else they are ignored


ROWS = [
    *(Row(0xC001_0200 + 2 * n, f"PERF_CTL{n}", "rw", SELECT) for n in range(N)),
    *(Row(0xC001_0201 + 2 * n, f"PERF_CTR{n}", "rw", COUNT) for n in range(N)),
    *(Row(0xC001_0000 + n, f"PerfEvtSel{n}", "rw", SELECT) for n in range(LEGACY)),
    *(Row(0xC001_0004 + n, f"PerfCtr{n}", "rw", COUNT) for n in range(LEGACY)),
    Row(0xC000_0300, "PerfCntrGlobalStatus", "ro"),
    Row(0xC000_0301, "PerfCntrGlobalCtl", "rw", ALL, reset=ALL),
    Row(0xC000_0302, "PerfCntrGlobalStatusClr", "command"),
    Row(0xC000_0303, "PerfCntrGlobalStatusSet", "command"),
    Row(0x1D9, "DebugCtl", "rw", 1 << 12, faults=True),
    Row(0x834, "LVT_PMC", "rw", 0xFF | 0b111 << 8 | 1 << 16),
]
IDS = [row.name for row in ROWS]


@pytest.fixture(params=["zen4", "zen5"])
def pmu(request: pytest.FixtureRequest) -> LivePmu:
    return open_pmu(request.param)


def test_the_registers_are_those_of_the_manual(pmu: LivePmu) -> None:
    declared = {
        (register.name_of(n), register.encoding_of(n))
        for register in pmu.device.registers()
        for n in range(pmu.device.registers_of(register))
    }
    assert declared == {(row.name, Msr(row.number)) for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_what_each_reads_at_reset(pmu: LivePmu, row: Row) -> None:
    assert pmu.read(row.name) == row.reset


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_each_bit_is_kept_ignored_or_faults(pmu: LivePmu, row: Row) -> None:
    for bit in range(64):
        value = 1 << bit
        if row.kind == "ro" or (row.faults and not row.bits & value):
            with pytest.raises(AccessError, match=r"#GP\(0\)"):
                pmu.write(row.name, value)
        else:
            pmu.write(row.name, value)
            assert pmu.read(row.name) == value & row.bits, f"bit {bit}"


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_none_is_user_modes(pmu: LivePmu, row: Row) -> None:
    """But for what RDPMC reads, while CR4.PCE lets it."""
    user = pmu.at("ring 3")
    for access in (lambda: user.read(row.name), lambda: user.write(row.name, 0)):
        with pytest.raises(AccessError, match=r"at ring 3: #GP\(0\)"):
            access()


@pytest.mark.parametrize("ring", ["ring 0", "ring 3"])
@pytest.mark.parametrize("pce", [0, 1])
def test_rdpmc(pmu: LivePmu, ring: str, pce: int) -> None:
    pmu.CR4.PCE = pce
    for n in range(N):
        pmu.write(f"PERF_CTR{n}", n + 1)
    allowed = range(N) if pce or ring == "ring 0" else range(0)
    for ecx in (*range(N + 2), 1 << 30, 0xFFFF_FFFF):
        if ecx in allowed:
            assert pmu.at(ring).rdpmc(ecx) == ecx + 1
        else:
            with pytest.raises(AccessError, match=r"#GP\(0\)"):
                pmu.at(ring).rdpmc(ecx)


def test_the_two_numbers_of_a_counter_are_one(pmu: LivePmu) -> None:
    for n in range(LEGACY):
        pmu.write(f"PerfEvtSel{n}", 0xC0 | n << 8)
        pmu.write(f"PerfCtr{n}", 100 + n)
        assert (pmu.read(f"PERF_CTL{n}"), pmu.read(f"PERF_CTR{n}")) == (0xC0 | n << 8, 100 + n)


@pytest.mark.parametrize("bit", [*range(N), 59])
def test_the_status_is_what_the_commands_make_of_it(pmu: LivePmu, bit: int) -> None:
    every = ALL | FROZEN
    pmu.PerfCntrGlobalStatusSet = (1 << 64) - 1
    assert pmu.PerfCntrGlobalStatus == every
    pmu.PerfCntrGlobalStatusClr = 1 << bit
    assert pmu.PerfCntrGlobalStatus == every & ~(1 << bit)
    pmu.PerfCntrGlobalStatusSet = 1 << bit
    assert pmu.PerfCntrGlobalStatus == every
