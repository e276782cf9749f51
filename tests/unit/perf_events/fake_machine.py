"""A machine without a core: instructions are a number. PMUs, drivers, tracepoints, timers and clock are the real ones.

Every instruction is 4 bytes long and takes 1 ns; the PC after n instructions is CODE + 4 n.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from emulator.clock import Clock
from emulator.cpu import Level
from emulator.linux.cgroup.cgroups import Cgroup
from emulator.linux.process.credentials import Credentials
from emulator.linux.sched.timers import Timers
from emulator.linux.tracepoints import Tracepoints
from emulator.probes import Probe
from perfcore.events.drivers.arm_pmuv3 import ArmPmuV3
from perfcore.events.drivers.clock import software_clocks
from perfcore.events.drivers.intel_core import IntelCore
from perfcore.events.drivers.software import SoftwareDriver
from perfcore.events.settings import Settings
from perfcore.events.subsystem import PerfEvents
from pmu.arm.pmuv3 import PmuV3
from pmu.intel.perfmon import Perfmon
from pmu.model import model

CODE = 0x400000
RETIREMENT = 1 << Probe.INST_RETIRED | 1 << Probe.CYCLES
PMUS = {"aarch64": ("armv8_pmuv3", PmuV3, ArmPmuV3), "x86_64": ("intel_arch_perfmon", Perfmon, IntelCore)}


class FakeBank:
    """emulator._native.CounterBank for a core that only retires, in user mode."""

    def __init__(self, size):
        self.size = size
        self.masks = [0] * size
        self.values = [0] * size
        self.widths = [64] * size
        self.levels = [1 << Level.USER | 1 << Level.KERNEL] * size
        self.wrapped = 0
        self.armed = 0

    def connect(self, counter, probes):
        self.masks[counter] = probes

    def connected(self, counter):
        return self.masks[counter]

    def filter(self, counter, levels):
        self.levels[counter] = levels

    def counts(self, counter, probes):
        return self.levels[counter] >> Level.USER & 1 and self.masks[counter] & probes

    def set_width(self, counter, bits, overflow_bits=0):  # drivers have them overflow where they end
        self.widths[counter] = bits
        self.values[counter] &= (1 << bits) - 1

    def chain(self, counter, on):
        assert not on, "no driver chains counters"

    def arm(self, counters):
        self.armed = counters

    def read(self, counter):
        return self.values[counter]

    def write(self, counter, value):
        self.values[counter] = value & (1 << self.widths[counter]) - 1

    def read_each(self, counters):
        return [self.read(counter) for counter in counters]

    def write_each(self, counters, values):
        for counter, value in zip(counters, values, strict=True):
            self.write(counter, value)

    def add(self, counter, amount):
        value = self.values[counter] + amount
        if value >> self.widths[counter]:
            self.wrapped |= 1 << counter
        self.write(counter, value)

    def overflowed(self):
        return self.wrapped

    def set_overflowed(self, counters):
        self.wrapped |= counters

    def clear_overflowed(self, counters):
        self.wrapped &= ~counters

    # what the core does

    def instructions_to_overflow(self):
        """How many instructions may retire until an armed counter wraps; None: any number."""
        left = [
            -(-((1 << self.widths[n]) - self.values[n]) // (self.masks[n] & RETIREMENT).bit_count())
            for n in range(self.size)
            if self.armed >> n & 1 and self.counts(n, RETIREMENT)
        ]
        return min(left, default=None)

    def retire(self, instructions):
        for n, mask in enumerate(self.masks):
            if self.counts(n, RETIREMENT):
                self.add(n, instructions * (mask & RETIREMENT).bit_count())

    def fire(self, probe, amount=1):
        for n in range(self.size):
            if self.counts(n, 1 << probe):
                self.add(n, amount)


class FakeCore:
    def __init__(self):
        self.cycles = 0
        self.idle_cycles = 0
        self.frames = []

    @property
    def pc(self):
        return CODE + 4 * (self.cycles - self.idle_cycles)

    @property
    def last_retired_pc(self):
        return self.pc - 4

    def frame_chain(self, limit):
        return self.frames[:limit]

    def registers(self):
        return [0x1000 + n for n in range(37)]

    def read_register(self, number):
        return 0x1000 + number


class FakeCpu:
    def __init__(self, number=0):
        self.number = number
        self.core = FakeCore()
        self.handlers = []
        self.in_kernel = False

    def connect_interrupt(self, source, handler):
        self.handlers.append((source, handler))

    def deliver_interrupts(self):
        for source, handler in self.handlers:
            if source.interrupt_asserted():
                handler()


class FakeArchitecture:
    perf_registers = tuple(range(33))
    perf_vectors = 0
    perf_constants = {}
    counter_bits = 0
    hz = 1_000_000_000
    sp = 31

    def counter_hz(self, clock):
        return self.hz


ROOT = Cgroup("", None, 1)


@dataclass(eq=False)
class FakeTask:
    tid: int
    cpu: FakeCpu
    pid: int = 0
    ppid: int = 1
    comm: str = "fake"
    exit_code: int | None = None
    mm: object = None
    cgroup: Cgroup = ROOT
    credentials: Credentials = field(default_factory=Credentials)
    signals: list = field(default_factory=list)

    def __post_init__(self):
        self.pid = self.pid or self.tid


class FakeMachine:
    """One CPU, one task (1000) that runs, and one perf subsystem on a PMU with `counters` event counters."""

    def __init__(self, isa="aarch64", counters=None, settings=None, pmu=None):
        """`pmu`: another model than the instruction set's own, or its name."""
        self.isa = isa
        self.cpu = FakeCpu()
        self.cpus = [self.cpu]
        self.clock = Clock(lambda: self.cpu.core.cycles, 1_000_000_000)
        self.timers = Timers(self.clock, lambda: self.cpu.core.cycles)
        self.tracepoints = Tracepoints()
        self.architecture = FakeArchitecture()
        self.task = FakeTask(1000, self.cpu)
        self._current = self.task
        name, kind, driver = PMUS[isa]
        pmu_model = model(pmu or name) if pmu is None or isinstance(pmu, str) else pmu
        count = pmu_model.counters if counters is None else counters
        self.bank = FakeBank(pmu_model.bank_size(count))
        self.pmu = kind(self.bank, pmu_model, count)
        self.drivers = [driver(self.cpus, [self.pmu]), SoftwareDriver(self), *software_clocks(self)]
        self.perf = PerfEvents(self, self.drivers, settings or Settings())

    @property
    def executing_cpu(self):
        return self.cpu

    executes = False

    def current(self, cpu):
        return self._current

    def cgroup(self, cpu):
        return ROOT if self._current is None else self._current.cgroup

    def thread(self, cpu):
        return (0, 0) if self._current is None else (self._current.pid, self._current.tid)

    def add_timer(self, cycle, callback, cpu=None):
        return self.timers.at_cycle(cycle, callback)

    def open(self, attr, group=None, task="current", cpu=-1, owner=None, flags=0):
        return self.perf.open(attr, self.task if task == "current" else task, cpu, group, flags, owner)

    def run(self, instructions):
        """Retire so many instructions; interrupts and timers come exactly where they fall."""
        core = self.cpu.core
        end = core.cycles + instructions
        while core.cycles < end:
            self.timers.fire_due()
            step = min(end, self.timers.next_cycle()) - core.cycles
            overflow = self.bank.instructions_to_overflow()
            if overflow is not None:
                step = min(step, overflow)
            core.cycles += step
            self.bank.retire(step)
            if self.bank.overflowed() & self.bank.armed:
                self.cpu.deliver_interrupts()
        self.timers.fire_due()

    def idle(self, cycles):
        """Time passes, and nothing is executed."""
        self.cpu.core.cycles += cycles
        self.cpu.core.idle_cycles += cycles

    def switch_to(self, task):
        """Another task runs, or (None) nobody."""
        if self._current is not None:
            self.tracepoints.sched_switch.fire(self.cpu, self._current, task, False)
            self.tracepoints.sched_out.fire(self._current, self.cpu, task)
        self._current = task
        if task is not None:
            self.tracepoints.sched_in.fire(task, self.cpu)
