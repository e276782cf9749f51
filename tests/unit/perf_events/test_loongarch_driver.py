"""LoongArch's driver, whatever executes. Expectations: arch/loongarch/kernel/perf_event.c."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import perfemu
from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from guests import guest
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, SampleType
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import PmuDriver
from perfcore.events.settings import Settings
from perfcore.events.subsystem import PerfEvents
from perfcore.events.sysfs import sysfs_files
from perfemu.pmu_kinds import PMU_KINDS
from perfemu.session import Session
from pmu.loongarch.registers import ECFG, PERFCNTRn, PERFCTRLn
from pmu.model import PmuModel, model

ISAS = ("aarch64", "x86_64")
INSTRUCTIONS = PerfEventAttr(type=PerfType.HARDWARE, config=1, exclude_kernel=1, exclude_hv=1)


class Driven:
    """The driver on the CPU of a session of `sort`, with the real part's four monitors."""

    def __init__(self, isa: str, output: int) -> None:
        self.session = Session(perfemu.Guest([guest("sort", isa).path], core="ideal", stdout=output))
        self.model: PmuModel = model("loongarch")
        attached = PMU_KINDS["loongarch"].attach(
            self.session.machine.cpus, self.model, self.model.counters, self.session.machine.clock
        )
        (self.pmu,) = attached.pmus
        self.driver: PmuDriver[PerfEvent] = attached.driver
        self.events = PerfEvents(self.session.machine.kernel, [self.driver], Settings.measuring())

    def open(self, attr: PerfEventAttr, leader: PerfEvent | None = None) -> PerfEvent:
        return self.events.open(attr, self.session.program_task, -1, leader)


@pytest.fixture(params=ISAS)
def driven(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driven]:
    with (tmp_path / "out").open("wb") as output:
        yield Driven(request.param, output.fileno())


@pytest.mark.parametrize("isa", ISAS)
def test_a_program_is_counted_as_by_its_cores_own_pmu(isa: str) -> None:
    events = ["cycles", "instructions", "branches", "branch-misses", "L1-dcache-load-misses"]
    path = guest("sort", isa).path
    plain = perfemu.stat(perfemu.Guest([path]), events[:4], capture=True)
    result = perfemu.stat(perfemu.Guest([path], pmu="loongarch"), [*events, "cpu/event=0x9/"], capture=True)
    assert {name: result[name] for name in events[:4]} == {name: plain[name] for name in events[:4]}
    assert result["L1-dcache-load-misses"] == result["cpu/event=0x9/"] != 0


def test_the_registers_that_an_event_programs(driven: Driven) -> None:
    """PLV3 and 2 are user mode's bits, 0 the kernel's, 1 the hypervisor's; the counter is 2**63 less the period."""
    user = driven.open(INSTRUCTIONS.copy(sample_period=10_007))
    raw = driven.open(PerfEventAttr(type=PerfType.RAW, config=0xFFFF_0000_0000_0002, exclude_kernel=1))
    seen: list[tuple[int, int, int]] = []

    def look() -> None:
        seen.append((*(driven.pmu.read(PERFCTRLn, n) for n in range(2)), driven.pmu.read(PERFCNTRn, 0)))

    driven.session.machine.kernel.add_timer(100, look)
    driven.session.run()
    control = PERFCTRLn.make(EVENT=1, PLV3=1, PLV2=1, IE=1)
    ((first, second, counter), *_) = seen
    assert first == control
    assert second == PERFCTRLn.make(EVENT=2, PLV3=1, PLV2=1, PLV1=1, IE=1)
    assert (1 << 63) - 10_007 <= counter <= (1 << 63) - 10_007 + 100
    assert driven.pmu.read(ECFG) == ECFG.make(PCOV=1)
    assert driven.pmu.read(PERFCTRLn, 0) == control & 0x3FF  # afterwards it counts nowhere, and interrupts no more
    counts = guest("sort", driven.session.isa).counts
    assert (user.count(), raw.count()) == (counts["INST_RETIRED"], counts["BR_RETIRED"])


def test_all_monitors_take_any_event_and_a_fifth_finds_none(driven: Driven) -> None:
    leader = driven.open(INSTRUCTIONS)
    for _ in range(3):
        driven.open(INSTRUCTIONS, leader)
    with pytest.raises(LinuxError) as raised:
        driven.open(INSTRUCTIONS, leader)
    assert raised.value.code == EINVAL


def test_what_linux_refuses(driven: Driven) -> None:
    branches = {"sample_type": SampleType.BRANCH_STACK, "branch_sample_type": 0b1001}  # any, of user mode
    with pytest.raises(LinuxError, match="no branch records") as raised:
        driven.open(INSTRUCTIONS.copy(sample_period=1000, **branches))
    assert raised.value.code == EOPNOTSUPP
    with pytest.raises(LinuxError, match="this core cannot know L1D_PREFETCH_ACCESS"):
        driven.open(PerfEventAttr(type=PerfType.RAW, config=0xAA, exclude_kernel=1))
    assert driven.open(PerfEventAttr(type=PerfType.RAW, config=0x3FF, exclude_kernel=1)).count() == 0  # nobody's code


def test_sysfs_has_a_type_and_no_format(driven: Driven) -> None:
    """The driver's struct pmu has no attr_groups; every device has a uevent."""
    files = {path for path, _ in sysfs_files([driven.driver]) if "/devices/cpu/" in path}
    names = {path.rpartition("/")[2] for path in files}
    assert names == {"type", "uevent"}
