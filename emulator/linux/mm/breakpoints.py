"""Breakpoints: who wants to hear that a task is about to execute an instruction, by its address in one memory."""

from __future__ import annotations

from collections.abc import Callable

from emulator._native import AddressSpace
from emulator.cpu import Cpu

Listener = Callable[[Cpu], None]
"""Gets the CPU, whose PC is the address. The instruction is executed afterwards, whatever the listener has done."""


class Breakpoints:
    """Those of one address space. A fork has none, nor has the space of a new program. They change nothing there."""

    def __init__(self, space: AddressSpace) -> None:
        self._space = space
        self._listeners: dict[int, list[Listener]] = {}

    def set(self, address: int, listener: Listener) -> None:
        """As often as it is set, `listener` is called."""
        listeners = self._listeners.setdefault(address, [])
        if not listeners:
            self._space.set_breakpoint(address)
        listeners.append(listener)

    def clear(self, address: int, listener: Listener) -> None:
        """Take back one `set`."""
        listeners = self._listeners[address]
        listeners.remove(listener)
        if not listeners:
            del self._listeners[address]
            self._space.clear_breakpoint(address)

    def reached(self, cpu: Cpu) -> None:
        """`cpu` is about to execute an instruction that has one."""
        for listener in tuple(self._listeners.get(cpu.core.pc, ())):
            listener(cpu)
