"""Registers: what an ISA adds to ptrace(2): which registers a tracer sees, and how system calls show in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from emulator._native import Core
from emulator.linux.errors import ERESTARTNOHAND, ERESTARTSYS
from emulator.linux.process.task import Task
from emulator.linux.process.tracee import Tracee
from emulator.linux.signals.signal import SA_RESTART, Interrupted, SignalAction

RESTARTS = (-ERESTARTSYS, -ERESTARTNOHAND)


@dataclass(frozen=True, slots=True)
class RegisterSet:
    """One that PTRACE_GETREGSET names. `write` gets as many bytes as there are in the set, or as a tracer gives."""

    size: int  # bytes, of which a tracer may ask for fewer
    unit: int  # bytes of each register: the tracer's buffer is a multiple of it
    read: Callable[[Core, Task, Tracee], bytes]
    write: Callable[[Core, Task, Tracee, bytes], None]  # raises LinuxError
    whole: bool = True  # what a tracer does not give is as it was


class Restart(Protocol):
    """What becomes of a call that was interrupted, seen as the ISA's kernel shows it to tracers meanwhile."""

    def settle(self, core: Core, action: SignalAction | None) -> None:
        """A handler is entered, or (None) the task goes on without."""


class TracedRegisters(Protocol):
    """One ISA."""

    register_sets: dict[int, RegisterSet]  # by NT_*

    def enter_call(self, core: Core) -> None:
        """What the kernel's entry does to registers before anybody looks."""

    def before_call(self, tracee: Tracee) -> int:
        """What the result's register had before the call was made."""

    def mark_stop(self, core: Core, entry: bool) -> int:
        """How a tracer can tell a call's entry from its exit; what `unmark_stop` needs."""

    def unmark_stop(self, core: Core, kept: int) -> None: ...

    def restart(self, core: Core, tracee: Tracee, interrupted: Interrupted | None) -> Restart:
        """On the way back to user mode."""

    def peek_user(self, core: Core, task: Task, tracee: Tracee, address: int) -> int:
        """PTRACE_PEEKUSER. Raises LinuxError."""

    def poke_user(self, core: Core, task: Task, tracee: Tracee, address: int, value: int) -> None:
        """PTRACE_POKEUSER. Raises LinuxError."""


def starts_again(code: int, action: SignalAction | None) -> bool:
    """Whether a call that was interrupted is made again; else it has failed with EINTR. `action`: of the handler."""
    return action is None or (code == -ERESTARTSYS and bool(action.flags & SA_RESTART))
