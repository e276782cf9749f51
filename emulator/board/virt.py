"""Virt: a board with AArch64 CPUs as QEMU's and others' `virt` have it: GICv3, generic timer, PL011, PSCI.

What is executed is the guest's, kernel and all: at EL1 and EL0. There is no EL2 and no EL3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from emulator.arch.processor import Processor
from emulator.board import gicv2
from emulator.board.board_cpu import BoardCpu, BoardPmu
from emulator.board.bus import Bus
from emulator.board.device_tree import flattened
from emulator.board.gic import DISTRIBUTOR_BYTES, GICV3, REDISTRIBUTOR_BYTES, Gic, Redistributors
from emulator.board.image import Image, NotBootable
from emulator.board.limits import Limits
from emulator.board.ninep.share import Share
from emulator.board.observers import Observers
from emulator.board.pl011 import Pl011
from emulator.board.pl031 import Pl031
from emulator.board.psci import Firmware
from emulator.board.semihosting import Semihosting
from emulator.board.serial_input import SerialInput, Source
from emulator.board.trace import Trace
from emulator.board.virt_tree import (
    GIC_DISTRIBUTOR,
    GIC_INTERFACES,
    GIC_REDISTRIBUTORS,
    RAM_BASE,
    RTC,
    RTC_BYTES,
    RTC_INTERRUPT,
    UART,
    UART_BYTES,
    UART_INTERRUPT,
    device_tree,
)
from emulator.board.virtio import slots
from emulator.board.virtio.block import Block, Storage
from emulator.board.virtio.console import Console, TestExit
from emulator.board.virtio.device import VirtioDevice
from emulator.board.virtio.entropy import Entropy
from emulator.board.virtio.guest_memory import GuestMemory
from emulator.board.virtio.ninep import NineP
from emulator.cpu import Cpu, ExitReason
from emulator.machine import Hardware, Turn

PAGE_SHIFT, TWO_MIB = 12, 2 << 20
FOREVER = 1 << 62  # cycles
MOST_EXTENDED_CYCLES = 1000  # of a turn, behind its end
EXTENSION_CYCLES = 50  # ... at a time, though a pair may be over sooner


class Ended(Enum):
    """Why a board runs no further, for the user."""

    STATUS = "the guest has ended the run with a status of its own"
    OFF = "the guest has turned the board off"
    RESET = "the guest has asked for a reset, which ends the run"
    NONE_ON = "no CPU is on any more, which ends the run"
    IDLE = "all CPUs wait for interrupts that nothing will raise, which ends the run"
    LIMIT = "stopped: a limit is reached"


@dataclass(frozen=True, slots=True)
class Boot:
    """What is loaded, and what is told to what is loaded."""

    image: Image
    initrd: bytes = b""
    command_line: str = ""


@dataclass(frozen=True, slots=True)
class Outside:
    """What a board is connected to."""

    send: Callable[[bytes], None]  # gets the serial port's bytes
    message: Callable[[str], None]  # gets lines for the user
    source: Source | None = None  # of what the serial port receives
    disks: Sequence[Storage] = ()
    shares: Mapping[str, Share] = field(default_factory=dict)  # by mount tag
    virtio_console: bool = False  # which receives in the serial port's place, and sends as it does
    test_device: bool = False  # by which tests end the run
    semihosting: bool = False
    gic: int = GICV3  # version of the interrupt controller
    observers: Observers | None = None  # who watches from outside
    trace: Trace | None = None  # who wants lines of what it does


class Virt:
    """The software that a machine carries: devices, firmware, and whatever has been loaded."""

    def __init__(self, hardware: Hardware, boot: Boot, outside: Outside, pmus: Sequence[BoardPmu | None] = ()) -> None:
        """`pmus`: one for each CPU, or none. NotBootable: what does not fit into RAM."""
        config = hardware.config
        self.ended: Ended | None = None
        self.exit_status = 0
        self._clock = hardware.clock
        self._quantum = config.quantum
        self._limits = Limits(hardware)
        self._gic = Gic(config.cpus, self._look_at_interrupts, outside.gic)
        self.uart = Pl011(outside.send, partial(self._gic.set_level, UART_INTERRUPT))
        self.rtc = Pl031(self._clock, partial(self._gic.set_level, RTC_INTERRUPT))
        self.bus = Bus()
        self._attach_gic()
        self.bus.attach("PL011", UART, UART_BYTES, self.uart)
        self.bus.attach("PL031", RTC, RTC_BYTES, self.rtc)
        processor = Processor.of(config.core, config.isa, config.cpus)
        firmware = Firmware(self._find, partial(self.end, Ended.OFF), partial(self.end, Ended.RESET))
        self.cpus = [
            BoardCpu(cpu, RAM_BASE, hardware.clock, processor, interface, self.bus, pmu, firmware, outside.message)
            for cpu, interface, pmu in zip(
                hardware.cpus, self._gic.interfaces, pmus or [None] * config.cpus, strict=True
            )
        ]
        self._executing = self.cpus[0]
        self._turn_taken: Turn | None = None
        self._goes_on = False  # the turn that was taken last
        self._extended_cycles = 0
        self._observers = outside.observers or Observers(config.cpus)
        self._load(hardware, boot)
        console = Console(outside.send) if outside.virtio_console else None
        self._attach_virtio(hardware, outside, console)
        self._input = SerialInput(outside.source, console or self.uart, self._clock)
        self._timed = self._input, self.rtc
        if outside.semihosting:
            self._offer_semihosting(outside, boot.command_line)
        if outside.trace is not None:
            self._trace(outside.trace)

    def _trace(self, trace: Trace) -> None:
        def hears(cpu: int | None, what: str, interrupt: int) -> None:
            board_cpu = self._executing if cpu is None else self.cpus[cpu]
            trace.note(board_cpu.cpu, f"interrupt: {what % interrupt}")

        for each in self.cpus:
            each.trace = trace
        if trace.interrupts:
            self._gic.hears = hears

    def _attach_gic(self) -> None:
        """Raises ValueError for CPUs that it does not reach."""
        gic = self._gic
        if gic.version == GICV3:
            size = len(gic.interfaces) * REDISTRIBUTOR_BYTES
            self.bus.attach("GICv3 distributor", GIC_DISTRIBUTOR, DISTRIBUTOR_BYTES, gic)
            self.bus.attach("GICv3 redistributors", GIC_REDISTRIBUTORS, size, Redistributors(gic))
            return
        if len(gic.interfaces) > gicv2.MOST_CPUS:
            raise ValueError(f"GICv2 reaches {gicv2.MOST_CPUS} CPUs, and there are {len(gic.interfaces)}")
        parts = gic, gicv2.Senders(gic), lambda: self._executing.cpu.number
        self.bus.attach("GICv2 distributor", GIC_DISTRIBUTOR, DISTRIBUTOR_BYTES, gicv2.Distributor(*parts))
        self.bus.attach("GICv2 CPU interfaces", GIC_INTERFACES, gicv2.INTERFACE_BYTES, gicv2.Interfaces(*parts))

    def _attach_virtio(self, hardware: Hardware, outside: Outside, console: Console | None) -> None:
        """Disks first, in their order: Linux names them so."""
        devices: list[VirtioDevice] = [Block(disk, f"disk{number}") for number, disk in enumerate(outside.disks)]
        for tag, share in outside.shares.items():
            share.now_ns = self._clock.realtime_ns
            devices.append(NineP(tag, share))
        devices += [console] if console is not None else []
        devices.append(Entropy(hardware.config.seed))
        slots.attach(
            self.bus,
            GuestMemory(hardware.memory, RAM_BASE),
            devices,
            TestExit(self._end_with) if outside.test_device else None,
            self._gic.set_level,
            outside.message,
        )

    def _offer_semihosting(self, outside: Outside, command_line: str) -> None:
        call = Semihosting(
            outside.send,
            outside.source,
            outside.shares,
            command_line,
            self._clock,
            self._end_with,
            outside.message,
        )
        for cpu in self.cpus:
            cpu.host_call = call

    def _load(self, hardware: Hardware, boot: Boot) -> None:
        size = hardware.memory.size_bytes
        frames = size >> PAGE_SHIFT
        hardware.memory.allocate(frames)
        ram = hardware.memory.view(0, frames)

        def place(what: str, address: int, data: bytes) -> int:
            start = address - RAM_BASE
            if start < 0 or start + len(data) > size:
                raise NotBootable(
                    f"{what} wants {len(data)} bytes at {address:#x}: RAM is {RAM_BASE:#x}..{RAM_BASE + size:#x}"
                )
            ram[start : start + len(data)] = data
            return address + len(data)

        for address, piece in boot.image.pieces:
            place("the image", address, piece)
        initrd = _behind(boot.image.end)
        end = place("the initrd", initrd, boot.initrd)
        tree = device_tree(
            cpus=len(self.cpus),
            gic_version=self._gic.version,
            ram_bytes=size,
            command_line=boot.command_line,
            seed=hardware.config.seed,
            has_pmu=self.cpus[0].pmu_version > 0,
            initrd=(initrd, end) if boot.initrd else None,
        )
        tree_at = _behind(end)
        place("the device tree", tree_at, flattened(tree))
        self.cpus[0].start(boot.image.entry, tree_at)

    # ---- who executes

    @property
    def next_turn(self) -> Callable[[], Turn | None]:
        return self._next_turn

    def _next_turn(self) -> Turn | None:
        taken, goes_on = self._turn_taken, self._goes_on
        self._goes_on = False
        if not (goes_on and taken is not None and taken[0].core.cycles < taken[1]):
            self._turn_taken = self._chosen_turn()
        return None if self._turn_taken is None else self._until_observed(self._turn_taken)

    def _until_observed(self, turn: Turn) -> Turn:
        """Of a turn, what comes before somebody wants to look; the rest of it follows, whatever is seen there."""
        cpu, until = turn
        due = self._observers.look(cpu.number, cpu.core.cycles)
        return turn if due is None else (cpu, min(until, due))

    def _chosen_turn(self) -> Turn | None:
        """The CPU whose time is lowest, until something is due there, or it is a quantum before the next."""
        while self.ended is None:
            if self._limits.reached:
                self.end(Ended.LIMIT)
                break
            if self._ends_within_exclusive():
                return self._executing.cpu, self._executing.core.cycles + EXTENSION_CYCLES
            executing: list[BoardCpu] = []
            waiting: list[BoardCpu] = []
            for each in self.cpus:
                if each.is_on:
                    each.look_at_timers()
                    (waiting if each.waits else executing).append(each)
            if not executing and not waiting:
                self.end(Ended.NONE_ON)
                break
            executing.sort(key=_time)
            due = min((each for each in waiting if each.due_cycle is not None), key=_due, default=None)
            if not executing:
                self._idle(due)
            elif due is not None and _due(due) <= _time(executing[0]):
                _idle_until_due(due)  # the others' time has come there
            elif not self._hears(executing[0]):
                return self._turn(executing, due)
        return None

    def _hears(self, ready: BoardCpu) -> bool:
        """Whether a device has something due, which may be news for CPUs that wait."""
        now = _time(ready)
        if all(each.due_cycle is None or now < each.due_cycle for each in self._timed):
            return False
        self._select(ready)
        return any(each.look(now) for each in self._timed)

    def _idle(self, due: BoardCpu | None) -> None:
        """All CPUs wait: time goes on to what comes first, a timer or a device."""
        last = self._executing
        asked = min((each.idle_cycle for each in self._timed if each.idle_cycle is not None), default=None)
        dues = [asked, None if due is None else _due(due)]
        first = min((cycle for cycle in dues if cycle is not None), default=None)
        if self._input.wait(None if first is None else self._clock.at(max(first - _time(last), 0))):
            return
        if asked is not None and (due is None or asked < _due(due)):
            last.cpu.idle(max(asked - _time(last), 0))
            for each in self._timed:
                each.look(_time(last))
        elif due is not None:
            _idle_until_due(due)
        elif not self._input.awaited:
            self.end(Ended.IDLE)

    def _ends_within_exclusive(self) -> bool:
        """Whether a turn has ended between an exclusive load and its store: it goes on then, but not for ever, so that
        whether pairs succeed does not depend on where turns end."""
        core = self._executing.core
        if len(self.cpus) == 1 or self._executing.waits or not core.exclusive_open:
            self._extended_cycles = 0
            return False
        self._extended_cycles += EXTENSION_CYCLES
        if self._extended_cycles <= MOST_EXTENDED_CYCLES:
            return True
        self._extended_cycles = 0
        core.close_exclusive()
        return False

    def _turn(self, executing: list[BoardCpu], waiting: BoardCpu | None) -> Turn:
        ready = executing[0]
        until = FOREVER if len(executing) == 1 else _time(executing[1]) + self._quantum
        waiting_until = None if waiting is None else waiting.due_cycle
        for cycle in (ready.due_cycle, waiting_until, *(each.due_cycle for each in self._timed)):
            if cycle is not None:
                until = min(until, cycle)
        until = min(until, self._limits.cycle(ready.core))
        self._select(ready)
        return ready.cpu, until

    def _select(self, ready: BoardCpu) -> None:
        """What happens now happens at its time."""
        if ready is not self._executing:
            self._executing = ready
            self._clock.cycles = partial(_time, ready)

    def _look_at_interrupts(self) -> None:
        now = self._executing.core.cycles
        for each in self.cpus:
            each.look_at_interrupts(now)

    # ---- what CPUs ask of the board

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        answers = {reason: partial(self._answer, reason) for reason in self.cpus[0].answers}
        return {**answers, ExitReason.OVERFLOW: self._overflow, ExitReason.DEADLINE: self._deadline}

    def _deadline(self, cpu: Cpu) -> None:
        """Of the turn, which then is over, or of what was to be observed, behind which it goes on."""
        self._goes_on = True

    def _overflow(self, cpu: Cpu) -> None:
        """One that is no news for the guest ends no turn: who counts from outside does not change who executes when."""
        board_cpu = self.cpus[cpu.number]
        before = board_cpu.pmu_interrupts
        board_cpu.answers[ExitReason.OVERFLOW]()
        self._goes_on = board_cpu.pmu_interrupts == before

    def _answer(self, reason: ExitReason, cpu: Cpu) -> None:
        self.cpus[cpu.number].answers[reason]()

    def _find(self, number: int) -> BoardCpu | None:
        """The CPU of that affinity; None where there is none."""
        return self.cpus[number] if number < len(self.cpus) else None

    def end(self, why: Ended) -> None:
        self.ended = why

    def _end_with(self, status: int) -> None:
        self.exit_status = status
        self.end(Ended.STATUS)


def _time(cpu: BoardCpu) -> int:
    return cpu.core.cycles


def _due(cpu: BoardCpu) -> int:
    assert cpu.due_cycle is not None
    return cpu.due_cycle


def _idle_until_due(cpu: BoardCpu) -> None:
    cpu.cpu.idle(max(_due(cpu) - _time(cpu), 0))


def _behind(address: int) -> int:
    return -(-address // TWO_MIB) * TWO_MIB
