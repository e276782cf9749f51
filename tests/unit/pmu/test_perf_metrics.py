"""MSR_PERF_METRICS and fixed counter 3: SDM volume 3, "Performance Metrics"; as Linux's icl_update_topdown_event."""

from __future__ import annotations

import pytest

from emulator.cpu import Level
from emulator.probes import Probe
from emulator.sysregs import UndefinedRegister
from pmu.intel.perfmon import Perfmon
from pmu.intel.registers import (
    IA32_FIXED_CTR_CTRL,
    IA32_PERF_GLOBAL_CTRL,
    MSR_PERF_METRICS,
    RDPMC_METRICS,
    IA32_FIXED_CTRx,
)
from unit.pmu.fake_bank import FakeBank
from unit.pmu.test_perfmon_registers import with_slots

MODEL = with_slots(5)
SLOTS_ON, METRICS_ON = 1 << 35, 1 << 48


@pytest.fixture
def device() -> tuple[Perfmon, FakeBank]:
    bank = FakeBank(MODEL.bank_size(4))
    pmu = Perfmon(bank, MODEL, 4)
    pmu.user_rdpmc = True
    pmu.write(IA32_FIXED_CTR_CTRL, IA32_FIXED_CTR_CTRL.make(EN3_USR=1))
    pmu.write(IA32_PERF_GLOBAL_CTRL, SLOTS_ON | METRICS_ON)
    return pmu, bank


def fire(bank: FakeBank, retiring: int, bad: int, frontend: int, backend: int, level: Level = Level.USER) -> None:
    bank.fire(Probe.UOPS_RETIRED, retiring, level)
    bank.fire(Probe.SLOTS_BAD_SPECULATION, bad, level)
    bank.fire(Probe.SLOTS_FRONTEND, frontend, level)
    bank.fire(Probe.SLOTS_BACKEND, backend, level)


def shares(pmu: Perfmon) -> list[int]:
    value = pmu.read(MSR_PERF_METRICS)
    assert pmu.rdpmc(RDPMC_METRICS) == value
    return [value >> 8 * field & 0xFF for field in range(8)]


def test_fields_are_shares_of_255(device: tuple[Perfmon, FakeBank]) -> None:
    pmu, bank = device
    assert shares(pmu) == [0] * 8
    fire(bank, 100, 10, 40, 50)
    assert pmu.read(IA32_FIXED_CTRx, 3) == 200 == pmu.rdpmc(1 << 30 | 3)
    # 255 * 100 / 200 = 127.5; 12.75; 51; 63.75, to the nearest
    assert shares(pmu) == [128, 13, 51, 64, 0, 0, 0, 0]
    fire(bank, 1000, 1000, 1000, 1000, Level.KERNEL)  # the fixed counter counts user mode, and they with it
    assert shares(pmu) == [128, 13, 51, 64, 0, 0, 0, 0]


def test_both_zero_begin_anew(device: tuple[Perfmon, FakeBank]) -> None:
    pmu, bank = device
    fire(bank, 100, 0, 0, 0)
    pmu.write(IA32_FIXED_CTRx, 0, 3)
    pmu.write(MSR_PERF_METRICS, 0)
    fire(bank, 0, 0, 51, 204)
    assert shares(pmu)[:4] == [0, 0, 51, 204]


def test_what_software_has_read_goes_on_when_it_is_written_back(device: tuple[Perfmon, FakeBank]) -> None:
    """As Linux does for a task that comes back: slots first."""
    pmu, bank = device
    pmu.write(IA32_FIXED_CTRx, 510, 3)
    pmu.write(MSR_PERF_METRICS, 51 | 204 << 24)  # 102 and 408 slots
    assert shares(pmu)[:4] == [51, 0, 0, 204]
    fire(bank, 510, 0, 0, 0)  # 612 and 408, of 1020
    assert shares(pmu)[:4] == [153, 0, 0, 102]


@pytest.mark.parametrize("control", [SLOTS_ON, METRICS_ON, 0])
def test_they_count_where_both_are_enabled(device: tuple[Perfmon, FakeBank], control: int) -> None:
    pmu, bank = device
    pmu.write(IA32_PERF_GLOBAL_CTRL, control)
    fire(bank, 100, 0, 0, 0)
    pmu.write(IA32_PERF_GLOBAL_CTRL, 0)
    pmu.write(IA32_FIXED_CTRx, 100, 3)
    assert shares(pmu) == [0] * 8


def test_where_there_are_none_rdpmc_knows_no_such_type() -> None:
    pmu = Perfmon(FakeBank(7), with_slots(5).limited_to(lambda probe: not probe.name.startswith("SLOTS")))
    pmu.user_rdpmc = True
    with pytest.raises(UndefinedRegister, match="ECX=0x20000000"):
        pmu.rdpmc(RDPMC_METRICS)
    assert MSR_PERF_METRICS not in pmu.registers()
