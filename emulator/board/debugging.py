"""Debugged: a board under a debugger, as the software that a machine carries: it stops where the debugger wants, and
nothing that its guest does, counts or takes in time is different.

All CPUs stop at once, between two instructions of one of them: the others are where their turns have left them. Turns
are as without a debugger: a stop ends none. While one CPU steps, others execute when it is their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Generic, Protocol, TypeVar

from emulator._native import GuestPageTables, PhysicalMemory
from emulator.board.board import PAGE_SHIFT, Board, BoardProcessor, Ended
from emulator.board.last_exceptions import Taken
from emulator.board.stops import Place, Stops, Watched
from emulator.cpu import Cpu, ExitReason
from emulator.machine import Turn
from emulator.probes import Probe

PAGE_BYTES = 1 << PAGE_SHIFT


class Why(Enum):
    """... the board stands still."""

    START = "nothing has been executed"
    BREAKPOINT = "at a breakpoint"
    WATCHPOINT = "at an access to what is watched"
    STEP = "an instruction has been executed"
    ASKED = "the debugger has asked for it"


@dataclass(frozen=True, slots=True)
class Stop:
    cpu: int
    why: Why
    watched: Watched | None = None
    address: int = 0  # that is about to be accessed


class Debugger(Protocol):
    """Who looks at a board that stands still."""

    def stopped(self, stop: Stop) -> None:
        """Returns when the board is to go on: it has said `Debugged.resume` then."""

    def look(self) -> bool:
        """The board runs: whether it is to stop. Asked after `Debugged.want_look`."""


class DebuggedCpu(BoardProcessor, Protocol):
    """A CPU of a board, as far as debuggers care."""

    tables: GuestPageTables

    @property
    def debug(self) -> Stops: ...

    @property
    def last_exceptions(self) -> Exceptions: ...


class Exceptions(Protocol):
    @property
    def rows(self) -> Sequence[Taken]: ...


Cpus = TypeVar("Cpus", bound=DebuggedCpu)


@dataclass(slots=True)
class _Step:
    """One instruction of a CPU, from there."""

    place: Place
    retired: int
    interrupted: bool = False  # an interrupt came first: what it does is over when the CPU is back at the place


class Debugged(Generic[Cpus]):
    """A board, for Machine, with a debugger."""

    def __init__(self, board: Board[Cpus], memory: PhysicalMemory, ram_base: int, debugger: Debugger) -> None:
        self.board = board
        self.cpus = board.cpus
        self._memory, self._ram_base = memory, ram_base
        self._debugger = debugger
        self._started = False
        self._look_wanted = False
        self._steps: dict[int, _Step] = {}
        self._breakpoints: set[int] = set()
        self._watchpoints: list[Watched] = []
        self._removed: set[int] = set()  # breakpoints, since the last resumption

    # ---- as a machine's software

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        return {reason: partial(self._answer, reason, answer) for reason, answer in self.board.answers.items()}

    @property
    def next_turn(self) -> Callable[[], Turn | None]:
        return self._next_turn

    def _next_turn(self) -> Turn | None:
        if not self._started:
            self._started = True
            self._stop(Stop(0, Why.START))
        turn = None if self.board.ended else self.board.next_turn()
        if turn is None or not self._look_wanted or turn[0].core.owes_exit:
            return turn
        self._look_wanted = False
        if self._debugger.look():
            self._stop(Stop(turn[0].number, Why.ASKED))
        return None if self.board.ended else turn

    def _answer(self, reason: ExitReason, answer: Callable[[Cpu], None], cpu: Cpu) -> None:
        board_cpu = self.cpus[cpu.number]
        place = cpu.core.pc
        if reason is ExitReason.BREAKPOINT and board_cpu.debug.hits_outside_breakpoint:
            self._at_breakpoint(board_cpu)
        elif reason is ExitReason.WATCHPOINT and (hit := board_cpu.debug.outside_hit) is not None:
            self._stop(Stop(cpu.number, Why.WATCHPOINT, hit, cpu.core.fault_address))
        if self.board.ended:
            return
        if cpu.core.pc == place or reason not in (ExitReason.BREAKPOINT, ExitReason.WATCHPOINT):
            answer(cpu)
        step = self._steps.get(cpu.number)
        if step is not None and not step.interrupted and not cpu.core.owes_exit:
            self._look_at_step(board_cpu, step, reason)

    def _at_breakpoint(self, cpu: Cpus) -> None:
        number = cpu.cpu.number
        step = self._steps.get(number)
        if step is not None and step.interrupted and step.place == cpu.debug.place:
            self._begin_step(cpu)  # which had passed this place
        elif cpu.debug.pc in self._breakpoints | self._removed:
            self._stop(Stop(number, Why.BREAKPOINT))

    def _look_at_step(self, cpu: Cpus, step: _Step, reason: ExitReason) -> None:
        core = cpu.core
        retired = core.total(Probe.INST_RETIRED)
        if (cpu.debug.pc, retired) == (step.place.pc, step.retired):
            return
        if cpu.debug.came_by_interrupt(reason, step.place, retired > step.retired):
            step.interrupted = True
            core.set_steps(False)
            self._tell_breakpoints()
        else:
            self._stop(Stop(cpu.cpu.number, Why.STEP))

    def _begin_step(self, cpu: Cpus) -> None:
        self._steps[cpu.cpu.number] = _Step(cpu.debug.place, cpu.core.total(Probe.INST_RETIRED))
        cpu.core.set_steps(True)

    def _stop(self, stop: Stop) -> None:
        for number in self._steps:
            self.cpus[number].core.set_steps(False)
        self._steps.clear()
        self._removed.clear()
        self._debugger.stopped(stop)

    # ---- what a debugger wants

    def want_look(self) -> None:
        """Ask `Debugger.look` soon, within some ten milliseconds of executing. Other threads may call it."""
        self._look_wanted = True
        for cpu in self.cpus:
            cpu.core.request_return()

    def resume(self, steps: set[int] | None = None, alone: bool = False) -> None:
        """To go on when `stopped` returns: these CPUs for one instruction, and all that is their turn until then.

        `alone`: others may meet breakpoints that were taken away for the step.
        """
        for number in steps or ():
            self._begin_step(self.cpus[number])
        if not alone:
            self._removed.clear()
        self._tell_breakpoints()

    def _tell_breakpoints(self) -> None:
        for number, cpu in enumerate(self.cpus):
            step = self._steps.get(number)
            addresses = self._breakpoints | (self._removed if step is None else set())
            cpu.debug.break_outside(addresses | ({step.place.pc} if step is not None and step.interrupted else set()))

    def set_breakpoint(self, address: int) -> None:
        """At a virtual address, of whatever address space and level, on all CPUs; from the resumption on."""
        self._breakpoints.add(address)
        self._removed.discard(address)

    def clear_breakpoint(self, address: int) -> None:
        if address in self._breakpoints:
            self._breakpoints.discard(address)
            self._removed.add(address)

    def watch(self, watched: list[Watched]) -> None:
        """These addresses, and no others, on all CPUs."""
        self._watchpoints = list(watched)
        for cpu in self.cpus:
            cpu.debug.watch_outside(self._watchpoints)

    @property
    def watched(self) -> list[Watched]:
        return list(self._watchpoints)

    def forget(self) -> None:
        """The debugger has gone: no breakpoints, no watchpoints."""
        self._breakpoints.clear()
        self.watch([])
        self.resume()

    def kill(self) -> None:
        self.board.end(Ended.KILLED)

    # ---- memory

    def read(self, cpu: int, address: int, size: int) -> bytes:
        """As that CPU's tables have it at its present level, up to the first byte that is not in RAM."""
        tables = self.cpus[cpu].tables
        data = tables.read(address, size)
        if isinstance(data, int):
            data = tables.read(address, data - address) if data > address else b""
        assert isinstance(data, bytes), "up to there it is present"
        return data

    def write(self, cpu: int, address: int, data: bytes) -> bool:
        """Whether all of it is in RAM; else nothing is written."""
        size = len(data)
        if len(self.read(cpu, address, size)) != size:
            return False
        return self.cpus[cpu].tables.write(address, data) == size

    def read_physical(self, address: int, size: int) -> bytes:
        start = address - self._ram_base
        end = min(start + size, self._memory.size_bytes)
        if start < 0 or start >= end:
            return b""
        first, last = start >> PAGE_SHIFT, end - 1 >> PAGE_SHIFT
        within = start - first * PAGE_BYTES
        return bytes(self._memory.view(first, last - first + 1)[within : within + end - start])

    def write_physical(self, address: int, data: bytes) -> bool:
        if len(self.read_physical(address, len(data))) != len(data):
            return False
        at = address - self._ram_base
        while data:
            room = PAGE_BYTES - at % PAGE_BYTES
            self._memory.write(at >> PAGE_SHIFT, at % PAGE_BYTES, data[:room])
            at, data = at + room, data[room:]
        return True
