"""DebugUnit: a CPU's breakpoints, watchpoints and single steps: those of its guest's debug registers, and those of a
debugger outside, of which the guest sees nothing.

Arm ARM DDI 0487, "AArch64 Self-hosted Debug". The core stops; what becomes of a stop is decided here. Debug exceptions
that are linked to a context (CONTEXTIDR_EL1, VMID) are not modelled, and told so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from emulator._native import GuestPageTables
from emulator.board.stops import EVERYONE, Place, Watched
from emulator.board.syndromes import DEBUG_EVENT, WRITE, WRITE_NOT_READ, ExceptionClass, syndrome
from emulator.cpu import Cpu, ExitReason, Level
from emulator.sysregs import Access, SysReg

BREAKPOINTS, WATCHPOINTS, CONTEXT_BREAKPOINTS = 6, 4, 1  # ID_AA64DFR0_EL1 says so, each less one
MDSCR_EL1, OSLAR_EL1 = SysReg(2, 0, 0, 2, 2), SysReg(2, 0, 1, 0, 4)
OSLSR_EL1, OSDLR_EL1 = SysReg(2, 0, 1, 1, 4), SysReg(2, 0, 1, 3, 4)
SS, KDE, MDE = 1 << 0, 1 << 13, 1 << 15  # MDSCR_EL1: single step, debug exceptions of the kernel's own, and at all
MDSCR_KEPT = SS | 1 << 12 | KDE | MDE
OS_LOCK_THERE, OS_LOCKED = 1 << 3, 1 << 1  # OSLSR_EL1
CONTROL_KEPT = {"B": 0x00FF_E1E7, "W": 0x1F1F_FFFF}  # DBGBCRn_EL1, DBGWCRn_EL1
USER, KERNEL = 1 << Level.USER, 1 << Level.KERNEL
STEP_VALID, STEPPED_EXCLUSIVE = 1 << 24, 1 << 6  # ESR_EL1.ISV, EX
LOAD_EXCLUSIVE_MASK, LOAD_EXCLUSIVE = 0x3FC0_0000, 0x0840_0000
INSTRUCTION_BYTES = 4
ADDRESS = (1 << 64) - 4

STACK_POINTER = 31  # Core.read_register
TTBR0_EL1, VBAR_EL1 = SysReg(3, 0, 2, 0, 0), SysReg(3, 0, 12, 0, 0)
INTERRUPT_VECTORS = 0x80, 0x280, 0x480  # IRQ: from EL1 with SP_EL0, with SP_EL1, from EL0

Take = Callable[[int, int | None], None]


class DebugUnit:
    """Of one CPU. emulator.board.stops.Stops."""

    kept = "_control", "_locked", "_double_locked", "_values", "_controls"

    def __init__(self, cpu: Cpu, tables: GuestPageTables, take: Take, message: Callable[[str], None]) -> None:
        """`take(cause, address)`: the CPU takes an exception to EL1."""
        self._cpu, self._core, self._tables = cpu, cpu.core, tables
        self._take, self._message = take, message
        self._control = 0  # MDSCR_EL1
        self._locked, self._double_locked = True, 0  # as after a reset
        self._values = {kind: [0] * count for kind, count in (("B", BREAKPOINTS), ("W", WATCHPOINTS))}
        self._controls = {kind: [0] * len(values) for kind, values in self._values.items()}
        self._breakpoints: dict[int, int] = {}  # the guest's: address -> levels
        self._watchpoints: list[Watched] = []  # ... in the order that the core has
        self._steps = 0
        self._step_age: int | None = None  # of the step that was under way when another guest got the core
        self._outside: list[Watched] = []
        self._outside_breakpoints: set[int] = set()
        self._watched_code: set[int] = set()  # ... of who only looks
        self._set: set[int] = set()  # breakpoints that the core has
        self._claim()

    def _claim(self) -> None:
        registers = self._cpu.system_registers
        registers.claim(MDSCR_EL1, Access(lambda: self._control, self._set_control))
        registers.claim(OSLAR_EL1, Access(write=self._set_lock))
        registers.claim(OSLSR_EL1, Access(read=lambda: OS_LOCK_THERE | self._locked * OS_LOCKED))
        registers.claim(OSDLR_EL1, Access(lambda: self._double_locked, self._set_double_lock))
        for kind, op2 in (("B", 4), ("W", 6)):
            for number in range(len(self._values[kind])):
                value, control = SysReg(2, 0, 0, number, op2), SysReg(2, 0, 0, number, op2 + 1)
                registers.claim(value, self._access(self._values, kind, number, ADDRESS))
                registers.claim(control, self._access(self._controls, kind, number, CONTROL_KEPT[kind]))

    def _access(self, held: dict[str, list[int]], kind: str, number: int, mask: int) -> Access:
        def write(value: int) -> None:
            held[kind][number] = value & mask
            self.apply()

        return Access(lambda: held[kind][number], write)

    def _set_control(self, value: int) -> None:
        self._control = value & MDSCR_KEPT
        self.apply()

    def _set_lock(self, value: int) -> None:
        self._locked = bool(value & 1)
        self.apply()

    def _set_double_lock(self, value: int) -> None:
        self._double_locked = value & 1
        self.apply()

    # ---- what stops the core

    def break_outside(self, addresses: set[int]) -> None:
        """A debugger's breakpoints are these, at virtual addresses of whatever address space and level."""
        self._outside_breakpoints = set(addresses)
        self._tell_breakpoints()

    def watch_code(self, addresses: Collection[int]) -> None:
        """Who only looks is told before an instruction there executes, instead of those before."""
        self._watched_code = set(addresses)
        self._tell_breakpoints()

    def watch_outside(self, watched: list[Watched]) -> None:
        """... and its watchpoints."""
        self._outside = list(watched)
        self._tell_watchpoints()

    def apply(self) -> None:
        """What the guest's registers say holds from now on."""
        open_ = not (self._locked or self._double_locked)
        enabled = open_ and bool(self._control & MDE)
        breakpoints = dict(self._enabled_breakpoints()) if enabled else {}
        watchpoints = [*self._enabled_watchpoints()] if enabled else []
        if breakpoints != self._breakpoints:
            self._breakpoints = breakpoints
            self._tell_breakpoints()
        if watchpoints or self._watchpoints:  # also when KDE alone has changed
            self._watchpoints = watchpoints
            self._tell_watchpoints()
        steps = self._taken_from if open_ and self._control & SS else 0
        if steps != self._steps:
            self._steps = steps
            self._core.set_guest_steps(steps)

    @property
    def _taken_from(self) -> int:
        """The levels from which debug exceptions come to EL1."""
        return USER | (KERNEL if self._control & KDE else 0)

    def _enabled_breakpoints(self) -> list[tuple[int, int]]:
        found = []
        for number, control in enumerate(self._controls["B"]):
            if not control & 1:
                continue
            if control >> 20 & 0xF:
                self._message(f"DBGBCR{number}_EL1 {control:#x}: breakpoints that depend on contexts are not modelled")
            elif control >> 5 & 0xF:
                address = _extended(self._values["B"][number])
                found.append((address, _levels(control)))
        merged: dict[int, int] = {}
        for address, levels in found:
            merged[address] = merged.get(address, 0) | levels
        return [(address, levels) for address, levels in merged.items() if levels]

    def _enabled_watchpoints(self) -> list[Watched]:
        found = []
        for number, control in enumerate(self._controls["W"]):
            levels = _levels(control)
            if not control & 1 or not levels:
                continue
            if control >> 20 & 1:
                self._message(f"DBGWCR{number}_EL1 {control:#x}: watchpoints that depend on contexts are not modelled")
                continue
            place = _watched_bytes(_extended(self._values["W"][number]), control)
            if place is not None:
                found.append(Watched(*place, control >> 3 & 3, levels))
        return found

    def _tell_breakpoints(self) -> None:
        wanted = self._outside_breakpoints | self._watched_code | self._breakpoints.keys()
        for address in self._set - wanted:
            self._tables.clear_breakpoint(address)
        for address in wanted - self._set:
            self._tables.set_breakpoint(address)
        self._set = wanted

    def leave(self) -> None:
        """Another guest gets the core: nothing stops it there, and the step that is under way stays as it is."""
        self._step_age = self._core.guest_step_age
        self._core.guest_step_age = None
        self._core.set_guest_steps(0)
        self._core.set_watchpoints([])

    def come_back(self) -> None:
        """... and its own guest again."""
        self._core.set_guest_steps(self._steps)
        self._core.guest_step_age = self._step_age
        self._tell_watchpoints()

    def _tell_watchpoints(self) -> None:
        """Those of the guest first."""
        self._core.set_watchpoints(
            [
                *((each.address, each.size, each.accesses, each.levels, self._taken_from, True, -1)
                  for each in self._watchpoints),
                *((each.address, each.size, each.accesses, each.levels, EVERYONE, False, -1) for each in self._outside),
            ]
        )  # fmt: skip

    # ---- where it is

    @property
    def pc(self) -> int:
        return self._core.pc

    @property
    def place(self) -> Place:
        core = self._core
        tables = core.read_kernel_register(TTBR0_EL1.encoding) if core.level == Level.USER else 0
        return Place(core.pc, core.read_register(STACK_POINTER), core.level, tables)

    def came_by_interrupt(self, reason: ExitReason, before: Place, has_retired: bool) -> bool:
        """The core takes it, and executes the first instruction of its handler."""
        vectors = self._core.read_kernel_register(VBAR_EL1.encoding)
        handler = has_retired and self._core.last_retired_pc - vectors in INTERRUPT_VECTORS
        return handler and self._core.last_retired_pc != before.pc

    # ---- what becomes of a stop

    @property
    def hits_outside_breakpoint(self) -> bool:
        """After BREAKPOINT: whether a debugger's is there."""
        return self._core.pc in self._outside_breakpoints

    @property
    def hits_watched_code(self) -> bool:
        return self._core.pc in self._watched_code

    @property
    def outside_hit(self) -> Watched | None:
        """After WATCHPOINT: which of the debugger's it was."""
        hits = self._core.watchpoint_hits >> len(self._watchpoints)
        return self._outside[(hits & -hits).bit_length() - 1] if hits else None

    def answer_breakpoint(self) -> None:
        """The guest's exception, if it is one of its own, and not masked. Else the instruction executes."""
        core = self._core
        level = Level(core.level)
        if not self._breakpoints.get(core.pc, 0) >> level & 1 or not self._taken_from >> level & 1:
            return
        if level == Level.USER or not self._cpu.masks_debug_exceptions:
            self._take(_debug_exception(ExceptionClass.BREAKPOINT, level), None)

    def answer_watchpoint(self) -> None:
        """The guest's exception, if it is one of its own."""
        core = self._core
        if core.watchpoint_hits & (1 << len(self._watchpoints)) - 1:
            writes = WRITE_NOT_READ if core.fault_access == WRITE else 0
            self._take(_debug_exception(ExceptionClass.WATCHPOINT, Level(core.level)) | writes, core.fault_address)

    def answer_step(self) -> None:
        """The guest's software step."""
        core = self._core
        specific = 0
        if core.has_stepped_guest:
            data = self._tables.read(core.last_retired_pc, INSTRUCTION_BYTES)
            word = int.from_bytes(data, "little") if isinstance(data, bytes) else 0
            exclusive = word & LOAD_EXCLUSIVE_MASK == LOAD_EXCLUSIVE
            specific = STEP_VALID | (STEPPED_EXCLUSIVE if exclusive else 0)
        self._take(_debug_exception(ExceptionClass.SOFTWARE_STEP, Level(core.level)) | specific, None)


def _debug_exception(kind: ExceptionClass, level: Level) -> int:
    return syndrome(kind, DEBUG_EVENT) + (level << 26)


def _levels(control: int) -> int:
    """PMC or PAC, HMC, SSC: at which levels, where there are EL1 and EL0 alone. Arm ARM, "Breakpoint execution
    conditions"."""
    if control >> 14 & 0b10:  # SSC: of another security state, or of EL2
        return 0
    privileges = control >> 1 & 3
    return (KERNEL if privileges & 1 else 0) | (USER if privileges & 2 else 0)


def _watched_bytes(value: int, control: int) -> tuple[int, int] | None:
    """The range that MASK or BAS selects: (address, size). None: nothing, or what is reserved."""
    mask, select = control >> 24 & 0x1F, control >> 5 & 0xFF
    if mask:
        return (value & -(1 << mask), 1 << mask) if mask > 2 and select == 0xFF else None
    if value & 4:
        select &= 0xF  # the upper half selects nothing at an address within a doubleword
    if not select:
        return None
    first = (select & -select).bit_length() - 1
    size = (select >> first).bit_length()
    return (value + first, size) if select >> first == (1 << size) - 1 else None


def _extended(value: int) -> int:
    """Of 49 significant bits."""
    return value | ~((1 << 49) - 1) & ADDRESS if value >> 48 & 1 else value & (1 << 49) - 1
