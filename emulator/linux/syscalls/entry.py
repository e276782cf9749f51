"""SyscallEntry: the way of a system call into the kernel, through its sleeps, and back to user mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emulator.core_file.core_file import KernelCosts
from emulator.cpu import Cpu
from emulator.linux.arch.architecture import Architecture
from emulator.linux.errors import ENOSYS, LinuxError
from emulator.linux.process.task import Call, Task
from emulator.linux.process.tracee import NO_CALL, Tracee
from emulator.linux.ptrace.calls import TracedCalls
from emulator.linux.ptrace.delivery import returning
from emulator.linux.sched.dispatcher import Dispatcher
from emulator.linux.sched.waiting import Sleep, Sleeping, Wake
from emulator.linux.seccomp.enforcement import is_made, judge, refuse
from emulator.linux.signals.signal import Interrupted
from emulator.linux.signals.signal_delivery import deliver, is_restart
from emulator.linux.syscalls.failures import fail
from emulator.linux.syscalls.names import syscall_name
from emulator.linux.syscalls.table import Syscall
from emulator.linux.tracepoints import Tracepoints
from emulator.linux.twos_complement import INT, signed

TRACED = -1  # the number of a call that sleeps with its tracee's stops around it: it ends by itself

Handler = Callable[[Task, tuple[int, ...]], int | Sleeping[int] | None]


class Kernel(Protocol):
    """What a call needs of its kernel."""

    @property
    def architecture(self) -> Architecture: ...
    @property
    def costs(self) -> KernelCosts: ...
    @property
    def dispatcher(self) -> Dispatcher: ...
    @property
    def tracepoints(self) -> Tracepoints: ...
    def work(self, task: Task, cycles: int) -> None: ...
    def out_of_memory(self, task: Task) -> None: ...
    def name_once(self, message: str) -> None: ...


class SyscallEntry:
    """Answers the calls of one kernel's tasks."""

    def __init__(self, kernel: Kernel, rows: dict[int, Syscall]) -> None:
        """`rows`: by number."""
        self._kernel = kernel
        self._rows = rows
        self._calls: dict[int, Handler] = {}  # compiled rows
        self._traced = TracedCalls(kernel, lambda number: self._calls.get(number) or self._compile(number), self._name)

    def install(self, row: Syscall) -> None:
        """Put `row` in place of what this kernel has for its number: a call that another room's object answers."""
        number = row.number(self._kernel.architecture.isa)
        if number is not None:
            self._rows[number] = row
            self._calls.pop(number, None)

    def row(self, number: int) -> Syscall | None:
        """What answers a call of this number; None if nothing does."""
        return self._rows.get(number)

    def handle(self, cpu: Cpu) -> None:
        """The task of `cpu` has made a call."""
        kernel = self._kernel
        task = kernel.dispatcher.queues[cpu.number].current
        assert task is not None, f"CPU {cpu.number} runs no task"
        core = cpu.core
        kernel.work(task, kernel.costs.syscall)
        if task.tracee is not None:
            self._begin_traced(task, self._traced.make(task, task.tracee))
            return
        registers = core.syscall_arguments()
        number, arguments = registers[0], registers[1:]
        if task.seccomp is not None:
            called = signed(number, INT)
            verdict = judge(task, called, arguments)
            if not is_made(verdict):
                before = core.read_register(task.architecture.result)
                self._finish(task, number, arguments[0], refuse(task, called, verdict, before))
                return
        call = self._calls.get(number) or self._compile(number)
        sys_enter = kernel.tracepoints.sys_enter
        if sys_enter:
            sys_enter.fire(task, number, arguments)
        try:
            given = call(task, arguments)
            if given is None or isinstance(given, int):
                result = given
            else:
                result = self._begin(task, given, number, arguments[0])
                if task.call is not None:
                    return
        except LinuxError as error:
            result = fail(task, error)
        except MemoryError:
            kernel.out_of_memory(task)
            return
        self._finish(task, number, arguments[0], result)

    def resume(self, task: Task) -> None:
        """The call in which `task` slept goes on."""
        call, reason = task.call, task.woken_by
        assert call is not None, f"task {task.tid} sleeps in no call"
        assert reason is not None, f"task {task.tid} has not been woken"
        task.call = task.woken_by = None
        if call.timer is not None:
            call.timer.cancel()
            call.timer = None
        try:
            sleep = call.generator.send(reason)
        except StopIteration as stop:
            if call.number == TRACED:
                return
            result = stop.value
        except LinuxError as error:
            result = fail(task, error)
        except MemoryError:
            self._kernel.out_of_memory(task)
            return
        else:
            task.call = call
            self._wait(task, sleep)
            return
        self._finish(task, call.number, call.first_argument, result)

    def return_traced(self, task: Task, tracee: Tracee, interrupted: Interrupted | None) -> None:
        """A traced task is on its way back to user mode, from anything but a call that it has made while traced."""
        if interrupted is None:
            tracee.call_number = NO_CALL
        self._begin_traced(task, returning(task, tracee, interrupted))

    def _begin_traced(self, task: Task, work: Sleeping[None]) -> None:
        """What the kernel does for a traced task, to its end or to the first stop."""
        try:
            sleep = next(work)
        except StopIteration:
            return
        task.call = Call(work, TRACED, 0)
        self._wait(task, sleep)

    def _name(self, number: int) -> str:
        row = self._rows.get(number)
        return "" if row is None else row.name

    def _begin(self, task: Task, call: Sleeping[int], number: int, first_argument: int) -> int | None:
        """A call that may sleep: its result, if it does not. If it does, `task.call` is what goes on later."""
        try:
            sleep = next(call)
        except StopIteration as stop:
            result: int | None = stop.value
            return result
        task.call = Call(call, number, first_argument)
        self._wait(task, sleep)
        return None

    def _wait(self, task: Task, sleep: Sleep) -> None:
        """A call wants to sleep; or it has come a good part of its way, and what is due goes first."""
        if not sleep.works_cycles:
            if sleep.timer is not None and task.call is not None:
                task.call.timer = sleep.timer
            self._kernel.dispatcher.sleep(task, sleep)
            return
        task.spend(sleep.works_cycles)
        task.woken_by = Wake.CONTINUE
        self._kernel.dispatcher.events.version += 1

    def _finish(self, task: Task, number: int, first_argument: int, result: int | None) -> None:
        """A call is over: its result, and on the way back to user mode the signals."""
        if task.exit_code is not None:
            return  # it has killed itself
        tracepoints = self._kernel.tracepoints
        if tracepoints.sys_exit:
            tracepoints.sys_exit.fire(task, number, 0 if result is None else result)
        interrupted = None
        if result is not None:
            if result < 0 and is_restart(result):
                interrupted = Interrupted(-result, number, first_argument)
            else:
                self._kernel.architecture.set_syscall_result(task.cpu.core, result)
        signals = task.signals
        if interrupted is not None or signals.pending or signals.shared.pending:
            deliver(task, interrupted)

    def _compile(self, number: int) -> Handler:
        row = self._rows.get(number)
        if row is None:
            return self._unknown(number)
        call = self._calls[number] = row.compile()
        return call

    def _unknown(self, number: int) -> Handler:
        isa = self._kernel.architecture.isa

        def call(task: Task, arguments: tuple[int, ...]) -> int:
            self._kernel.name_once(f"syscall {number} ({syscall_name(isa, number)}) is not modelled: ENOSYS")
            return -ENOSYS

        return call
