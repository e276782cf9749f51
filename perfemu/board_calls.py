"""BoardCalls: the system calls of a board's Linux, told to a Tracer: when they are made, return, and when tasks end.

On AArch64 a call is made by SVC at EL0, and has returned where do_el0_svc does. On x86-64 it is made by SYSCALL, which
leads to entry_SYSCALL_64, and has returned where syscall_exit_to_user_mode begins. Both are before signals are looked
at; a task ends where do_exit begins. Those places are in the kernel's symbols, and what registers it has saved is in
its BTF. What programs of 32 bits call is not followed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from emulator.board.calls import BreakAt
from emulator.clock import Clock
from emulator.cpu import Cpu, Level
from emulator.linux.arch import architecture
from emulator.linux.arch.architecture import Architecture
from emulator.linux.syscalls import table
from emulator.linux.syscalls.table import Syscall
from perfemu.errors import PerfemuError
from perfemu.guest_linux.btf import BtfProblem
from perfemu.guest_linux.memory import Unreadable
from perfemu.guest_linux.system import GuestLinux
from perfemu.guest_linux.tasks import GuestTask
from perfemu.tracing.callers import OpenFile
from perfemu.tracing.tracer import Tracer
from perfemu.tracing.values import signed

# Of Core.read_register: the call's number and arguments, a function's first argument, and where it returns to
_AARCH64_NUMBER, _AARCH64_ARGUMENTS, _AARCH64_FIRST, _LINK = 8, (0, 1, 2, 3, 4, 5), 0, 30
_X86_64_NUMBER, _X86_64_ARGUMENTS, _X86_64_FIRST = 0, (5, 4, 3, 10, 8, 9), 5  # RAX; RDI RSI RDX R10 R8 R9; RDI
_END = "do_exit"


@dataclass(eq=False, slots=True)
class BoardCaller:
    """A task, for the lines of its calls: Caller."""

    linux: GuestLinux
    task: GuestTask
    architecture: Architecture
    exit_code: int | None = None
    result: int = 0  # of the call that has just returned

    @property
    def tid(self) -> int:
        return self.task.tid

    @property
    def comm(self) -> str:
        return self.task.comm

    def peek(self, address: int, size: int, /) -> bytes | None:
        return self.linux.contents(self.task, address, size)

    def descriptors(self) -> Sequence[int]:
        return ()

    def get(self, number: int, /) -> OpenFile:
        raise LookupError(number)

    @property
    def cwd(self) -> str:
        return ""

    @property
    def blocked(self) -> int:
        return self.linux.blocked_signals(self.task)

    def syscall_arguments(self) -> tuple[int, ...]:
        """As they are when the call is over."""
        return 0, self.result

    # a task has these apart; here they are all of one piece
    @property
    def mm(self) -> BoardCaller:
        return self

    @property
    def files(self) -> BoardCaller:
        return self

    @property
    def fs(self) -> BoardCaller:
        return self

    @property
    def signals(self) -> BoardCaller:
        return self

    @property
    def cpu(self) -> BoardCaller:
        return self

    @property
    def core(self) -> BoardCaller:
        return self


@dataclass(frozen=True)
class BoardLinux:
    """What a Tracer asks of a kernel."""

    clock: Clock
    isa: str

    @cached_property
    def architecture(self) -> Architecture:
        return architecture(self.isa)

    @cached_property
    def rows(self) -> Mapping[int, Syscall]:
        return table.by_number(table.load(), self.isa)

    @property
    def syscalls(self) -> BoardLinux:
        return self

    def row(self, number: int, /) -> Syscall | None:
        return self.rows.get(number)


class BoardCalls(ABC):
    """A CallWatcher."""

    number: int  # registers, as above
    arguments: Sequence[int]
    first_argument: int

    def __init__(self, linux: GuestLinux, kernel: BoardLinux, tracer: Tracer) -> None:
        self._linux = linux
        self._kernel = kernel
        self._tracer = tracer
        self._callers: dict[int, BoardCaller] = {}  # by tid
        self._numbers: dict[int, int] = {}  # by tid: of the call that it is in
        self._break_at: BreakAt

    def starts(self, break_at: BreakAt) -> None:
        self._break_at = break_at

    @abstractmethod
    def called(self, cpu: Cpu) -> None: ...

    @abstractmethod
    def looked(self, cpu: Cpu) -> bool: ...

    def reached(self, cpu: Cpu) -> None:
        if cpu.level == Level.KERNEL and cpu.core.pc in self._places:
            task = self._linux.task(cpu)
            if task is not None:
                self._at_place(cpu, cpu.core.pc, task)

    @property
    @abstractmethod
    def _places(self) -> Sequence[int]:
        """At which the board breaks now."""

    @abstractmethod
    def _at_place(self, cpu: Cpu, place: int, task: GuestTask) -> None: ...

    def _caller(self, task: GuestTask) -> BoardCaller:
        caller = self._callers.get(task.tid)
        if caller is None or caller.task.start_ns != task.start_ns:
            caller = self._callers[task.tid] = BoardCaller(self._linux, task, self._kernel.architecture)
        caller.task = task
        return caller

    def _enters(self, cpu: Cpu, task: GuestTask) -> None:
        number = cpu.core.read_register(self.number) & 0xFFFF_FFFF
        self._numbers[task.tid] = number
        self._tracer.enter(self._caller(task), number, tuple(cpu.core.read_registers(self.arguments)))

    def _addresses(self, *names: str) -> list[int]:
        symbols = self._linux.symbols
        missing = next((name for name in names if name not in symbols), None)
        if missing is not None:
            raise PerfemuError(f"--guest-linux: the kernel has no {missing}: its calls cannot be followed")
        return [symbols[name] for name in names]

    def _returns(self, task: GuestTask, saved: int) -> None:
        """`saved`: where its result is among the registers that have been saved."""
        number = self._numbers.pop(task.tid, None)
        if number is None:
            return
        caller = self._caller(task)
        try:
            caller.result = signed(self._linux.kernel_word(saved), 64)
        except Unreadable:
            return
        self._tracer.exit(caller, number, caller.result)

    def _ends(self, cpu: Cpu, task: GuestTask) -> None:
        """do_exit's argument is what wait4 tells."""
        caller = self._callers.pop(task.tid, None)
        self._numbers.pop(task.tid, None)
        if caller is not None:
            caller.exit_code = cpu.core.read_register(self.first_argument) & 0xFFFF
            self._tracer.ended(caller)


class Aarch64Calls(BoardCalls):
    number, arguments, first_argument = _AARCH64_NUMBER, _AARCH64_ARGUMENTS, _AARCH64_FIRST

    def __init__(self, linux: GuestLinux, kernel: BoardLinux, tracer: Tracer) -> None:
        super().__init__(linux, kernel, tracer)
        self._call = self._end = 0  # addresses
        self._return: int | None = None
        self._saved_at = 0  # where a task's registers are saved, from the start of its stack

    def looked(self, cpu: Cpu) -> bool:
        return True  # the first SVC is soon enough

    def called(self, cpu: Cpu) -> None:
        task = self._linux.task(cpu)
        if task is None or not task.mm:
            return
        if not self._call:
            self._call, self._end = self._addresses("do_el0_svc", _END)
            self._break_at(self._places)
        self._enters(cpu, task)

    @property
    def _places(self) -> Sequence[int]:
        return self._call if self._return is None else self._return, self._end

    def _at_place(self, cpu: Cpu, place: int, task: GuestTask) -> None:
        stack = self._linux.value(task, "stack")
        if place == self._end:
            self._ends(cpu, task)
        elif place == self._return and stack is not None:
            self._returns(task, stack + self._saved_at)
        elif place == self._call and stack is not None:  # what follows is the same for all calls
            self._saved_at = cpu.core.read_register(self.first_argument) - stack
            self._return = cpu.core.read_register(_LINK)
            self._break_at(self._places)


class X8664Calls(BoardCalls):
    number, arguments, first_argument = _X86_64_NUMBER, _X86_64_ARGUMENTS, _X86_64_FIRST

    def __init__(self, linux: GuestLinux, kernel: BoardLinux, tracer: Tracer) -> None:
        super().__init__(linux, kernel, tracer)
        self._call = self._return = self._end = 0
        self._result_at = 0  # in a struct pt_regs

    def looked(self, cpu: Cpu) -> bool:
        kernel = self._linux.kernel(cpu)
        if kernel is None:
            return False
        self._call, self._return, self._end = self._addresses("entry_SYSCALL_64", "syscall_exit_to_user_mode", _END)
        try:
            self._result_at = kernel.member("pt_regs", "ax").offset
        except BtfProblem as problem:
            raise PerfemuError(f"--guest-linux: this kernel cannot be understood: {problem}") from None
        self._break_at(self._places)
        return True

    def called(self, cpu: Cpu) -> None:
        """It is told by the entry."""

    @property
    def _places(self) -> Sequence[int]:
        return self._call, self._return, self._end

    def _at_place(self, cpu: Cpu, place: int, task: GuestTask) -> None:
        if place == self._end:
            self._ends(cpu, task)
        elif place == self._return:
            self._returns(task, cpu.core.read_register(self.first_argument) + self._result_at)
        elif task.mm:
            self._enters(cpu, task)


CALLS: Mapping[str, type[Aarch64Calls] | type[X8664Calls]] = {"aarch64": Aarch64Calls, "x86_64": X8664Calls}  # by ISA
