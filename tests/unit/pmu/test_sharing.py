"""A host and its guests on one PMU: against PMUs that each of them has alone.

The reference is one PMU for the host and one for each guest, each on a bank of its own, in which happens what happens
while that one runs. Of the host's counters those that count in guests, too, get what happens there, those that count
in guests alone nothing else. Each has to read on the shared PMU what it reads on its own, and to be interrupted when it
is.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from emulator.cpu import Level
from emulator.probes import Probe
from pmu.amd.registers import PerfCntrGlobalCtl
from pmu.arm.privileged import PrivilegedPmuV3
from pmu.arm.registers import PMSWINC_EL0, ArmRegister
from pmu.arm.version import SNAPSHOTS
from pmu.intel.registers import IA32_PERF_GLOBAL_CTRL
from pmu.loongarch.registers import PERFCTRLn
from pmu.model import model
from pmu.register import Register
from pmu.sharing import GuestPmu
from unit.pmu.conftest import new_native_bank, require_native_core
from unit.pmu.fake_bank import RETIREMENT, FakeBank
from unit.pmu.sharing_programs import BY_MODEL, At1, Registers

COUNTERS, GUEST_COUNTERS, GUESTS = 6, 2, 2
STEPS = 400
FIRED = (Probe.INST_RETIRED, Probe.INST_RETIRED, Probe.L1D_REFILL_LOAD)


GLOBAL_CONTROLS = (IA32_PERF_GLOBAL_CTRL, PerfCntrGlobalCtl)


class Shared:
    """The shared PMU, the reference, and who runs."""

    def __init__(self, name: str, bank: Any, fire: Callable[..., None], random: Random) -> None:
        self.vendor = BY_MODEL[name]
        self.model = model(name)
        self.random = random
        self.fire = fire
        self.device: Any = self.vendor.device(bank, self.model, COUNTERS)
        self.host = self.at_kernel(self.device)
        self.shared: Any = self.vendor.shared(self.device, GUEST_COUNTERS)
        self.guests: list[GuestPmu] = [self.shared.guest() for _ in range(GUESTS)]
        self.host_bank, self.host_alone = self.alone(COUNTERS)
        self.alone_of = {id(guest): self.alone(GUEST_COUNTERS) for guest in self.guests}
        self.in_guests = self.deferred = 0  # masks of the host's counters

    def at_kernel(self, device: Any) -> Registers:
        return At1(device) if isinstance(device, PrivilegedPmuV3) else device

    def alone(self, counters: int) -> tuple[FakeBank, Any]:
        bank = FakeBank(self.model.bank_size(counters))
        return bank, self.vendor.device(bank, self.model, counters)

    # what they do

    def let_the_host_say_where(self) -> None:
        """Two neighbours each, so that both of a pair that is chained are in the same place."""
        for first in range(GUEST_COUNTERS, COUNTERS, 2):
            counters = 0b11 << first
            for pmu in (self.host, self.at_kernel(self.host_alone)):
                self.vendor.enable(pmu, counters)
            where = self.random.choice([{}, {"exclude_host": True}, {"exclude_guest": True}])
            self.shared.set_pmu_events(counters, **where)
            self.in_guests |= 0 if "exclude_guest" in where else counters
            self.deferred |= counters if "exclude_host" in where else 0

    def write(self) -> None:
        """Who runs writes a register, here and alone."""
        guest = self.shared.running
        if guest is None:
            alone = self.at_kernel(self.host_alone)
            register, value, index = self.vendor.write(self.random, COUNTERS, alone, True)
            if register is PMSWINC_EL0:  # which counts nothing on what waits for a guest
                value &= ~self.deferred
            here = value
            if register in self.vendor.enables:
                if register is PERFCTRLn and self.deferred >> index & 1:
                    return
                here &= ~self.deferred if register is not PERFCTRLn else -1
                value = here if register not in GLOBAL_CONTROLS else value | self.deferred
            self.host.write(register, here, index)
            alone.write(register, value, index)
        else:
            alone = self.at_kernel(self.alone_of[id(guest)][1])
            register, value, index = self.vendor.write(self.random, GUEST_COUNTERS, alone, False)
            guest.write(register, value, index)
            alone.write(register, value, index)

    def happen(self) -> None:
        metrics = [self.model.events.find(name).probes[0] for name in self.model.metrics if name]
        probe = self.random.choice((*FIRED, *metrics))
        amount = self.random.randrange(1, 150)
        level = self.random.choice([Level.USER, Level.KERNEL])
        probes = RETIREMENT if 1 << probe & RETIREMENT else 1 << probe
        self.fire(probe, amount, level)
        guest = self.shared.running
        counted = (1 << 64) - 1 & ~self.deferred if guest is None else self.in_guests
        passes = self.host_bank.counts_at(level)
        self.host_bank.happen(probes, amount, lambda counter: bool(counted >> counter & 1) and passes(counter))
        if guest is not None:
            bank, _ = self.alone_of[id(guest)]
            bank.happen(probes, amount, bank.counts_at(level))
        self.device.interrupt_asserted()

    def switch(self) -> None:
        if self.shared.running is None:
            self.shared.enter(self.random.choice(self.guests))
        else:
            self.shared.exit()

    # what must be

    def check(self) -> None:
        assert self.shared.host_interrupt() == self.host_alone.interrupt_asserted()
        for guest in self.guests:
            assert guest.interrupt_asserted() == self.alone_of[id(guest)][1].interrupt_asserted()
        guest = self.shared.running
        if guest is None:
            self.compare(self.host, self.host_alone, self.vendor.enables)
        else:
            self.compare(guest, self.alone_of[id(guest)][1], self.vendor.unlike)

    def compare(self, here: Registers, device: Any, but: tuple[type[Register], ...]) -> None:
        alone = self.at_kernel(device)
        for register in device.registers():
            if register in but or not device.can_read(register) or _is_hidden(register):
                continue
            for index in range(device.registers_of(register)):
                assert here.read(register, index) == alone.read(register, index), register.name_of(index)


def _is_hidden(register: type[Register]) -> bool:
    """Whether EL1 has no such register, or a guest none."""
    return issubclass(register, ArmRegister) and (register.least_level > 1 or register.option == SNAPSHOTS)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", BY_MODEL)
def test_each_counts_as_if_it_were_alone(name: str, seed: int) -> None:
    random = Random(f"{name} {seed}")
    bank = FakeBank(model(name).bank_size(COUNTERS))
    run(Shared(name, bank, bank.fire, random), STEPS)


@pytest.mark.parametrize("name", BY_MODEL)
def test_each_counts_as_if_it_were_alone_on_a_core(name: str) -> None:
    require_native_core()
    bank, fire = new_native_bank(model(name).bank_size(COUNTERS))
    run(Shared(name, bank, fire, Random(name)), STEPS)


def run(it: Shared, steps: int) -> None:
    for _ in range(20):
        it.write()
    it.let_the_host_say_where()
    for _ in range(steps):
        it.random.choices((it.write, it.happen, it.switch), (5, 3, 1))[0]()
        it.check()
