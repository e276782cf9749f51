"""TraceUprobe: a probe at an instruction of a file, or at the return of the function that begins there."""

from __future__ import annotations

from emulator.cpu import Cpu
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.task import Task
from perfcore.events.probes.moment import UserMoment
from perfcore.events.probes.probe_event import Places, ProbeEvent, TraceProbe
from perfcore.events.probes.uprobe_definition import UprobeDefinition
from perfcore.events.probes.uprobes import Uprobes

_MOST_BYTES = 4096  # MAX_UCB_BUFFER_SIZE


class TraceUprobe(TraceProbe[UprobeDefinition]):
    """struct trace_uprobe: a consumer of its place."""

    most_bytes = _MOST_BYTES

    def __init__(self, definition: UprobeDefinition, event: ProbeEvent, uprobes: Uprobes) -> None:
        super().__init__(definition, event)
        self.hears_returns = definition.returns
        self.semaphore = definition.semaphore
        self._uprobes = uprobes

    def register(self) -> None:
        self._uprobes.register(self.definition.place, self, self.definition.file.size)

    def unregister(self) -> None:
        self._uprobes.unregister(self.definition.place, self)

    def listeners_changed(self) -> None:
        self._uprobes.apply(self.definition.place)

    def wants(self, memory: MemoryMap) -> bool:
        return self._event.is_for(memory)

    def hit(self, cpu: Cpu, task: Task) -> None:
        """uprobe_dispatcher()"""
        self.hits += 1
        if not self.hears_returns:
            self._occurred(cpu, task, (cpu.core.pc,))

    def returned(self, cpu: Cpu, task: Task, function: int) -> None:
        self._occurred(cpu, task, (function, cpu.core.pc))

    def _occurred(self, cpu: Cpu, task: Task, places: Places) -> None:
        moment = UserMoment(task.architecture, cpu, task, places[0] - self.definition.offset)
        self.occurred(cpu, task, places, moment)
