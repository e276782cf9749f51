"""Tasks: which task a CPU executes, whatever it is in the midst of."""

from __future__ import annotations

from dataclasses import dataclass

from perfemu.guest_linux.kernel import GuestCpu, GuestKernel
from perfemu.guest_linux.memory import Unreadable


@dataclass(frozen=True, slots=True)
class GuestTask:
    """A thread, as its kernel knows it."""

    address: int  # of its struct task_struct
    pid: int
    tid: int
    parent: int  # its pid
    comm: str
    mm: int  # address of its struct mm_struct; 0: it is the kernel's own
    start_ns: int  # tells apart who have a tid one after the other


IDLE = GuestTask(0, 0, 0, 0, "swapper", 0, 0)


class Tasks:
    """`current` says who executes."""

    def __init__(self, kernel: GuestKernel) -> None:
        self._kernel = kernel
        self._running = kernel.architecture.running(kernel)

    def current(self, cpu: GuestCpu) -> GuestTask:
        """Raises Unreadable and BtfProblem."""
        address = self._running.task(cpu)
        return IDLE if address is None else self._task(address)

    def _task(self, address: int) -> GuestTask:
        value, kernel = self._kernel.value, self._kernel
        tid = value(address, "task_struct", "pid")
        if not tid:
            return IDLE
        try:
            parent = value(value(address, "task_struct", "real_parent"), "task_struct", "tgid")
        except Unreadable:
            parent = 0
        return GuestTask(
            address,
            value(address, "task_struct", "tgid"),
            tid,
            parent,
            kernel.text(address, "task_struct", "comm"),
            value(address, "task_struct", "mm"),
            value(address, "task_struct", "start_time"),
        )
