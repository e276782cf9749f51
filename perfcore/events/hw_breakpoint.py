"""What a hardware breakpoint may be on each ISA, and how many there may be: hw_breakpoint.c of Linux 6.12.

kernel/events/hw_breakpoint.c (slots) and hw_breakpoint_arch_parse() of arch/x86/kernel and arch/arm64/kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from emulator.linux.debug_registers import (
    HW_BREAKPOINT_R,
    HW_BREAKPOINT_RW,
    HW_BREAKPOINT_W,
    HW_BREAKPOINT_X,
)
from emulator.linux.errors import EINVAL, ENOSPC, EOPNOTSUPP, LinuxError

ADDRESSES = 1 << 64
_LONG_BYTES = 8


class Watched(NamedTuple):
    """As an attr asks for it (bp_addr, bp_len, bp_type), or as debug registers have it: bytes, or an instruction."""

    address: int
    length: int
    type: int

    def __str__(self) -> str:
        return f"bp_type {self.type}, bp_addr {self.address:#x}, bp_len {self.length}"


def _parse_x86(asked: Watched, of_task: bool, task_size: int) -> Watched:
    """x86-64: an instruction, or 1, 2, 4 or 8 aligned bytes that are written, or read or written."""
    last = (asked.address + asked.length - 1) % ADDRESSES
    if last < asked.address:
        raise LinuxError(EINVAL, f"{asked}: beyond the last address")
    if asked.type == HW_BREAKPOINT_X:
        if asked.length != _LONG_BYTES:
            raise LinuxError(EINVAL, f"{asked}: of an instruction bp_len is {_LONG_BYTES}, sizeof(long)")
        return Watched(asked.address, 1, asked.type)
    if asked.type not in (HW_BREAKPOINT_W, HW_BREAKPOINT_RW):
        raise LinuxError(EINVAL, f"{asked}: x86-64 has types W (2), RW (3) and X (4)")
    if not asked.length or asked.length & (asked.length - 1) or asked.address % asked.length:
        raise LinuxError(EINVAL, f"{asked}: the bytes must be 1, 2, 4 or 8, and aligned")
    if asked.length > _LONG_BYTES:  # AMD's address masks: X86_FEATURE_BPEXT
        raise LinuxError(EOPNOTSUPP, f"{asked}: this CPU watches at most {_LONG_BYTES} bytes")
    return Watched(asked.address, asked.length, asked.type)


def _parse_aarch64(asked: Watched, of_task: bool, task_size: int) -> Watched:
    """AArch64: an instruction, or 1 to 8 bytes of one doubleword (Byte Address Select)."""
    if asked.type not in (HW_BREAKPOINT_R, HW_BREAKPOINT_W, HW_BREAKPOINT_RW, HW_BREAKPOINT_X):
        raise LinuxError(EINVAL, f"{asked}: the types are R (1), W (2), RW (3) and X (4)")
    if not 1 <= asked.length <= _LONG_BYTES:
        raise LinuxError(EINVAL, f"{asked}: bp_len must be 1 to {_LONG_BYTES}")
    if of_task and asked.address >= task_size:
        raise LinuxError(EINVAL, f"{asked}: a task has no breakpoints in the kernel")
    if asked.type == HW_BREAKPOINT_X:  # whatever bp_len is
        return Watched(asked.address & ~3, 4, asked.type)
    if asked.address % _LONG_BYTES + asked.length > _LONG_BYTES:
        raise LinuxError(EINVAL, f"{asked}: the bytes must lie in one aligned doubleword")
    return Watched(asked.address, asked.length, asked.type)


class DebugHardware(NamedTuple):
    """An ISA's: what fits into its registers, and how many of them a CPU has."""

    parse: Callable[[Watched, bool, int], Watched]
    breakpoints: int
    watchpoints: int
    shared: bool  # one kind of registers for both
    reaches_kernel: bool  # accesses of the kernel to what a task watches are hits, too


HARDWARE = {
    # Intel SDM vol. 3, "Debug Registers": DR0 to DR3
    "x86_64": DebugHardware(_parse_x86, 4, 4, shared=True, reaches_kernel=True),
    # ID_AA64DFR0_EL1.BRPs and WRPs, each less one, of the cores here: 6 and 4 (as emulator.board.debug_unit has them).
    # Those of tasks are for EL0 alone.
    "aarch64": DebugHardware(_parse_aarch64, 6, 4, shared=False, reaches_kernel=False),
}


class _Slot(NamedTuple):
    target: Hashable | None  # the task; None: all that the CPU does
    cpu: int  # -1: all


class Slots:
    """Which are reserved. All breakpoints are pinned: whoever has one has it whenever it runs (__reserve_bp_slot)."""

    def __init__(self, hardware: DebugHardware, cpus: Iterable[int], factor: int = 1) -> None:
        """`factor` times as many as there are."""
        self._cpus = tuple(cpus)
        self._shared = hardware.shared
        self._most = {True: factor * hardware.breakpoints, False: factor * hardware.watchpoints}
        self._reserved: dict[Hashable, tuple[_Slot, bool]] = {}  # by who has it; whether it is for an instruction

    def available(self, type: int) -> int:
        """Of a CPU, for that type."""
        return self._most[bool(type & HW_BREAKPOINT_X)]

    def reserve(self, holder: Hashable, target: Hashable | None, cpu: int, type: int) -> None:
        """For `holder`, in place of the one that it has. ENOSPC."""
        slot, of_code = _Slot(target, cpu), bool(type & HW_BREAKPOINT_X)
        others = [
            each for who, (each, kind) in self._reserved.items() if who != holder and (self._shared or kind == of_code)
        ]
        cpus = self._cpus if cpu == -1 else (cpu,)
        in_use = max(self._in_use(others, target, number) for number in cpus)
        most = self._most[of_code]
        if in_use >= most:
            raise LinuxError(ENOSPC, f"all {most} slots for that type of breakpoint are reserved")
        self._reserved[holder] = slot, of_code

    def _in_use(self, slots: list[_Slot], target: Hashable | None, cpu: int) -> int:
        """max_bp_pinned_slots(): the CPU's own, and the task's; for one of the CPU's own, of the task with most."""
        here = [slot for slot in slots if slot.cpu in (-1, cpu)]
        own = sum(slot.target is None for slot in here)
        by_task: dict[Hashable, int] = {}
        for slot in here:
            if slot.target is not None:
                by_task[slot.target] = by_task.get(slot.target, 0) + 1
        return own + (max(by_task.values(), default=0) if target is None else by_task.get(target, 0))

    def release(self, holder: Hashable) -> None:
        """Whether or not it has one."""
        self._reserved.pop(holder, None)
