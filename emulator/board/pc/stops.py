"""PcStops: where an x86-64 CPU stops for a debugger outside, and where it is. Its guest sees nothing of that.

There are no watchpoints: the core does not say what an instruction is about to access.
"""

from __future__ import annotations

from collections.abc import Collection

from emulator._native import GuestPageTables
from emulator.board.stops import Place, Watched
from emulator.cpu import Cpu, ExitReason, Level
from emulator.x86_64_system import SegmentField, SegmentRegister, SystemRegister, segment

RSP, WORD = 7, 0xFFFF_FFFF
LONG_CODE = 1 << 13  # attributes
LONG_MODE = 1 << 10  # EFER.LMA


class PcStops:
    """emulator.board.stops.Stops."""

    watches = False
    outside_hit: Watched | None = None

    def __init__(self, cpu: Cpu, tables: GuestPageTables) -> None:
        self._core, self._tables = cpu.core, tables
        self._outside_breakpoints: set[int] = set()
        self._watched_code: set[int] = set()  # ... of who only looks
        self._set: set[int] = set()  # breakpoints that the core has

    @property
    def pc(self) -> int:
        """Outside of 64-bit mode RIP counts from where the code segment begins."""
        read, rip = self._core.read_kernel_register, self._core.pc
        is_long = read(SystemRegister.EFER) & LONG_MODE
        if is_long and read(segment(SegmentRegister.CS, SegmentField.ATTRIBUTES)) & LONG_CODE:
            return rip
        return rip + read(segment(SegmentRegister.CS, SegmentField.BASE)) & WORD

    @property
    def place(self) -> Place:
        core = self._core
        is_user = core.level == Level.USER
        tables = core.read_kernel_register(SystemRegister.CR3) if is_user else 0
        return Place(self.pc, core.read_register(RSP), core.level, tables)

    @property
    def hits_outside_breakpoint(self) -> bool:
        return self.pc in self._outside_breakpoints

    @property
    def hits_watched_code(self) -> bool:
        return self.pc in self._watched_code

    def break_outside(self, addresses: set[int]) -> None:
        self._outside_breakpoints = set(addresses)
        self._tell_breakpoints()

    def watch_code(self, addresses: Collection[int]) -> None:
        """Who only looks is told before an instruction there executes, instead of those before."""
        self._watched_code = set(addresses)
        self._tell_breakpoints()

    def _tell_breakpoints(self) -> None:
        wanted = self._outside_breakpoints | self._watched_code
        for address in self._set - wanted:
            self._tables.clear_breakpoint(address)
        for address in wanted - self._set:
            self._tables.set_breakpoint(address)
        self._set = wanted

    def watch_outside(self, watched: list[Watched]) -> None:
        assert not watched, "they are refused"

    def came_by_interrupt(self, reason: ExitReason, before: Place, has_retired: bool) -> bool:
        """The board takes it, between two instructions."""
        return reason is ExitReason.INTERRUPT and not has_retired
