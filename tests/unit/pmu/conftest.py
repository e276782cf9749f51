"""Counter banks for the PMU tests: a fake one, and the core's own where it is built."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

import emulator._native as native
import require
from emulator.cpu import ExitReason, Level
from emulator.probes import Probe
from pmu.counter_bank import CounterBank
from unit.pmu.fake_bank import RETIREMENT, FakeBank

CODE = 0x10000  # address
READ, EXECUTE = 1, 4

NewBank = Callable[[int], tuple[CounterBank, Callable[..., None]]]
"""size -> (bank, fire): a bank, and a way to fire a probe (and how often) as the core would; instructions and cycles
fire together."""


def new_fake_bank(size: int) -> tuple[CounterBank, Callable[..., None]]:
    bank = FakeBank(size)
    return bank, bank.fire


NOP_PAGES = {
    "aarch64": struct.pack("<1024I", *[0xD503201F] * 1023, 0x17FFFC01),  # 1023 NOP; b .-4092
    "x86_64": b"\x90" * 4091 + b"\xe9" + struct.pack("<i", -4096),  # 4091 NOP; jmp to the first
}
PC = {"aarch64": 32, "x86_64": 16}  # the core's register number


def new_core(isa: str) -> native.Core:
    """A core that stands on a page of NOP that ends with a branch back to its beginning."""
    memory = native.PhysicalMemory(1 << 20)
    frame = memory.allocate()
    memory.view(frame)[:] = NOP_PAGES[isa]
    space = native.AddressSpace(memory)
    space.map(CODE, frame, 1, READ | EXECUTE)
    core = native.Core(isa, memory)
    core.set_address_space(space)
    core.write_register(PC[isa], CODE)
    return core


def new_native_bank(size: int) -> tuple[CounterBank, Callable[..., None]]:
    core = new_core("aarch64")

    def fire(probe: Probe, amount: int = 1, level: Level = Level.USER) -> None:
        if level is Level.KERNEL and probe is Probe.CYCLES:
            core.work(amount)
            return
        core.set_level(level)
        if not 1 << probe & RETIREMENT:
            core.fire(probe, amount)
            core.set_level(Level.USER)
            return
        until = core.cycles + amount
        while core.cycles < until:
            assert core.run(until) in (ExitReason.DEADLINE, ExitReason.OVERFLOW)
        core.set_level(Level.USER)

    return core.add_bank(size), fire


@pytest.fixture(params=["fake", "native"])
def new_bank(request: pytest.FixtureRequest) -> NewBank:
    if request.param == "fake":
        return new_fake_bank
    require_native_core()
    return new_native_bank


def require_native_core() -> None:
    if not hasattr(native, "Core"):
        require.missing("the native core is not in this build")
