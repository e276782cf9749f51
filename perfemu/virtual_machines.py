"""VirtualMachines: bare-metal images as guests of one CPU, which share its PMU with a host that counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from emulator.board.board import Boot, Ended, Outside
from emulator.board.hypervisor import GuestImage, Hypervisor
from emulator.board.image import NotBootable, read_image
from emulator.board.observers import Observers
from emulator.board.virt_tree import RAM_BASE
from emulator.cpu import Cpu, Level
from emulator.linux.arch import architecture
from emulator.linux.errors import LinuxError
from emulator.linux.process.task import Task
from emulator.machine import Hardware, Machine, MachineConfig
from emulator.sysregs import Access, SysReg, SystemRegisters
from perfcore.events.drivers.arm_pmuv3_host import ArmPmuV3Host
from perfcore.events.event import PerfEvent
from perfcore.events.settings import Settings
from perfcore.events.subsystem import PerfEvents
from perfemu.board_events import BoardKernel
from perfemu.cores import core_for, pmu_of
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.attributes import stat_attr
from perfemu.events.parser import parse_events
from perfemu.guest import Guest
from perfemu.pmu_kinds import PMU_KINDS
from perfemu.quantities import size_bytes
from pmu.arm.privileged import EL0, EL1, PrivilegedPmuV3
from pmu.arm.registers import ArmRegister
from pmu.arm.sharing import GuestPmuV3, SharedPmuV3

ISA = "aarch64"
FIRST_PID = 1  # of the guests' virtual CPUs, as the host's threads


class GuestPmuRegisters:
    """A guest's PMU as its board has it: MRS and MSR of its registers, and its interrupt."""

    def __init__(self, pmu: GuestPmuV3) -> None:
        self.tell: Callable[[str], None] = lambda text: None
        self._pmu = pmu

    @property
    def identification(self) -> Mapping[SysReg, int]:
        return self._pmu.shared.device.identification

    def interrupt_asserted(self) -> bool:
        return self._pmu.interrupt_asserted()

    def grant_access(self, system_registers: SystemRegisters, level: Callable[[], Level]) -> None:
        """All that EL1 and EL0 may name: who may reach what is said at each access."""
        device = self._pmu.shared.device
        for register in device.registers():
            assert issubclass(register, ArmRegister)
            if register.least_level <= EL1:
                for index in range(1 if register.bank is None else device.counters):
                    system_registers.claim(register.encoding_of(index), self._access(register, index, level))

    def _access(self, register: type[ArmRegister], index: int, level: Callable[[], Level]) -> Access:
        def read() -> int:
            return self._pmu.read_at(EL1 if level() else EL0, register, index)

        def write(value: int) -> None:
            self._pmu.write_at(EL1 if level() else EL0, register, value, index)

        device = self._pmu.shared.device
        return Access(read if device.can_read(register) else None, write if device.can_write(register) else None)


@dataclass(eq=False, slots=True)
class VcpuThread:
    """The host's thread in which a guest's CPU runs, as far as perf_event knows threads."""

    tid: int
    comm: str
    cpu: Cpu
    ppid: int = 0
    exit_code: int | None = None

    @property
    def pid(self) -> int:
        return self.tid


class Threads:
    """Which of them runs."""

    def __init__(self) -> None:
        self.running: VcpuThread | None = None

    def thread(self, cpu: Cpu) -> tuple[int, int]:
        return (0, 0) if self.running is None else (self.running.pid, self.running.tid)


class HostKernel(BoardKernel):
    """The host's, for perf's half of it: its threads are the guests' CPUs."""

    threads: Threads

    def current(self, cpu: Cpu) -> Task | None:
        return cast(Task | None, self.threads.running)


class CountingHost:
    """The host's half of a world switch: perf's contexts follow the guests' threads, and the PMU its worlds."""

    def __init__(self, cpu: Cpu, kernel: HostKernel, shared: SharedPmuV3, names: Sequence[str]) -> None:
        self.pmus = [shared.guest() for _ in names]
        self.vcpus = [VcpuThread(FIRST_PID + number, name, cpu) for number, name in enumerate(names)]
        self._cpu, self._kernel, self._shared = cpu, kernel, shared

    def task(self, guest: int) -> Task:
        return cast(Task, self.vcpus[guest])

    def scheduled(self, leaving: int | None, coming: int | None) -> None:
        tracepoints = self._kernel.tracepoints
        if leaving is not None:
            tracepoints.sched_out.fire(self.task(leaving), self._cpu, None)
            self._kernel.threads.running = None
        if coming is not None:
            self._kernel.threads.running = self.vcpus[coming]
            tracepoints.sched_in.fire(self.task(coming), self._cpu)

    def enter(self, guest: int) -> None:
        self._shared.enter(self.pmus[guest])

    def exit(self) -> None:
        self._shared.exit()

    def host_interrupt(self) -> bool:
        return self._shared.host_interrupt()

    def handle_interrupt(self) -> None:
        self._cpu.deliver_interrupts()


@dataclass(frozen=True, slots=True)
class VirtualMachine:
    """One guest, after the run."""

    name: str
    console: bytes  # what its serial port has said
    exits: Mapping[str, int]  # why it was left for the host, and how often
    exit_status: int


class VirtualMachines:
    """Make them, `count` events, `run`; then read counts and what the guests have said.

    machines = VirtualMachines(["a.elf", "b.elf"], core="neoverse-n1")
    both, first = machines.count("instructions:G"), machines.count("instructions:G", guest=0)
    machines.run()
    print(both.count(), first.count(), machines.guests[0].console)
    """

    def __init__(
        self,
        images: Sequence[str | Path],
        *,
        core: str = "ideal",
        pmu: str | None = None,
        guest_counters: int = 2,
        slice_us: float = 100,
        memory: str = "64M",
        most_instructions: int | None = None,
    ) -> None:
        """`images`: as `--board virt` boots them. They share `memory` evenly, and one CPU in slices of simulated time.

        `guest_counters`: event counters that each guest's PMU has, besides the cycle counter; the rest is the host's.
        Raises UsageError and PerfemuError.
        """
        core_file = core_for(core, ISA, Guest(("",), pmu=pmu).changes(ISA))
        model = replace(pmu_of(core_file, ISA), executes_kernel=True)
        if model.driver != "arm_pmuv3":
            raise UsageError(f"{model.name}: guests share a PMUv3 here")
        config = MachineConfig(ISA, core_file, memory_bytes=size_bytes(memory), most_instructions=most_instructions)
        self._hardware = hardware = Hardware(config)
        self._model = model
        self._observers = observers = Observers(1)
        cpu = hardware.cpus[0]
        device = PrivilegedPmuV3(cpu.core.add_bank(model.bank_size(model.counters)), model)
        try:
            shared = SharedPmuV3(device, guest_counters)
        except ValueError as problem:
            raise UsageError(str(problem)) from None
        kernel = HostKernel(hardware.clock, hardware.cpus, architecture(ISA), observers, Threads(), lambda: False)
        self.events = PerfEvents(kernel, [ArmPmuV3Host(hardware.cpus, [shared])], Settings.measuring())
        self._host = CountingHost(cpu, kernel, shared, [Path(image).name for image in images])
        self._consoles = [bytearray() for _ in images]
        self.messages: list[str] = []  # of what is not modelled
        try:
            self._hypervisor = Hypervisor(
                hardware,
                [self._image(number, Path(image)) for number, image in enumerate(images)],
                self._host,
                observers,
                round(slice_us * core_file.frequency_hz / 1_000_000),
            )
        except (NotBootable, ValueError) as problem:
            raise PerfemuError(str(problem)) from None

    def _image(self, number: int, path: Path) -> GuestImage:
        try:
            boot = Boot(read_image(path.read_bytes(), RAM_BASE), name=path.name)
        except OSError as problem:
            raise PerfemuError(f"{path}: {problem.strerror}") from None
        outside = Outside(
            self._consoles[number].extend,
            lambda text: self.messages.append(f"{path.name}: {text}"),
            test_device=True,
            semihosting=True,
        )
        return GuestImage(boot, outside, GuestPmuRegisters(self._host.pmus[number]))

    def count(self, event: str, guest: int | None = None) -> PerfEvent:
        """Open `event` of one guest (its CPU is a thread of the host's), or of all that the CPU does. Before the run.

        `:G` counts in guests alone, `:H` in the host alone, `:GH` in both; without any, in the host, as with perf.
        """
        return self.open(event, guest, 0)

    def open(self, event: str, guest: int | None, period: int) -> PerfEvent:
        """The same, for who wants to hear of each overflow (`PerfEvent.on_signal`) with a period that is not 0."""
        (spec,) = parse_events([event], self._model, PMU_KINDS[self._model.driver].type)
        attr = stat_attr(spec, inherit=False).copy(disabled=0, enable_on_exec=0, sample_period=period)
        task, cpu = (None, 0) if guest is None else (self._host.task(guest), -1)
        try:
            return self.events.open(attr, task, cpu)
        except LinuxError as problem:
            raise PerfemuError(f"{event}: {problem.why}") from None

    @property
    def pc(self) -> int:
        """Of the guest that has the CPU."""
        return self._hardware.cpus[0].core.pc

    def run(self) -> Ended:
        """Until all guests have ended, or nothing is left that would wake one."""
        Machine(self._hardware, self._hypervisor).run_to_the_end()
        assert self._hypervisor.ended is not None, "it has come to its end"
        return self._hypervisor.ended

    @property
    def guests(self) -> Sequence[VirtualMachine]:
        return [*self._seen()]

    def _seen(self) -> Iterator[VirtualMachine]:
        for guest, vcpu, console in zip(self._hypervisor.guests, self._host.vcpus, self._consoles, strict=True):
            exits = {str(why.value): times for why, times in guest.exits.items()}
            yield VirtualMachine(vcpu.comm, bytes(console), exits, guest.board.exit_status)
