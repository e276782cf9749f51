"""The system call of a traced task, with the stops around it (kernel/entry/common.c, arch/arm64/kernel/syscall.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emulator.linux.errors import ENOSYS, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.process.tracee import NO_CALL, Tracee
from emulator.linux.ptrace.abi import PtraceEvent
from emulator.linux.ptrace.delivery import returning
from emulator.linux.ptrace.isas import TRACED_REGISTERS
from emulator.linux.ptrace.stepping import stepped_info
from emulator.linux.ptrace.stops import report, report_entry, report_exit, report_noted, reports
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.seccomp.enforcement import ends_by, is_made, judge, refuse
from emulator.linux.seccomp.filters import Action, Verdict
from emulator.linux.signals.signal_delivery import force
from emulator.linux.syscalls.failures import fail
from emulator.linux.tracepoints import Tracepoints
from emulator.linux.twos_complement import INT, signed

Handler = Callable[[Task, tuple[int, ...]], int | Sleeping[int] | None]


class Kernel(Protocol):
    """What a call needs of its kernel."""

    @property
    def tracepoints(self) -> Tracepoints: ...
    def out_of_memory(self, task: Task) -> None: ...


class TracedCalls:
    """Makes the calls of one kernel's traced tasks. `handler`: what answers a number; `name`: what it is called."""

    def __init__(self, kernel: Kernel, handler: Callable[[int], Handler], name: Callable[[int], str]) -> None:
        self._kernel = kernel
        self._handler = handler
        self._name = name

    def make(self, task: Task, tracee: Tracee) -> Sleeping[None]:
        """From the entry to user mode. A tracer may change number, arguments and result, or go away."""
        core = task.cpu.core
        registers = core.syscall_arguments()
        tracee.call_number, tracee.first_argument = signed(registers[0], INT), registers[1]
        tracee.events.clear()
        isa = TRACED_REGISTERS[task.architecture.isa]
        isa.enter_call(core)
        if tracee.call_number == NO_CALL:
            task.architecture.set_syscall_result(core, -ENOSYS)
        skipped = False
        if tracee.reports_calls or tracee.emulates_calls:
            skipped = tracee.emulates_calls
            kept = isa.mark_stop(core, True)
            yield from report_entry(task, tracee)
            isa.unmark_stop(task.cpu.core, kept)
        if not skipped and task.seccomp is not None:
            skipped = yield from self._is_refused(task, tracee)
        number = tracee.call_number
        if not skipped and number != NO_CALL:
            yield from self._answer(task, tracee, number)
        if task.exit_code is not None:
            return
        yield from self._leave(task, tracee)
        yield from returning(task, tracee, None)

    @staticmethod
    def _is_refused(task: Task, tracee: Tracee) -> Sleeping[bool]:
        """Whether seccomp keeps the task from its call. A filter may ask the tracer, who may change the call."""
        verdict = _judge(task, tracee)
        if verdict.action is Action.TRACE and reports(task, PtraceEvent.SECCOMP):
            yield from report(task, PtraceEvent.SECCOMP, verdict.data)
            if task.exit_code is not None or tracee.call_number < 0:
                return True
            verdict = _judge(task, tracee)
            if verdict.action is Action.TRACE:
                return False
        if is_made(verdict):
            return False
        status = ends_by(task, verdict)
        if status:
            yield from report(task, PtraceEvent.EXIT, status)
            if task.exit_code is not None:
                return True
        before = TRACED_REGISTERS[task.architecture.isa].before_call(tracee)
        result = refuse(task, tracee.call_number, verdict, before)
        if task.exit_code is None:
            task.architecture.set_syscall_result(task.cpu.core, result)
        return True

    def _answer(self, task: Task, tracee: Tracee, number: int) -> Sleeping[None]:
        """The call itself. Where it sets registers itself there is no result."""
        points = self._kernel.tracepoints
        arguments = task.cpu.core.syscall_arguments()[1:]
        if points.sys_enter:
            points.sys_enter.fire(task, number, arguments)
        name = self._name(number)
        if name in ("exit", "exit_group") and reports(task, PtraceEvent.EXIT):
            yield from report(task, PtraceEvent.EXIT, (arguments[0] & 0xFF) << 8)
        try:
            given = self._handler(number)(task, arguments)
            vforked = bool(tracee.events) and tracee.events[-1][0] == PtraceEvent.VFORK
            yield from report_noted(task)
            if given is not None and not isinstance(given, int):
                given = yield from given
            if vforked:
                assert given is not None, "vfork gives the child's pid"
                yield from self._report_vfork_done(task, given)
        except LinuxError as error:
            given = fail(task, error)
        except MemoryError:
            self._kernel.out_of_memory(task)
            return
        if task.exit_code is not None:
            return
        if name == "rt_sigreturn":
            tracee.call_number = NO_CALL
        if points.sys_exit:
            points.sys_exit.fire(task, number, 0 if given is None else given)
        if given is not None:
            task.architecture.set_syscall_result(task.cpu.core, given)

    @staticmethod
    def _report_vfork_done(task: Task, child: int) -> Sleeping[None]:
        if reports(task, PtraceEvent.VFORK_DONE):
            yield from report(task, PtraceEvent.VFORK_DONE, child)

    @staticmethod
    def _leave(task: Task, tracee: Tracee) -> Sleeping[None]:
        """Who is stepped over a call has executed one instruction with that."""
        if task.tracee is not tracee:
            return
        if tracee.steps:
            force(task, stepped_info(task))
        elif tracee.reports_calls:
            isa = TRACED_REGISTERS[task.architecture.isa]
            kept = isa.mark_stop(task.cpu.core, False)
            yield from report_exit(task, tracee)
            isa.unmark_stop(task.cpu.core, kept)


def _judge(task: Task, tracee: Tracee) -> Verdict:
    return judge(task, tracee.call_number, task.cpu.core.syscall_arguments()[1:])
