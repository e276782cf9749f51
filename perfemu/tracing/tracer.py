"""Tracer: hears what the kernel tells of system calls, signals and tasks, and writes a line for each, as strace does.

A line is written when its call is over. Where something else comes between, it is cut into two: ``<unfinished ...>``
and ``<... NAME resumed>``. What the guest does and counts does not depend on being watched: its memory is only peeked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from emulator.linux.process.task import Task
from emulator.linux.signals.signal import SIG_DFL, SIGKILL, Default, Generated, SignalAction, SignalInfo, default_action
from emulator.linux.structures import NANOSECONDS
from emulator.linux.syscalls.names import syscall_name
from emulator.linux.tracepoints import Tracepoints
from perfemu.tracing.callers import Caller, CallingKernel
from perfemu.tracing.calls import CallShape
from perfemu.tracing.results import result_text
from perfemu.tracing.selection import Selection
from perfemu.tracing.stamps import NO_STAMP, Stamp, Stamper
from perfemu.tracing.structures import signal_info
from perfemu.tracing.summary import Summary
from perfemu.tracing.values import MOST_ITEMS, View, quoted, signal_name
from perfemu.tracing.variants import Arguments
from perfemu.visible import visible

RESULT_COLUMN = 40  # strace -a
_OTHER_MEMORY = ("execve", "execveat")  # when they are over, it is another program's


@dataclass(frozen=True, slots=True)
class Style:
    """How lines look."""

    stamp: Stamp = NO_STAMP
    durations: bool = False  # -T
    longest: int = MOST_ITEMS  # -s
    names_files: bool = False  # -y
    numbers: bool = False  # -n
    always_pid: bool = False  # with -o
    names_tasks: bool = False  # of a whole system
    quiet: bool = False  # -q: nothing of tasks that come and go


@dataclass(slots=True)
class _Open:
    """A call that has begun."""

    shape: CallShape
    number: int
    registers: tuple[int, ...]
    arguments: Arguments
    written: int  # arguments that stand in `text`
    text: str
    began_ns: int
    who: str  # its task, as its first line says
    shown: bool
    split: bool = False  # its beginning has been written
    unread: bool = False  # of what it points at, something was not in memory yet: the call brings it there


@dataclass(slots=True)
class _Of:
    """What is known of one task."""

    call: _Open | None = None
    held: list[str] = field(default_factory=list)  # lines of signals that come when its call is over


class Tracer:
    """Make it before the program starts; `finish` at the end."""

    def __init__(
        self,
        kernel: CallingKernel,
        write: Callable[[str], object],
        selection: Selection,
        style: Style,
        program: tuple[str, tuple[str, ...], int] | None = None,
        *,
        lines: bool = True,
        summary: Summary | None = None,
    ) -> None:
        """`program`: path, arguments and number of variables of the first execve, which nobody calls, if it is seen."""
        self._kernel = kernel
        self._write = write
        self._selection = selection
        self._style = style
        self._program = program
        self._lines = lines
        self._summary = summary
        self._stamper = Stamper(kernel.clock, style.stamp)
        self._shapes: dict[int, CallShape] = {}
        self._tasks: dict[Caller, _Of] = {}
        self._unwritten: Caller | None = None  # whose call's beginning is kept back
        self._unannounced: dict[Caller, Caller] = {}  # new tasks, and who made them

    def listen(self, points: Tracepoints) -> None:
        """To a kernel that tells."""
        points.sys_enter.subscribe(self.enter)
        points.sys_exit.subscribe(self.exit)
        points.task_fork.subscribe(self._forked)
        points.task_exec.subscribe(self._executes)
        points.task_exit.subscribe(self.ended)
        points.signal_generate.subscribe(self._generated)
        points.signal_deliver.subscribe(self._delivered)

    def finish(self) -> None:
        """Nothing more comes: what is kept back is written."""
        self._cut()

    # ---- lines

    def _of(self, task: Caller) -> _Of:
        known = self._tasks.get(task)
        if known is None:
            known = self._tasks[task] = _Of()
        return known

    def _who(self, task: Caller) -> str:
        if self._style.names_tasks:
            return f"{visible(task.comm)}/{task.tid} "
        if self._style.always_pid:
            return f"{task.tid} "
        return f"[pid {task.tid:5}] " if len(self._tasks) > 1 else ""

    def _line(self, task: Caller, text: str) -> None:
        self._cut()
        self._announce(task)
        if self._lines:
            self._write(f"{self._who(task)}{self._stamper.text(self._now())}{text}\n")

    def _cut(self) -> None:
        """The beginning that was kept back is written by itself."""
        task, self._unwritten = self._unwritten, None
        if task is None:
            return
        call = self._of(task).call
        assert call is not None, "what is kept back is a call"
        call.split = True
        self._write(f"{call.who}{self._stamper.text(call.began_ns)}{call.text} <unfinished ...>\n")

    def _now(self) -> int:
        return self._kernel.clock.elapsed_ns()

    # ---- system calls

    def _shape(self, number: int) -> CallShape:
        shape = self._shapes.get(number)
        if shape is None:
            row = self._kernel.syscalls.row(number)
            if row is not None:
                shape = CallShape.of(row)
            else:
                shape = CallShape.unknown(syscall_name(self._kernel.architecture.isa, number), number)
            self._shapes[number] = shape
        return shape

    def _view(self, task: Caller, registers: tuple[int, ...], result: int | None) -> View:
        return View(task, registers, result, self._style.longest, self._style.names_files)

    def enter(self, task: Caller, number: int, registers: tuple[int, ...]) -> None:
        shape = self._shape(number)
        shown = self._selection.shows(shape.name)
        known = self._of(task)
        if not shown or not self._lines:
            known.call = _Open(shape, number, registers, (), 0, "", self._now(), "", shown)
            return
        self._cut()
        self._announce(task)
        view = self._view(task, registers, None)
        arguments = shape.arguments(view)
        written = next((index for index, argument in enumerate(arguments) if argument.shape.out), len(arguments))
        text = self._beginning(view, shape, number, arguments, written)
        who, unread = self._who(task), bool(view.unread) and shape.name not in _OTHER_MEMORY
        known.call = _Open(
            shape, number, registers, arguments, written, text, self._now(), who, True, unread=unread
        )  # fmt: skip
        if not (self._selection.only_failed or self._selection.only_successful):
            self._unwritten = task

    def _beginning(self, view: View, shape: CallShape, number: int, arguments: Arguments, written: int) -> str:
        name = f"[{number:4}] {shape.name}" if self._style.numbers else shape.name
        more = ", " if 0 < written < len(arguments) else ""
        return f"{name}({_shown(view, arguments[:written])}{more}"

    def exit(self, task: Caller, number: int, result: int) -> None:
        known = self._of(task)
        call, known.call = known.call, None
        if call is not None and call.number == number:
            self._over(task, call, result)
            for child in [child for child, parent in self._unannounced.items() if parent is task]:
                self._announce(child)
        for line in known.held:
            self._line(task, line)
        known.held.clear()

    def _over(self, task: Caller, call: _Open, result: int | None) -> None:
        view = self._view(task, call.registers, result)
        spent_ns = self._now() - call.began_ns
        if call.shown and self._summary is not None:
            self._summary.add(call.shape.name, spent_ns, view.failed)
        if not call.shown or not self._lines or not self._selection.shows_result(view.failed):
            return
        if self._unwritten is task:
            self._unwritten = None
        else:
            self._cut()
        if call.unread and not call.split and not view.failed:
            call.text = self._beginning(view, call.shape, call.number, call.arguments, call.written)
        text = _shown(view, call.arguments[call.written :])
        if call.split:
            who, stamp = self._who(task), self._stamper.text(self._now())
            start = f"<... {call.shape.name} resumed>"
        else:
            who, stamp = call.who, self._stamper.text(call.began_ns)
            start = call.text
        head = f"{who}{start}{text})".ljust(RESULT_COLUMN)[len(who) :]
        spent = f" <{spent_ns // NANOSECONDS}.{spent_ns % NANOSECONDS:09}>" if self._style.durations else ""
        gap = "" if head.endswith(" ") else " "
        self._write(f"{who}{stamp}{head}{gap}= {result_text(call.shape.name, view)}{spent}\n")

    # ---- tasks

    def _executes(self, task: Task) -> None:
        """The first execve is nobody's call."""
        if self._tasks or self._program is None:
            return
        self._of(task)
        if not self._lines or not self._selection.shows("execve") or self._selection.only_failed:
            return
        path, argv, variables = self._program
        longest = self._style.longest
        encoded = [argument.encode("utf-8", "surrogateescape") for argument in argv[:longest]]
        shown = [quoted(argument[:longest], len(argument) > longest) for argument in encoded]
        if len(argv) > longest:
            shown.append("...")
        name = quoted(path.encode("utf-8", "surrogateescape"))
        plural = "" if variables == 1 else "s"
        self._line(task, f"execve({name}, [{', '.join(shown)}], /* {variables} var{plural} */) = 0")

    def _forked(self, parent: Task, child: Task) -> None:
        self._of(child)
        if not self._style.quiet and not self._style.always_pid and self._lines:
            self._unannounced[child] = parent

    def _announce(self, child: Caller) -> None:
        """Before its first line, or behind the call that made it, say that there is a new task."""
        if self._unannounced.pop(child, None) is not None:
            self._write(f"perfemu: Process {child.tid} attached\n")

    def ended(self, task: Caller) -> None:
        known = self._of(task)
        call, known.call = known.call, None
        if call is not None:
            self._over(task, call, None)
        for line in known.held:
            self._line(task, line)
        status = task.exit_code
        assert status is not None, "it has ended"
        if not self._style.quiet:
            signal = status & 0x7F
            how = f"killed by {signal_name(signal)}" if signal else f"exited with {status >> 8 & 0xFF}"
            self._line(task, f"+++ {how} +++")
        del self._tasks[task]

    # ---- signals

    def _generated(self, task: Task, info: SignalInfo, group: bool, result: Generated) -> None:
        """Those that are not delivered, because they do nothing or act at once."""
        number = info.signal
        if number == SIGKILL or task.exit_code is not None or result is Generated.ALREADY_PENDING:
            return
        if group:
            task = next((thread for thread in task.process.threads if thread.signals.wants(number)), task)
        signals = task.signals
        if signals.kept_away(number):
            return
        stops = default_action(number) is Default.STOP and signals.action(number).handler == SIG_DFL
        if signals.ignored(number) or stops:
            self._signal(task, info)
        if stops:
            self._later(task, f"--- stopped by {signal_name(number)} ---")

    def _delivered(self, task: Task, info: SignalInfo, action: SignalAction) -> None:
        self._signal(task, info)

    def _signal(self, task: Task, info: SignalInfo) -> None:
        if self._selection.shows_signal(info.signal):
            self._later(task, f"--- {signal_name(info.signal)} {signal_info(info)} ---")

    def _later(self, task: Caller, line: str) -> None:
        """Behind the call in which the task is."""
        known = self._of(task)
        if known.call is not None:
            known.held.append(line)
        else:
            self._line(task, line)


def _shown(view: View, arguments: Arguments) -> str:
    return ", ".join(
        argument.label + argument.shape.show(view, view.arguments[argument.register]) for argument in arguments
    )
