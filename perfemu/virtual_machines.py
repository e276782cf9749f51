"""VirtualMachines: bare-metal images as guests of one CPU, which share its PMU with a host that counts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from emulator.board.board import Board, Boot, Ended, Outside
from emulator.board.hypervisor import GuestImage, Hypervisor
from emulator.board.image import NotBootable
from emulator.board.observers import Observers
from emulator.cpu import Cpu
from emulator.linux.arch import architecture
from emulator.linux.errors import LinuxError
from emulator.linux.process.task import Task
from emulator.machine import Hardware, Machine
from perfcore.events.event import PerfEvent
from perfcore.events.settings import Settings
from perfcore.events.subsystem import PerfEvents
from perfemu.board_events import BoardKernel
from perfemu.board_kinds import BOARDS
from perfemu.cores import core_for, pmu_of
from perfemu.errors import PerfemuError, UsageError
from perfemu.events.attributes import stat_attr
from perfemu.events.parser import parse_events
from perfemu.guest import Guest
from perfemu.guest_pmus import SHARED_KINDS
from perfemu.pmu_kinds import PMU_KINDS
from pmu.sharing import SharedPmu

MOST_CONSOLE_BYTES = 16 << 20  # of each guest
MOST_MESSAGES = 100
FIRST_PID = 1  # of the guests' virtual CPUs, as the host's threads


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

    def __init__(self, cpu: Cpu, kernel: HostKernel, shared: SharedPmu, names: Sequence[str]) -> None:
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
        board: str = "virt",
        core: str = "ideal",
        pmu: str | None = None,
        guest_counters: int = 2,
        slice_us: float = 100,
        memory: str = "64M",
        command_line: str = "",
        initrd: str | Path | None = None,
        most_instructions: int | None = None,
        timeout: float | str | None = None,
    ) -> None:
        """`images`: as `--board` boots them, each with the `command_line` and the `initrd`. They share `memory` evenly,
        and one CPU in slices of simulated time.

        `guest_counters`: event counters that each guest's PMU has, besides the cycle counter or the fixed counters; the
        rest is the host's. `most_instructions` of all guests together, and `timeout`, of simulated time in seconds or
        "100ms", end the run. Raises ValueError for what can never be right, UsageError and PerfemuError.
        """
        if board not in BOARDS:
            raise UsageError(f"board {board!r}: there are {' and '.join(BOARDS)}")
        self._board = BOARDS[board]
        isa = self._board.isa
        machine = Guest(("",), pmu=pmu, memory=memory, max_instructions=most_instructions, timeout=timeout)
        core_file = core_for(core, isa, machine.changes(isa))
        model = replace(pmu_of(core_file, isa, on_a_board=True), executes_kernel=True)
        kind = SHARED_KINDS.get(model.driver)
        if kind is None:
            raise UsageError(f"{model.name}: PMUs that guests share are those of {', '.join(SHARED_KINDS)}")
        self._kind = kind
        self._command_line = command_line
        self._initrd = None if initrd is None else Path(initrd)
        self._hardware = hardware = Hardware(machine.machine(isa, core_file))
        self._model = model
        self._observers = observers = Observers(1)
        cpu = hardware.cpus[0]
        try:
            shared = kind.share(cpu, model, guest_counters)
        except ValueError as problem:
            raise UsageError(str(problem)) from None
        kernel = HostKernel(hardware.clock, hardware.cpus, architecture(isa), observers, Threads(), lambda: False)
        self.events = PerfEvents(kernel, [kind.host(cpu, shared)], Settings.measuring())
        self._host = CountingHost(cpu, kernel, shared, [Path(image).name for image in images])
        self._consoles = [bytearray() for _ in images]
        self.messages: list[str] = []  # of what is not modelled, each once
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
            initrd = b"" if self._initrd is None else self._initrd.read_bytes()
            boot = Boot(self._board.read_image(path.read_bytes()), initrd, self._command_line, path.name)
        except OSError as problem:
            raise PerfemuError(f"{problem.filename}: {problem.strerror}") from None
        outside = Outside(
            partial(self._say, number),
            lambda text: self._tell(f"{path.name}: {text}"),
            test_device=True,
            semihosting="semihosting" not in self._board.without,
        )
        pmu = self._kind.registers(self._host.pmus[number], lambda: self._hypervisor.trap_pmu_access())
        return GuestImage(boot, outside, partial(self._built, pmu))

    def _say(self, number: int, data: bytes) -> None:
        console = self._consoles[number]
        if len(console) + len(data) > MOST_CONSOLE_BYTES:
            self._tell(f"guest {number} has said more than {MOST_CONSOLE_BYTES} bytes: what follows is lost")
            return
        console += data

    def _tell(self, text: str) -> None:
        if text not in self.messages and len(self.messages) < MOST_MESSAGES:
            self.messages.append(text)

    def _built(self, pmu: Any, hardware: Hardware, boot: Boot, outside: Outside) -> Board[Any]:
        return self._board.board(hardware, boot, outside, [pmu])

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
        try:
            Machine(self._hardware, self._hypervisor).run_to_the_end()
        except RuntimeError as problem:  # of the core: what it does not model of a guest's own tables
            raise PerfemuError(str(problem)) from None
        assert self._hypervisor.ended is not None, "it has come to its end"
        return self._hypervisor.ended

    @property
    def guests(self) -> Sequence[VirtualMachine]:
        return [*self._seen()]

    def _seen(self) -> Iterator[VirtualMachine]:
        for guest, vcpu, console in zip(self._hypervisor.guests, self._host.vcpus, self._consoles, strict=True):
            exits = {str(why.value): times for why, times in guest.exits.items()}
            yield VirtualMachine(vcpu.comm, bytes(console), exits, guest.board.exit_status)
