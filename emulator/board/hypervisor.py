"""Hypervisor: several guests on one CPU, each a board of its own, which take turns on it in slices.

A guest is bare-metal software on a `Virt` that nobody else sees: its RAM is a part of the machine's, reached at the
addresses at which all of RAM is reached elsewhere (what stage 2 of translation would do, here by the tables' base), and
its interrupt controller, timers and serial port are objects of its own. What guests have in common is the CPU: its
registers are swapped, its caches, TLBs and predictors are not.

The host is this Python: it executes nothing on the CPU. A *world switch* is `World.enter` or `World.exit`, by which
who counts swaps the state of the PMU as KVM does. A guest is left where a hypervisor has it: at HVC and SMC, WFI, an
access to a device, an overflow of the host's, what the host wants to observe, and at the end of its slice. What the
host does then is done for the guest, and retires there, as on a board.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Protocol, cast

from emulator._native import GuestPageTables, PhysicalMemory, RegisterState
from emulator.board.board import Boot, Ended, Outside
from emulator.board.board_cpu import BoardPmu
from emulator.board.image import NotBootable
from emulator.board.limits import Limits
from emulator.board.observers import Observers
from emulator.board.virt import Virt
from emulator.board.virt_tree import RAM_BASE
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

    CALL = "HVC or SMC"
    WAIT = "WFI"
    DEVICE = "an access to a device"
    OVERFLOW = "an overflow of the host's"
    OBSERVED = "something that the host observes"
    SLICE = "the end of its slice"


LEFT_FOR = {ExitReason.DEVICE: Leaving.DEVICE, ExitReason.IDLE: Leaving.WAIT}


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

    def __init__(self, cpu: Cpu, ram: GuestRam, all_ram_bytes: int) -> None:
        self.number = 0
        self.isa = cpu.isa
        self.core = cpu.core
        self.space = None
        self.guest_tables = None
        self.passed = cpu.passed
        self.idle_cycles = self.halted_cycles = self.system_cycles = 0
        self.in_kernel = False
        self.system_registers = SystemRegisters()
        self._interrupts = []
        self._ram, self._all_ram_bytes = ram, all_ram_bytes

    def enter_kernel_mode(self, ram_base: int = 0) -> GuestPageTables:
        """Its own RAM at `ram_base`, and nothing of the others'."""
        first_byte = self._ram.first << FRAME_SHIFT
        tables = super().enter_kernel_mode(ram_base - first_byte)
        end = ram_base + self._ram.size_bytes
        tables.exclude(ram_base - first_byte, ram_base)
        tables.exclude(end, ram_base - first_byte + self._all_ram_bytes)
        return tables


class GuestHardware(Hardware):
    """What a guest's board finds: one CPU, and its part of RAM."""

    def __init__(self, host: Hardware, ram: GuestRam) -> None:
        self.config = replace(host.config, memory_bytes=ram.size_bytes, most_instructions=None, most_ns=None)
        self.memory = cast(PhysicalMemory, ram)  # as much of one as boards want
        self.clock = host.clock
        self.caches = None
        self.cpus = [VirtualCpu(host.cpus[0], ram, host.config.memory_bytes)]


@dataclass(frozen=True, slots=True)
class GuestImage:
    """What one guest boots, and what it is connected to."""

    boot: Boot
    outside: Outside
    pmu: BoardPmu | None = None


class Guest:
    """One guest: its board, and its CPU's registers while it does not run."""

    def __init__(self, number: int, board: Virt, tables: GuestPageTables, registers: RegisterState) -> None:
        self.number = number
        self.board = board
        self.cpu = board.cpus[0]
        self.tables = tables
        self.registers = registers
        self.exits = dict.fromkeys(Leaving, 0)  # how often it was left, and why

    @property
    def is_alive(self) -> bool:
        return self.board.ended is None and self.cpu.is_on

    def ready_at(self, now: int) -> int | None:
        """The cycle from which it executes; None if nothing will have it go on."""
        if not self.is_alive:
            return None
        self.cpu.look_at_timers()
        due = self.cpu.due_cycle if self.cpu.waits else now
        return None if due is None else max(due, now)


class Hypervisor:
    """The software of a machine with one CPU: guests, and whose slice it is."""

    def __init__(
        self, hardware: Hardware, images: Sequence[GuestImage], world: World, observers: Observers, slice_cycles: int
    ) -> None:
        """Guests share RAM evenly. NotBootable: what does not fit. ValueError: a machine that cannot carry them."""
        if len(hardware.cpus) != 1 or hardware.config.isa != "aarch64":
            raise ValueError("guests share one AArch64 CPU")
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
        if each < TWO_MIB or each * (len(images) - 1) > RAM_BASE:
            raise NotBootable(f"{hardware.config.memory_bytes} bytes of RAM for {len(images)} guests")
        at_reset = self._core.save_state()
        guests = []
        for number, image in enumerate(images):
            self._core.restore_state(at_reset)
            own = GuestHardware(hardware, GuestRam(hardware.memory, number * each >> FRAME_SHIFT, each))
            board = Virt(own, image.boot, image.outside, [image.pmu])
            guests.append(Guest(number, board, board.cpus[0].tables, self._core.save_state()))
        return guests

    # ---- as Software

    @property
    def next_turn(self) -> Callable[[], Turn | None]:
        return self._next_turn

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        return {reason: partial(self._answer, reason) for reason in self.guests[0].board.answers}

    def _next_turn(self) -> Turn | None:
        core = self._core
        while self.ended is None:
            if self._limits.reached:
                self.ended = Ended.LIMIT
                break
            guest = self._loaded if self._loaded is not None and core.owes_exit else self._chosen()
            if guest is None:
                break
            self._run(guest)
            guest.cpu.look_at_interrupts(core.cycles)  # others, asked when they are ready, have set the line
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
        why = LEFT_FOR.get(reason)
        if reason is ExitReason.OVERFLOW and self._world.host_interrupt():
            self._exit(Leaving.OVERFLOW)
            self._world.handle_interrupt()
        elif reason is ExitReason.EXCEPTION and guest.cpu.calls_firmware:
            self._exit(Leaving.CALL)
        elif why is not None:
            self._exit(why)
        self._enter(guest)  # what it was left for is done for it, and retires there
        guest.board.answers[reason](cpu)

    # ---- the worlds

    def _run(self, guest: Guest) -> None:
        """It has the CPU, and runs."""
        loaded = self._loaded
        if loaded is not guest or self._core.cycles >= self._slice_end:
            if not self._core.owes_exit:
                self._exit(Leaving.SLICE)
            self._slice_end = self._core.cycles + self._slice_cycles
        if loaded is not guest:
            self._leave()
            self._core.restore_state(guest.registers)
            self._core.change_guest(guest.tables)
            self._loaded = guest
            guest.cpu.debug.come_back()
            self._world.scheduled(None, guest.number)
        self._enter(guest)

    def _leave(self) -> None:
        """Nobody has the CPU."""
        guest = self._loaded
        if guest is None:
            return
        self._exit(Leaving.SLICE)
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
