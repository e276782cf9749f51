"""BoardCalls: the system calls of a board's Linux, told to a Tracer: when they are made, return, and when tasks end.

A call is made by SVC at EL0. It has returned where do_el0_svc does, before signals are looked at; a task ends where
do_exit begins. Those places are in the kernel's symbols, and what registers it has saved is in its BTF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from emulator.board.calls import BreakAt
from emulator.clock import Clock
from emulator.cpu import Cpu, Level
from emulator.linux.arch import architecture
from emulator.linux.arch.architecture import Architecture
from emulator.linux.syscalls import table
from emulator.linux.syscalls.table import Syscall
from perfemu.errors import PerfemuError
from perfemu.guest_linux.memory import Unreadable
from perfemu.guest_linux.system import GuestLinux
from perfemu.guest_linux.tasks import GuestTask
from perfemu.tracing.callers import OpenFile
from perfemu.tracing.tracer import Tracer
from perfemu.tracing.values import signed

ISA = "aarch64"
_NUMBER, _ARGUMENTS, _LINK = 8, range(6), 30  # registers: of the call, and where a function returns to
_CALL, _END = "do_el0_svc", "do_exit"


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
    architecture: Architecture = field(default_factory=lambda: architecture(ISA))
    rows: dict[int, Syscall] = field(default_factory=lambda: table.by_number(table.load(), ISA))

    @property
    def syscalls(self) -> BoardLinux:
        return self

    def row(self, number: int, /) -> Syscall | None:
        return self.rows.get(number)


class BoardCalls:
    """A CallWatcher."""

    def __init__(self, linux: GuestLinux, kernel: BoardLinux, tracer: Tracer) -> None:
        self._linux = linux
        self._kernel = kernel
        self._tracer = tracer
        self._callers: dict[int, BoardCaller] = {}  # by tid
        self._numbers: dict[int, int] = {}  # by tid: of the call that it is in
        self._break_at: BreakAt
        self._call = self._end = 0  # addresses
        self._return: int | None = None
        self._saved_at = 0  # where a task's registers are saved, from the start of its stack

    def starts(self, break_at: BreakAt) -> None:
        self._break_at = break_at

    def _caller(self, task: GuestTask) -> BoardCaller:
        caller = self._callers.get(task.tid)
        if caller is None or caller.task.start_ns != task.start_ns:
            caller = self._callers[task.tid] = BoardCaller(self._linux, task, self._kernel.architecture)
        caller.task = task
        return caller

    def called(self, cpu: Cpu) -> None:
        task = self._linux.task(cpu)
        if task is None or not task.mm:
            return
        if not self._call:
            self._call, self._end = self._places()
            self._break_at((self._call, self._end))
        number = cpu.core.read_register(_NUMBER) & 0xFFFF_FFFF
        self._numbers[task.tid] = number
        self._tracer.enter(self._caller(task), number, tuple(cpu.core.read_registers(_ARGUMENTS)))

    def _places(self) -> tuple[int, int]:
        symbols = self._linux.symbols
        missing = next((name for name in (_CALL, _END) if name not in symbols), None)
        if missing is not None:
            raise PerfemuError(f"--guest-linux: the kernel has no {missing}: its calls cannot be followed")
        return symbols[_CALL], symbols[_END]

    def reached(self, cpu: Cpu) -> None:
        place = cpu.core.pc
        if cpu.level != Level.KERNEL or place not in (self._call, self._end, self._return):
            return
        task = self._linux.task(cpu)
        if task is None:
            return
        if place == self._call:
            self._first_call(cpu, task)
        elif place == self._end:
            self._ends(cpu, task)
        else:
            self._returns(task)

    def _first_call(self, cpu: Cpu, task: GuestTask) -> None:
        """Where the function returns to, and where its argument lies, is the same for all."""
        (registers,) = cpu.core.read_registers((0,))
        stack = self._linux.value(task, "stack")
        if stack is None:
            return
        self._saved_at = registers - stack
        self._return = cpu.core.read_register(_LINK)
        self._break_at((self._return, self._end))

    def _returns(self, task: GuestTask) -> None:
        number = self._numbers.pop(task.tid, None)
        stack = self._linux.value(task, "stack")
        if number is None or stack is None:
            return
        caller = self._caller(task)
        try:
            caller.result = signed(self._linux.kernel_word(stack + self._saved_at), 64)
        except Unreadable:
            return
        self._tracer.exit(caller, number, caller.result)

    def _ends(self, cpu: Cpu, task: GuestTask) -> None:
        """do_exit's argument is what wait4 tells."""
        caller = self._callers.pop(task.tid, None)
        self._numbers.pop(task.tid, None)
        if caller is not None:
            caller.exit_code = cpu.core.read_register(0) & 0xFFFF
            self._tracer.ended(caller)
