"""A machine whose PEBS is programmed by registers, without a driver, and what it has written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from emulator._native import Core, RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import guest
from perfcore.events.drivers.pebs_records import PebsRecord, adaptive_records, fixed_records
from perfemu.cores import pmu_of
from pmu.intel.debug_store import PEBS, PEBS_AT, RESET_BYTES, RESETS_AT, debug_stores
from pmu.intel.pebs import Pebs
from pmu.intel.pebs_registers import IA32_PEBS_ENABLE, MSR_PEBS_DATA_CFG, MSR_PEBS_LD_LAT_THRESHOLD
from pmu.intel.perfmon import Perfmon
from pmu.intel.registers import (
    IA32_PERF_GLOBAL_CTRL,
    IA32_X2APIC_LVT_PMI,
    IA32_A_PMCx,
    IA32_PERFEVTSELx,
)

WIDTH = 1 << 48
Truth = list[tuple]  # rows of RetirementRecorder.take_selected


class PebsMachine:
    """Counter 0 of a CPU counts an event in user mode and writes records of it."""

    def __init__(self, core: str = "skylake", buffer_bytes: int = 1 << 22) -> None:
        core_file = load_core(core)
        self.machine = LinuxMachine(MachineConfig("x86_64", core=core_file))
        self.cpu = self.machine.cpus[0]
        self.core: Core = self.cpu.core
        self.core.follow_branches()
        model = replace(pmu_of(core_file, "x86_64"), units=frozenset())
        self.pmu = Perfmon(self.core.add_bank(model.bank_size(model.counters)), model)
        (self.store,) = debug_stores(1, model.counters)
        self.pmu.add_pebs(Pebs(self.cpu, self.machine.clock, self.store, model.version))
        self.area = self.store.area(RESETS_AT + 12 * RESET_BYTES)
        self.base, self.buffer = self.store.memory.allocate(buffer_bytes)
        self.interrupts: list[int] = []  # where the index was
        self.cpu.connect_interrupt(self.pmu, self._interrupt)
        self.place(buffer_bytes, buffer_bytes)

    def place(self, maximum: int, threshold: int) -> None:
        """So far behind the buffer's base."""
        base = self.base
        PEBS.pack_into(self.area, PEBS_AT, base, base, base + maximum, base + threshold)

    def count(self, code: int, period: int, *, reset: bool = True, counter: int = 0, adaptive: int = 0) -> None:
        pmu = self.pmu
        at = RESETS_AT + RESET_BYTES * counter
        self.area[at : at + RESET_BYTES] = (WIDTH - period if reset else 0).to_bytes(RESET_BYTES, "little")
        pmu.write(IA32_A_PMCx, WIDTH - period, counter)
        pmu.write(IA32_PERFEVTSELx, code | IA32_PERFEVTSELx.make(USR=1, EN=1, ADAPTIVE=adaptive), counter)
        pmu.write(IA32_PERF_GLOBAL_CTRL, pmu.read(IA32_PERF_GLOBAL_CTRL) | 1 << counter)

    def enable(self, value: int = 1, *, config: int = 0, latency: int = 0) -> None:
        if config:
            self.pmu.write(MSR_PEBS_DATA_CFG, config)
        if latency:
            self.pmu.write(MSR_PEBS_LD_LAT_THRESHOLD, latency)
        self.pmu.write(IA32_PEBS_ENABLE, value)

    def run(
        self, program: str = "embedded_mix", *arguments: str, probes: Sequence[Probe] = (), period: int = 0
    ) -> Truth:
        """What the core says of each instruction that makes the last of so many events of `probes`."""
        recorder = RetirementRecorder(keep=True)
        if period:
            self.core.select(recorder, sum(1 << probe for probe in probes), period)
        path = str(guest(program, "x86_64").path)
        self.machine.start(Program(path, (path, *arguments), stdout=-1))
        self.machine.run()
        return recorder.take_selected()

    def _interrupt(self) -> None:
        self.interrupts.append(self.index)
        self.pmu.write(IA32_X2APIC_LVT_PMI, IA32_X2APIC_LVT_PMI.make(DELIVERY_MODE=4))
        self.acknowledge()

    def acknowledge(self) -> None:
        """As software does, which may take what is there."""
        self.pmu.pebs.buffer_overflowed = False

    @property
    def index(self) -> int:
        return PEBS.unpack_from(self.area, PEBS_AT)[1] - self.base

    @property
    def records(self) -> list[PebsRecord]:
        data = bytes(self.buffer[: self.index])
        return list(adaptive_records(data) if self.pmu.pebs.adaptive else fixed_records(data))
