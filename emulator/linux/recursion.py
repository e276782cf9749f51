"""RecursionContexts: which contexts of a CPU tell events of an occurrence; what that does is none itself.

As perf_swevent_get_recursion_context(), kernel/events/internal.h, whose flags 6.12 keeps in task_struct.perf_recursion:
they are those of what a CPU executes.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.cpu import Cpu

_TASK, _HARDIRQ = range(2)  # interrupt_context_level(): of those that differ here


class RecursionContexts:
    """Of a kernel, shared by all who hear of its occurrences."""

    def __init__(self) -> None:
        self._levels: dict[int, int] = {}  # of CPUs that are not in a task's own context, by number
        self._held: set[tuple[int, int]] = set()  # CPU and level

    def get(self, cpu: Cpu) -> tuple[int, int] | None:
        """The context, for `put` afterwards; None: it is held, and the occurrence is none."""
        context = cpu.number, self._levels.get(cpu.number, _TASK)
        if context in self._held:
            return None
        self._held.add(context)
        return context

    def put(self, context: tuple[int, int]) -> None:
        """The occurrence is over."""
        self._held.remove(context)

    def pending_irq(self, cpu: Cpu, work: Callable[[], object]) -> None:
        """perf_pending_irq(): `work` wakes who waits for an event, in an interrupt that tells nobody of it."""
        self.irq_work(cpu, lambda: self.without(cpu, work))

    def irq_work(self, cpu: Cpu, work: Callable[[], object]) -> None:
        """irq_work_queue(): `work` is done in an interrupt of its own, whatever the CPU is at."""
        before, context = self._levels.get(cpu.number, _TASK), (cpu.number, _HARDIRQ)
        held = context in self._held  # by another interrupt, which would have ended by then
        self._held.discard(context)
        self._levels[cpu.number] = _HARDIRQ
        try:
            work()
        finally:
            self._levels[cpu.number] = before
            if held:
                self._held.add(context)

    def without(self, cpu: Cpu, work: Callable[[], object]) -> None:
        """Do `work` in the present context, with nobody told of what happens there; as perf_pending_task() does."""
        context = self.get(cpu)
        try:
            work()
        finally:
            if context is not None:
                self.put(context)
