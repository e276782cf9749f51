"""PcStops: where an x86-64 CPU stops: at what its guest's debug registers say, and for a debugger outside, of which the
guest sees nothing; and where it is.

Intel SDM vol. 3, "Debug, Branch Profile, TSC...", "Debug Registers". Data breakpoints are traps: the core stops behind
the instruction, and takes the guest's exception itself. Those of instructions are faults, and are taken here.
"""

from __future__ import annotations

from collections.abc import Collection

from emulator._native import GuestPageTables
from emulator.arch.debug_control import ACCESSED, EXECUTED, STORED, condition, is_enabled
from emulator.board.stops import EVERYONE, Place, Watched
from emulator.cpu import Cpu, ExitReason, Level
from emulator.x86_64_system import SegmentField, SegmentRegister, SystemRegister, segment

RSP, WORD = 7, 0xFFFF_FFFF
LONG_CODE = 1 << 13  # attributes
LONG_MODE = 1 << 10  # EFER.LMA
DEBUG = 1  # vector
ADDRESSES = SystemRegister.DR0, SystemRegister.DR1, SystemRegister.DR2, SystemRegister.DR3
HITS = 0xF  # of DR6: B0 to B3
ACCESSES = {STORED: 2, ACCESSED: 3}  # as Watched has them
NOT_GUESTS = -1


class PcStops:
    """emulator.board.stops.Stops."""

    def __init__(self, cpu: Cpu, tables: GuestPageTables) -> None:
        self._core, self._tables = cpu.core, tables
        self._outside_breakpoints: set[int] = set()
        self._watched_code: set[int] = set()  # ... of who only looks
        self._breakpoints: dict[int, int] = {}  # the guest's: address -> bits of DR6
        self._set: set[int] = set()  # breakpoints that the core has
        self._watchpoints: list[tuple[int, Watched]] = []  # the guest's, with their numbers; first in the core
        self._outside: list[Watched] = []

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
        wanted = self._outside_breakpoints | self._watched_code | self._breakpoints.keys()
        for address in self._set - wanted:
            self._tables.clear_breakpoint(address)
        for address in wanted - self._set:
            self._tables.set_breakpoint(address)
        self._set = wanted

    def watch_outside(self, watched: list[Watched]) -> None:
        self._outside = list(watched)
        self._tell_watchpoints()

    def leave(self) -> None:
        """Another guest gets the core: nothing stops it there."""
        self._core.set_watchpoints([])

    def come_back(self) -> None:
        """... and its own guest again."""
        self._tell_watchpoints()

    def _tell_watchpoints(self) -> None:
        self._core.set_watchpoints(
            [
                (each.address, each.size, each.accesses, each.levels, EVERYONE, False, number)
                for number, each in [*self._watchpoints, *((NOT_GUESTS, each) for each in self._outside)]
            ]
        )

    @property
    def outside_hit(self) -> Watched | None:
        """After WATCHPOINT: which of the debugger's it was."""
        hits = self._core.watchpoint_hits >> len(self._watchpoints)
        return self._outside[(hits & -hits).bit_length() - 1] if hits else None

    # ---- the guest's debug registers

    def apply(self) -> None:
        """What they say holds from now on."""
        read = self._core.read_kernel_register
        control = read(SystemRegister.DR7)
        breakpoints: dict[int, int] = {}
        watchpoints = []
        for number, register in enumerate(ADDRESSES):
            if not is_enabled(control, number):
                continue
            kind, size = condition(control, number)
            address = read(register) & -size
            if kind == EXECUTED:
                breakpoints[address] = breakpoints.get(address, 0) | 1 << number
            elif kind in ACCESSES:
                watchpoints.append((number, Watched(address, size, ACCESSES[kind])))
        if breakpoints != self._breakpoints:
            self._breakpoints = breakpoints
            self._tell_breakpoints()
        if watchpoints != self._watchpoints:
            self._watchpoints = watchpoints
            self._tell_watchpoints()

    def answer_breakpoint(self) -> None:
        """The guest's exception, if it is one of its own."""
        hits = self._breakpoints.get(self.pc, 0)
        if hits:
            core = self._core
            status = core.read_kernel_register(SystemRegister.DR6) & ~HITS
            core.write_kernel_register(SystemRegister.DR6, status | hits)
            core.take_exception(DEBUG)

    def came_by_interrupt(self, reason: ExitReason, before: Place, has_retired: bool) -> bool:
        """The board takes it, between two instructions."""
        return reason is ExitReason.INTERRUPT and not has_retired
