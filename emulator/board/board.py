"""Board: what boards have in common: whose turn it is to execute, who waits until when, and how a run ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Generic, Protocol, TypeVar

from emulator._native import Core
from emulator.board.calls import CallWatcher
from emulator.board.gic import GICV3
from emulator.board.image import Image, NotBootable
from emulator.board.kept import WrongState
from emulator.board.limits import Limits
from emulator.board.ninep.share import Share
from emulator.board.observers import Observers
from emulator.board.pausable import Pausable
from emulator.board.serial_input import SerialInput, Source
from emulator.board.trace import Trace
from emulator.board.virtio.block import Block, Storage
from emulator.board.virtio.console import Console, TestExit
from emulator.board.virtio.device import VirtioDevice
from emulator.board.virtio.entropy import Entropy
from emulator.board.virtio.ninep import NineP
from emulator.cpu import Cpu, ExitReason
from emulator.machine import Hardware, Turn

PAGE_SHIFT = 12
FOREVER = 1 << 62  # cycles
MOST_EXTENDED_CYCLES = 1000  # of a turn, behind its end
MAYBE_QUIET = ExitReason.BREAKPOINT, ExitReason.WATCHPOINT
AT_ONCE_BYTES = 1 << 20  # that a device moves in no time: drivers ask for no more
EXTENSION_CYCLES = 50  # ... at a time, though a pair may be over sooner


class Ended(Enum):
    """Why a board runs no further, for the user."""

    STATUS = "the guest has ended the run with a status of its own"
    OFF = "the guest has turned the board off"
    RESET = "the guest has asked for a reset, which ends the run"
    NONE_ON = "no CPU is on any more, which ends the run"
    IDLE = "all CPUs wait for interrupts that nothing will raise, which ends the run"
    KILLED = "stopped: the debugger has ended the run"
    LIMIT = "stopped: a limit is reached"


@dataclass(frozen=True, slots=True)
class Boot:
    """What is loaded, and what is told to what is loaded."""

    image: Image
    initrd: bytes = b""
    command_line: str = ""
    name: str = "image"  # of the file, for images that are told


@dataclass(frozen=True, slots=True)
class Held:
    """A share whose first question is not answered before `Board.go_on`, nor is any input read: what happens before
    does not depend on what is outside."""

    tag: str
    tell: Callable[[], None]  # called when something is asked


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
    held: Held | None = None
    trace: Trace | None = None  # who wants lines of what it does
    calls: CallWatcher | None = None  # who hears of system calls


def ram_loader(hardware: Hardware, base: int) -> Callable[[str, int, bytes], int]:
    """Gives a machine all of its RAM, the first byte at `base`, and returns what puts something there: (what,
    address, bytes) -> the address behind it. That raises NotBootable for what is not within RAM.
    """
    size = hardware.memory.size_bytes
    frames = size >> PAGE_SHIFT
    hardware.memory.allocate(frames)
    ram = hardware.memory.view(0, frames)

    def place(what: str, address: int, data: bytes) -> int:
        start = address - base
        if start < 0 or start + len(data) > size:
            raise NotBootable(f"{what} wants {len(data)} bytes at {address:#x}: RAM is {base:#x}..{base + size:#x}")
        ram[start : start + len(data)] = data
        return address + len(data)

    return place


class BoardProcessor(Protocol):
    """A CPU of a board: it is on, waits for an interrupt, or is off."""

    cpu: Cpu
    core: Core
    is_on: bool
    waits: bool  # for an interrupt
    due_cycle: int | None  # at which a timer interrupts
    answers: Mapping[ExitReason, Callable[[], None]]

    @property
    def pmu_interrupts(self) -> int:
        """What changes when its own PMU interrupts."""

    @property
    def listening(self) -> Sequence[Pausable]:
        """What of it listens to the core for its guest."""

    def look_at_timers(self) -> None:
        """Bring their interrupts, and when the next one is due, up to date."""

    def look_at_interrupts(self, now: int) -> None:
        """Another interrupt may be the highest. One that waits goes on at cycle `now`, at the earliest."""


class Timed(Protocol):
    """A device that has something due at times of its own."""

    @property
    def due_cycle(self) -> int | None: ...

    @property
    def idle_cycle(self) -> int | None:
        """The same while all CPUs wait."""

    def look(self, now: int) -> bool:
        """It is cycle `now`: whether there is news, which may be for CPUs that wait."""


AnyProcessor = TypeVar("AnyProcessor", bound=BoardProcessor)


class Board(Generic[AnyProcessor]):
    """The software that a machine carries. Boards derive from it: they have the devices, and load."""

    cpus: list[AnyProcessor]

    def __init__(self, hardware: Hardware, observers: Observers | None) -> None:
        config = hardware.config
        self.ended: Ended | None = None
        self.exit_status = 0
        self._clock = hardware.clock
        self._quantum = config.quantum
        self._limits = Limits(hardware)
        self._observers = observers or Observers(config.cpus)
        self._turn_taken: Turn | None = None
        self._goes_on = False  # the turn that was taken last
        self._extended_cycles = 0
        self._held: NineP | None = None

    def _populate(self, cpus: list[AnyProcessor]) -> None:
        """The first of them executes first."""
        self.cpus = cpus
        self._executing = cpus[0]

    def _attend(self, serial_input: SerialInput, *timed: Timed) -> None:
        """To what becomes due without a CPU."""
        self._input = serial_input
        self._timed: Sequence[Timed] = serial_input, *timed

    def _virtio_devices(self, outside: Outside, seed: int, console: Console | None) -> list[VirtioDevice]:
        """Disks first, in their order: Linux names them so."""
        devices: list[VirtioDevice] = [Block(disk, f"disk{number}") for number, disk in enumerate(outside.disks)]
        for tag, share in outside.shares.items():
            share.now_ns = self._clock.realtime_ns
            device = NineP(tag, share)
            devices.append(device)
            if outside.held is not None and outside.held.tag == tag:
                device.hold(outside.held.tell)
                self._held = device
        devices += [console] if console is not None else []
        devices.append(Entropy(seed))
        return devices

    def _device_is_busy(self, size: int) -> None:
        """It has moved so many bytes at once, while a CPU waited: what is beyond AT_ONCE_BYTES takes a nanosecond each,
        so that a guest whose devices do nothing else comes to the limit of its time."""
        beyond = size - AT_ONCE_BYTES
        if beyond > 0:
            core = self._executing.core
            self._executing.cpu.idle(self._clock.cycle_at(self._clock.at(core.cycles) + beyond) - core.cycles)

    def go_on(self, source: Source | None) -> None:
        """The machine has paused, and another Machine goes on with this board: input comes from `source` then, and a
        share that was held is answered.

        What has been chosen already is chosen anew, so that a board which has been restored here does the same.
        """
        self._turn_taken, self._goes_on = None, False
        self._input.connect(source, _time(self._executing))
        if self._held is not None:
            self._held.release()

    @property
    def _executing_number(self) -> int:
        return self._executing.cpu.number

    @_executing_number.setter
    def _executing_number(self, number: int) -> None:
        if not 0 <= number < len(self.cpus):
            raise WrongState(f"CPU {number} of {len(self.cpus)}")
        self._select(self.cpus[number])

    def apply_restored(self) -> None:
        """What is kept has been restored, but for the cores' own state: what those are to be told of it."""

    def _test_exit(self, outside: Outside) -> TestExit | None:
        return TestExit(self._end_with) if outside.test_device else None

    # ---- who executes

    @property
    def next_turn(self) -> Callable[[], Turn | None]:
        return self._next_turn

    def _next_turn(self) -> Turn | None:
        taken, goes_on = self._turn_taken, self._goes_on
        self._goes_on = False
        if taken is not None and taken[0].core.owes_exit:
            return taken  # what has been counted from outside fell on something that comes before all else
        within = taken is not None and taken[0].core.cycles < taken[1] and not taken[0].core.repeats_too_long
        if not (goes_on and within):
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
            executing: list[AnyProcessor] = []
            waiting: list[AnyProcessor] = []
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

    def _hears(self, ready: AnyProcessor) -> bool:
        """Whether a device has something due, which may be news for CPUs that wait."""
        now = _time(ready)
        if all(each.due_cycle is None or now < each.due_cycle for each in self._timed):
            return False
        self._select(ready)
        return any(each.look(now) for each in self._timed)

    def _idle(self, due: AnyProcessor | None) -> None:
        """All CPUs wait: time goes on to what comes first, a timer or a device."""
        last = self._executing
        asked = min((each.idle_cycle for each in self._timed if each.idle_cycle is not None), default=None)
        dues = [asked, None if due is None else _due(due)]
        first = min((cycle for cycle in dues if cycle is not None), default=None)
        if self._input.wait(None if first is None else self._clock.ns(max(self._clock.passed(_time(last), first), 0))):
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

    def _turn(self, executing: list[AnyProcessor], waiting: AnyProcessor | None) -> Turn:
        ready = executing[0]
        until = FOREVER if len(executing) == 1 else _time(executing[1]) + self._quantum
        waiting_until = None if waiting is None else waiting.due_cycle
        for cycle in (ready.due_cycle, waiting_until, *(each.due_cycle for each in self._timed)):
            if cycle is not None:
                until = min(until, cycle)
        until = min(until, self._limits.cycle(ready.core))
        self._select(ready)
        return ready.cpu, until

    def _select(self, ready: AnyProcessor) -> None:
        """What happens now happens at its time."""
        if ready is not self._executing:
            self._executing = ready
            self._clock.cycles = partial(_time, ready)

    def _look_at_interrupts(self) -> None:
        now = self._executing.core.cycles
        for each in self.cpus:
            each.look_at_interrupts(now)

    # ---- for who has several boards take turns on one CPU

    def waits_until(self) -> int | None:
        """The cycle at which something is due, while all CPUs wait: timers have been looked at."""
        dues = [each.due_cycle for each in self.cpus] + [each.idle_cycle for each in self._timed]
        return min((due for due in dues if due is not None), default=None)

    def hear(self) -> bool:
        """What has become due happens. Whether a CPU executes then."""
        for each in self.cpus:
            each.look_at_timers()
        for timed in self._timed:
            timed.look(_time(self._executing))
        return any(each.is_on and not each.waits for each in self.cpus)

    # ---- what CPUs ask of the board

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        answers = {reason: partial(self._answer, reason) for reason in self.cpus[0].answers}
        quiet = {reason: partial(self._quiet, reason) for reason in MAYBE_QUIET if reason in answers}
        goes_on = dict.fromkeys((ExitReason.DEADLINE, ExitReason.STEP), self._deadline)
        return {**answers, **quiet, **goes_on, ExitReason.OVERFLOW: self._overflow}

    def _deadline(self, cpu: Cpu) -> None:
        """Of the turn, which then is over, or of what was to be observed, behind which it goes on."""
        self._goes_on = True

    def _overflow(self, cpu: Cpu) -> None:
        """One that is no news for the guest ends no turn: who counts from outside does not change who executes when."""
        board_cpu = self.cpus[cpu.number]
        before = board_cpu.pmu_interrupts
        board_cpu.answers[ExitReason.OVERFLOW]()
        self._goes_on = board_cpu.pmu_interrupts == before

    def _quiet(self, reason: ExitReason, cpu: Cpu) -> None:
        """A stop that may be no news for the guest: it ends no turn then."""
        before = cpu.core.pc
        self._answer(reason, cpu)
        self._goes_on = cpu.core.pc == before

    def _answer(self, reason: ExitReason, cpu: Cpu) -> None:
        self.cpus[cpu.number].answers[reason]()

    def last_exceptions(self) -> list[str]:
        """Lines of what went wrong last, if it has ended in a way that nobody meant."""
        return []

    def whereabouts(self) -> list[str]:
        """A line for each CPU that is on: where a guest is that a limit has ended."""
        return [
            f"CPU {each.cpu.number} at {each.core.pc:#x}, {each.cpu.level.name.lower()}"
            + (", waits for an interrupt" if each.waits else "")
            for each in self.cpus
            if each.is_on
        ]

    def end(self, why: Ended) -> None:
        self.ended = why

    def _end_with(self, status: int) -> None:
        self.exit_status = status
        self.end(Ended.STATUS)


def _time(cpu: BoardProcessor) -> int:
    return cpu.core.cycles


def _due(cpu: BoardProcessor) -> int:
    assert cpu.due_cycle is not None
    return cpu.due_cycle


def _idle_until_due(cpu: BoardProcessor) -> None:
    cpu.cpu.idle(max(_due(cpu) - _time(cpu), 0))
