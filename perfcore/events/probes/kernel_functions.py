"""Functions of the kernel that the modelled one has as moments: where they are said to be, and their parameters.

Nothing is at these addresses. Parameters that are objects of the kernel's are known where their contents are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from emulator.linux.syscalls.table import load
from perfcore.abi.syscall_tracepoints import defined_name

_TEXT = {"x86_64": 0xFFFF_FFFF_8100_0000, "aarch64": 0xFFFF_8000_8000_0000}
_SYSCALL = {"x86_64": "__x64_sys_", "aarch64": "__arm64_sys_"}
_APART = 64  # bytes


class KernelFunction(NamedTuple):
    """One function."""

    name: str
    parameters: tuple[str, ...] = ()  # the first ones, as long as they are known; "" for one that is not
    returns: bool = False  # whether it is known when it returns, and what
    call: int | None = None  # the number of a system call


_OTHERS = (
    KernelFunction("do_exit", ("code",)),
    KernelFunction("do_sys_openat2", ("dfd", "filename", "how"), returns=True),
    KernelFunction("finish_task_switch"),
    KernelFunction("handle_mm_fault", ("", "address")),
    KernelFunction("ksys_read", ("fd", "buf", "count"), returns=True),
    KernelFunction("ksys_write", ("fd", "buf", "count"), returns=True),
    KernelFunction("sched_fork", ("clone_flags",)),
    KernelFunction("try_to_wake_up"),
    KernelFunction("wake_up_new_task"),
)
# What timers call, of which tracepoints tell. They are no moments: nobody can probe them.
_OF_TIMERS = (
    "alarmtimer_fired",
    "dl_task_timer",
    "hrtimer_wakeup",
    "inactive_task_timer",
    "it_real_fn",
    "posix_timer_fn",
    "timerfd_tmrproc",
)


class KernelFunctions:
    """Of one ISA; listed when somebody first asks."""

    def __init__(self, isa: str) -> None:
        self._isa = isa

    @cached_property
    def by_name(self) -> Mapping[str, KernelFunction]:
        """In the order of their addresses."""
        found = list(_OTHERS)
        for row in load():
            number = row.number(self._isa)
            if number is not None:
                name = _SYSCALL[self._isa] + defined_name(row, self._isa)
                found.append(KernelFunction(name, ("regs",), returns=True, call=number))
        return {function.name: function for function in sorted(found)}

    @cached_property
    def addresses(self) -> Mapping[str, int]:
        """Of functions, and of the text's ends."""
        first = _TEXT[self._isa]
        names = ("_text", "_stext", *self.by_name, *_OF_TIMERS, "_etext")
        return {name: first + _APART * number for number, name in enumerate(names)}

    def find(self, address: int) -> tuple[KernelFunction, int] | None:
        """The one that an address is in, and how far."""
        for name, function in self.by_name.items():
            offset = address - self.addresses[name]
            if 0 <= offset < _APART:
                return function, offset
        return None

    def kallsyms(self) -> str:
        return "".join(f"{address:016x} T {name}\n" for name, address in self.addresses.items())

    def names(self) -> str:
        """available_filter_functions"""
        return "".join(f"{name}\n" for name in self.by_name)
