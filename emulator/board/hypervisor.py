"""Hypervisor: several guests on one CPU, each a board of its own, which take turns on it in slices.

A guest is bare-metal software on a board, a `Virt` or a `Pc`, that nobody else sees: its RAM is a part of the
machine's, reached at the addresses at which all of RAM is reached elsewhere (what stage 2 of translation, or EPT, would
do, here by the tables' base), and its interrupt controllers, timers and serial port are objects of its own. What guests
have in common is the CPU: its registers are swapped, its caches, TLBs and predictors are not.

The host is this Python: it executes nothing on the CPU. A *world switch* is `World.enter` or `World.exit`, by which
who counts swaps the state of the PMU as KVM does. A guest is left where a hypervisor has it: see `Leaving`. What the
host does then is done for the guest, and retires there, as on a board. What is due for a guest that waits is looked at
when the CPU's registers are that guest's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Protocol, cast

from emulator._native import GuestPageTables, PhysicalMemory, RegisterState
from emulator.board.board import Board, BoardProcessor, Boot, Ended, Outside
from emulator.board.image import NotBootable
from emulator.board.limits import Limits
from emulator.board.observers import Observers
from emulator.cpu import Cpu, ExitReason
from emulator.machine import Hardware, Turn
from emulator.sysregs import SystemRegisters

FRAME_SHIFT = 12
TWO_MIB = 2 << 20


class World(Protocol):
    """The host's half of a world switch: who counts."""

    def scheduled(self, leaving: int | None, coming: int | None) -> None:
        """Another guest has the CPU, or none: what the host's scheduler knows. The host runs."""

    def enter(self, guest: int) -> None:
        """That guest runs from now on."""

    def exit(self) -> None:
        """The host runs."""

    def host_interrupt(self) -> bool:
        """Whether an overflow of the host's asks for an interrupt, while a guest runs."""

    def handle_interrupt(self) -> None:
        """... which the host takes. It runs."""


class Leaving(Enum):
    """Why a guest is left for the host."""

    CALL = "HVC, SMC or CPUID"
    WAIT = "WFI or HLT"
    DEVICE = "an access to a device"
    PMU = "an access to the PMU"
    OVERFLOW = "an overflow of the host's"
    OBSERVED = "something that the host observes"
    SLICE = "the end of its slice"


class GuestRam:
    """Frames of the machine's RAM that are one guest's: as PhysicalMemory, from its own first frame on."""

    def __init__(self, memory: PhysicalMemory, first: int, size_bytes: int) -> None:
        self.first = first
        self.size_bytes = size_bytes
        self._memory = memory

    def allocate(self, frames: int) -> int:
        """All of it at once, guest after guest."""
        assert self._memory.allocate(frames) == self.first, "guests get their RAM in their order"
        return 0

    def view(self, first: int, count: int) -> memoryview:
        return self._memory.view(self.first + first, count)

    def write(self, frame: int, offset: int, data: bytes) -> None:
        self._memory.write(self.first + frame, offset, data)


class VirtualCpu(Cpu):
    """A guest's CPU: the machine's own core while the guest runs, and registers that nobody else reaches."""

    def __init__(self, cpu: Cpu, ram: GuestRam) -> None:
        self.number = 0
        self.isa = cpu.isa
        self.core = cpu.core
        self.space = None
        self.guest_tables = None
        self.passed = cpu.passed
        self.idle_cycles = self.halted_cycles = self.system_cycles = 0
        self.in_kernel = self.asleep = False
        self.sleep_listeners = []
        self.system_registers = SystemRegisters()
        self._interrupts = []
        self._ram = ram

    def enter_kernel_mode(self, ram_base: int = 0) -> GuestPageTables:
        """Its own RAM at `ram_base`, and nothing of the others'."""
        frames = self._ram.size_bytes >> FRAME_SHIFT
        self.guest_tables = self.core.enter_kernel_mode(ram_base, self._ram.first, frames)
        return self.guest_tables


class GuestHardware(Hardware):
    """What a guest's board finds: one CPU, and its part of RAM."""

    def __init__(self, host: Hardware, ram: GuestRam) -> None:
        self.config = replace(host.config, memory_bytes=ram.size_bytes, most_instructions=None, most_ns=None)
        self.memory = cast(PhysicalMemory, ram)  # as much of one as boards want
        self.clock = host.clock
        self.caches = None
        self.cpus = [VirtualCpu(host.cpus[0], ram)]


class GuestStops(Protocol):
    """Where a guest's own debug registers have the core stop."""

    def leave(self) -> None:
        """Another guest gets the core: nothing stops it there."""

    def come_back(self) -> None:
        """... and its own guest again."""


class GuestProcessor(BoardProcessor, Protocol):
    """What a hypervisor wants of a board's CPU besides."""

    @property
    def tables(self) -> GuestPageTables: ...

    def calls_host(self, reason: ExitReason) -> bool:
        """Whether it has come to an instruction that always leaves a guest for its host."""

    def reaches_device(self, reason: ExitReason) -> bool:
        """... to one that leads beyond its RAM."""

    def look_at_pmu(self) -> None:
        """Its PMU's interrupt may be another than it was."""

    @property
    def debug(self) -> GuestStops: ...


@dataclass(frozen=True, slots=True)
class GuestImage:
    """What one guest boots, and what it is connected to. `build` makes its board of that."""

    boot: Boot
    outside: Outside
    build: Callable[[Hardware, Boot, Outside], Board[Any]]


class Guest:
    """One guest: its board, and its CPU's registers while it does not run."""

    def __init__(self, number: int, board: Board[Any], registers: RegisterState) -> None:
        self.number = number
        self.board = board
        self.cpu: GuestProcessor = board.cpus[0]
        self.registers = registers
        self.answers = board.answers
        self.exits = dict.fromkeys(Leaving, 0)  # how often it was left, and why

    @property
    def is_alive(self) -> bool:
        return self.board.ended is None and self.cpu.is_on

    def ready_at(self, now: int) -> int | None:
        """The cycle from which it executes, or has something to hear; None if nothing will have it go on."""
        if not self.is_alive:
            return None
        due = self.board.waits_until() if self.cpu.waits else now
        return None if due is None else max(due, now)


class Hypervisor:
    """The software of a machine with one CPU: guests, and whose slice it is."""

    def __init__(
        self, hardware: Hardware, images: Sequence[GuestImage], world: World, observers: Observers, slice_cycles: int
    ) -> None:
        """Guests share RAM evenly. NotBootable: what does not fit. ValueError: a machine that cannot carry them."""
        if len(hardware.cpus) != 1:
            raise ValueError("guests share one CPU")
        if not images or slice_cycles < 1:
            raise ValueError(f"{len(images)} guests in slices of {slice_cycles} cycles: there must be at least one")
        self.ended: Ended | None = None
        self._cpu = hardware.cpus[0]
        self._core = self._cpu.core
        self._world = world
        self._observers = observers
        self._slice_cycles = slice_cycles
        self._slice_end = 0
        self._loaded: Guest | None = None  # whose registers the CPU has
        self._is_inside = False  # the loaded guest runs, rather than the host
        self.guests = self._made(hardware, images)
        self._limits = Limits(hardware)

    def _made(self, hardware: Hardware, images: Sequence[GuestImage]) -> list[Guest]:
        each = hardware.config.memory_bytes // len(images) // TWO_MIB * TWO_MIB
        if each < TWO_MIB:
            raise NotBootable(f"{hardware.config.memory_bytes} bytes of RAM for {len(images)} guests")
        at_reset = self._core.save_state()
        guests = []
        for number, image in enumerate(images):
            self._core.restore_state(at_reset)
            own = GuestHardware(hardware, GuestRam(hardware.memory, number * each >> FRAME_SHIFT, each))
            board = image.build(own, image.boot, image.outside)
            guests.append(Guest(number, board, self._core.save_state()))
        return guests

    # ---- as Software

    @property
    def next_turn(self) -> Callable[[], Turn | None]:
        return self._next_turn

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        return {reason: partial(self._answer, reason) for reason in self.guests[0].answers}

    def _next_turn(self) -> Turn | None:
        core = self._core
        while self.ended is None:
            if self._limits.reached:
                self.ended = Ended.LIMIT
                break
            guest = self._loaded if self._loaded is not None and core.owes_exit else self._chosen()
            if guest is None:
                break
            self._load(guest)
            if not core.owes_exit and not guest.board.hear():
                continue  # it was not what it waits for
            self._enter(guest)
            guest.cpu.look_at_interrupts(core.cycles)
            turn = guest.board.next_turn()
            if turn is not None:
                due = self._observers.due_cycle(self._cpu.number)
                until = min(turn[1], self._slice_end, self._limits.cycle(core))
                return turn[0], until if due is None else min(until, due)
        self._leave()
        return None

    def _chosen(self) -> Guest | None:
        """Whose turn it is now: time goes on to where one is ready. None: the machine has ended."""
        while True:
            self._look()
            now = self._core.cycles
            ready = {guest: at for guest in self._in_order(now) if (at := guest.ready_at(now)) is not None}
            if not ready:
                self.ended = Ended.IDLE if any(guest.is_alive for guest in self.guests) else Ended.NONE_ON
                return None
            first = min(ready, key=lambda guest: ready[guest])  # of those at once, the first in the order
            if ready[first] <= now:
                return first
            self._leave()
            due = self._observers.due_cycle(self._cpu.number)
            self._cpu.idle(min(ready[first], ready[first] if due is None else due) - now)

    def _in_order(self, now: int) -> list[Guest]:
        """The loaded one goes on until its slice ends; behind it all others, by their numbers."""
        loaded = self._loaded
        if loaded is None:
            return self.guests
        behind = loaded.number + (now >= self._slice_end)
        return [*self.guests[behind:], *self.guests[:behind]]

    def _look(self) -> None:
        """What the host observes at this cycle happens in the host."""
        due = self._observers.due_cycle(self._cpu.number)
        if due is not None and due <= self._core.cycles:
            self._exit(Leaving.OBSERVED)
            self._observers.look(self._cpu.number, self._core.cycles)

    def _answer(self, reason: ExitReason, cpu: Cpu) -> None:
        guest = self._loaded
        assert guest is not None, "a guest runs"
        if reason is ExitReason.OVERFLOW:
            self._heed_host()
        elif reason is ExitReason.IDLE:
            self._exit(Leaving.WAIT)
        elif guest.cpu.calls_host(reason):
            self._exit(Leaving.CALL)
        elif guest.cpu.reaches_device(reason):
            self._exit(Leaving.DEVICE)
        self._enter(guest)  # what it was left for is done for it, and retires there
        guest.answers[reason](cpu)
        self._heed_host()  # before the guest may be left: the overflow is of what it has just retired

    def _heed_host(self) -> None:
        """If an overflow of the host's asks for it."""
        if self._is_inside and self._world.host_interrupt():
            self._exit(Leaving.OVERFLOW)
            self._world.handle_interrupt()

    def trap_pmu_access(self) -> None:
        """The guest that runs is about to access its PMU, which leaves it for the host. It goes on with the access."""
        guest = self._loaded
        if guest is not None and self._is_inside:
            self._exit(Leaving.PMU)
            self._world.enter(guest.number)
            self._is_inside = True

    # ---- the worlds

    def _load(self, guest: Guest) -> None:
        """It has the CPU."""
        loaded = self._loaded
        if loaded is not guest or self._core.cycles >= self._slice_end:
            if not self._core.owes_exit:
                self._exit(Leaving.SLICE)
            self._slice_end = self._core.cycles + self._slice_cycles
        if loaded is not guest:
            self._leave()
            self._core.restore_state(guest.registers)
            self._core.change_guest(guest.cpu.tables)
            self._loaded = guest
            guest.cpu.debug.come_back()
            self._world.scheduled(None, guest.number)

    def _leave(self) -> None:
        """Nobody has the CPU."""
        guest = self._loaded
        if guest is None:
            return
        self._exit(Leaving.SLICE)
        guest.cpu.look_at_timers()  # so that it is known when it is due
        guest.cpu.debug.leave()
        self._core.save_state_into(guest.registers)
        self._loaded = None
        self._world.scheduled(guest.number, None)

    def _enter(self, guest: Guest) -> None:
        if self._is_inside:
            return
        self._world.enter(guest.number)
        self._is_inside = True
        guest.cpu.look_at_pmu()

    def _exit(self, why: Leaving) -> None:
        guest = self._loaded
        if guest is None or not self._is_inside:
            return
        guest.exits[why] += 1
        self._is_inside = False
        self._world.exit()
