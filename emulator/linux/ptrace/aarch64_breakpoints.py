"""NT_ARM_HW_BREAK and NT_ARM_HW_WATCH: an AArch64 task's hardware breakpoints as its tracer writes them.

As arch/arm64/kernel/ptrace.c. Each slot is an address and a control word as DBGBCR<n>_EL1 and DBGWCR<n>_EL1 have it. A
hit comes again as long as the breakpoint is there: who traces takes it away, steps, and puts it back.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import NamedTuple

from emulator.cpu import Cpu
from emulator.linux.debug_registers import HW_BREAKPOINT_RW, HW_BREAKPOINT_X
from emulator.linux.errors import EINVAL, ENOSPC, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.signals.signal import SIGTRAP, TRAP_HWBKPT, SignalInfo
from emulator.linux.signals.signal_delivery import force
from emulator.linux.user_breakpoints import Place, UserBreakpoint

DEBUG_ARCHITECTURE = 6  # ID_AA64DFR0_EL1.DebugVer: Armv8
MOST = 16  # of each kind, in struct user_hwdebug_state
_HEAD, _ADDRESS, _CONTROL = struct.Struct("<II"), struct.Struct("<Q"), struct.Struct("<I")
_SLOT = struct.Struct("<QI4x")
SIZE = _HEAD.size + MOST * _SLOT.size
_USER = 2  # DBGBCR<n>_EL1.PMC, DBGWCR<n>_EL1.PAC: EL0


class Kind(NamedTuple):
    """Of one register set."""

    types: int  # HW_BREAKPOINT_* that a slot may have, and has at first
    alignment: int  # bytes: of the address that the register holds


INSTRUCTIONS = Kind(HW_BREAKPOINT_X, 4)
DATA = Kind(HW_BREAKPOINT_RW, 8)


class _Slots:
    """thread.debug.hbp_break or hbp_watch: each that was ever written holds a slot of the CPU's, enabled or not."""

    def __init__(self, task: Task, kind: Kind) -> None:
        self._task = task
        self._kind = kind
        self._breakpoints: dict[int, UserBreakpoint] = {}

    def read(self, number: int) -> tuple[int, int]:
        """Address and control: encode_ctrl_reg()."""
        found = self._breakpoints.get(number)
        if found is None:
            return 0, 0
        place, alignment = found.place, self._kind.alignment
        length = 4 if place.type == HW_BREAKPOINT_X else place.length
        select = ((1 << length) - 1 << place.address % alignment) & 0xFF
        kind = 0 if place.type == HW_BREAKPOINT_X else place.type
        return place.address & -alignment, select << 5 | kind << 3 | _USER << 1 | (not place.disabled)

    def write_address(self, number: int, address: int) -> None:
        """ptrace_hbp_set_addr()"""
        breakpoint = self._breakpoint(number)
        breakpoint.modify(breakpoint.place._replace(address=address))

    def write_control(self, number: int, control: int) -> None:
        """ptrace_hbp_set_ctrl()"""
        breakpoint = self._breakpoint(number)
        place = breakpoint.place._replace(disabled=not control & 1)
        breakpoint.modify(place if place.disabled else self._selected(place, control))

    def _selected(self, place: Place, control: int) -> Place:
        """arch_bp_generic_fields(): what Byte Address Select says, and LSC."""
        select = control >> 5 & 0xFF
        first = (select & -select).bit_length() - 1
        length = select.bit_count()
        type = control >> 3 & 3 or HW_BREAKPOINT_X
        if not select or select >> first != (1 << length) - 1 or type & self._kind.types != type:
            raise LinuxError(EINVAL, f"control {control:#x}: its bytes must be in one run, and its kind the set's")
        return place._replace(address=place.address + first, length=length, type=type)

    def _breakpoint(self, number: int) -> UserBreakpoint:
        """ptrace_hbp_create()"""
        found = self._breakpoints.get(number)
        if found is None:
            kernels = self._task.kernel.user_breakpoints
            if kernels is None:
                raise LinuxError(ENOSPC, "there are no hardware breakpoints without perf events")
            hit = partial(_hit, self._task, self._kind)
            found = kernels.register(self._task, Place(0, 4, self._kind.types, disabled=True), hit)
            self._breakpoints[number] = found
        return found

    def flush(self) -> None:
        for breakpoint in self._breakpoints.values():
            breakpoint.unregister()
        self._breakpoints.clear()


def _hit(task: Task, kind: Kind, cpu: Cpu) -> None:
    """ptrace_hbptriggered(): nobody steps over it."""
    core = cpu.core
    if kind is INSTRUCTIONS:
        address = core.pc
        core.pass_breakpoint(None)
    else:
        address = core.fault_address
        core.pass_access(None)
    force(task, SignalInfo(SIGTRAP, TRAP_HWBKPT, address))


class TaskBreakpoints:
    """Both kinds, of one task."""

    def __init__(self, task: Task) -> None:
        self._of = {kind: _Slots(task, kind) for kind in (INSTRUCTIONS, DATA)}

    def __getitem__(self, kind: Kind) -> _Slots:
        return self._of[kind]

    def flush(self) -> None:
        for slots in self._of.values():
            slots.flush()


def breakpoints(task: Task) -> TaskBreakpoints:
    """Those of a task, which stay with it whoever traces it."""
    if not isinstance(task.ptrace_breakpoints, TaskBreakpoints):
        task.ptrace_breakpoints = TaskBreakpoints(task)
    return task.ptrace_breakpoints


def read(task: Task, kind: Kind, available: int) -> bytes:
    """hw_break_get(): how many there are (`available`), and all slots."""
    slots = breakpoints(task)[kind]
    head = _HEAD.pack(DEBUG_ARCHITECTURE << 8 | available, 0)
    return head + b"".join(_SLOT.pack(*slots.read(number)) for number in range(MOST))


def write(task: Task, kind: Kind, data: bytes) -> None:
    """hw_break_set(): slot by slot, as far as `data` goes; what is before one that cannot be stays."""
    slots = breakpoints(task)[kind]
    for number, start in enumerate(range(_HEAD.size, len(data), _SLOT.size)):
        slot = data[start : start + _SLOT.size]
        if len(slot) < _ADDRESS.size:
            raise LinuxError(EINVAL, f"{len(slot)} bytes of an address")
        slots.write_address(number, *_ADDRESS.unpack_from(slot))
        if len(slot) >= _ADDRESS.size + _CONTROL.size:
            slots.write_control(number, *_CONTROL.unpack_from(slot, _ADDRESS.size))
