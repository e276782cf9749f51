"""Single steps: a task that its tracer lets execute one instruction."""

from __future__ import annotations

from emulator.cpu import Cpu
from emulator.linux.process.task import Task
from emulator.linux.signals.signal import SIGTRAP, TRAP_BRKPT, TRAP_TRACE, SignalInfo
from emulator.linux.signals.signal_delivery import force
from emulator.linux.tracepoints import Tracepoints
from emulator.probes import Probe

DR6_STEP = 1 << 14  # x86: DR6.BS


class Stepping:
    """Those tasks of one kernel that are stepped. While there are none, nobody is asked anything."""

    def __init__(self, tracepoints: Tracepoints) -> None:
        self._tracepoints = tracepoints
        self.is_used = False  # since the first step
        self._begun: dict[Cpu, int] = {}  # CPUs that execute such a task: how many instructions it had retired before

    def begin(self) -> None:
        """A task is about to be stepped."""
        if not self.is_used:
            self.is_used = True
            self._tracepoints.sched_in.subscribe(self._come)
            self._tracepoints.sched_out.subscribe(self._leave)

    def _come(self, task: Task, cpu: Cpu) -> None:
        if task.tracee is not None and task.tracee.steps:
            self._begun[cpu] = cpu.core.total(Probe.INST_RETIRED)
            cpu.core.set_steps(True)

    def _leave(self, task: Task, cpu: Cpu, following: Task | None) -> None:
        if self._begun.pop(cpu, None) is not None:
            cpu.core.set_steps(False)

    def has_stepped(self, task: Task, cpu: Cpu) -> bool:
        """Whether the task of `cpu` has executed its instruction: it gets its SIGTRAP then."""
        begun = self._begun.get(cpu)
        if begun is None or begun == cpu.core.total(Probe.INST_RETIRED):
            return False
        self._begun[cpu] = cpu.core.total(Probe.INST_RETIRED)
        task.debug_status = DR6_STEP
        force(task, trace_info(cpu.core.pc))
        return True


def trace_info(pc: int) -> SignalInfo:
    """Of a step's end."""
    return SignalInfo(SIGTRAP, TRAP_TRACE, pc, trap_number=1)


def stepped_info(task: Task) -> SignalInfo:
    """... behind a system call, or at a handler's first instruction (user_single_step_report)."""
    pc = task.cpu.core.pc
    if task.architecture.isa == "x86_64":
        return SignalInfo(SIGTRAP, TRAP_BRKPT, pc, trap_number=1)
    return SignalInfo(SIGTRAP)
