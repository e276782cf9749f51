"""Trampolines: which programs are run where a function begins and returns. kernel/bpf/trampoline.c"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.cpu import Cpu
from emulator.linux.errors import E2BIG, EBUSY, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.bpf import LINK_TYPE_TRACING, AttachType
from perfcore.bpf.links import Link
from perfcore.bpf.program import Attachment, Program
from perfcore.bpf.run import Call, Reader
from perfcore.events.kernel import Linux
from perfcore.events.probes.kernel_functions import KernelFunction, KernelFunctions
from perfcore.events.probes.kprobes import KernelMoment, Kprobes

_MOST_LINKS = 38  # BPF_MAX_TRAMP_LINKS


class Trampoline:
    """Of one function, with `count` arguments. `unknown`: those of them that nobody can be told."""

    def __init__(self, address: int, count: int, unknown: frozenset[int]) -> None:
        self.address = address
        self._count = count
        self.unknown = unknown
        self.links: dict[AttachType, list[TracingLink]] = {
            AttachType.TRACE_FENTRY: [],
            AttachType.TRACE_FEXIT: [],
        }

    @property
    def is_used(self) -> bool:
        return any(self.links.values())

    def attach(self, link: TracingLink) -> None:
        """Those that come later are run sooner."""
        links = [each for kind in self.links.values() for each in kind]
        if len(links) >= _MOST_LINKS:
            raise LinuxError(E2BIG, f"the function has {_MOST_LINKS} programs")
        if any(each.program is link.program for each in links):
            raise LinuxError(EBUSY, "the program is attached already")
        self.links[link.attachment.type].insert(0, link)

    def detach(self, link: TracingLink) -> None:
        self.links[link.attachment.type].remove(link)

    def entered(self, cpu: Cpu, arguments: Sequence[int], read: Reader | None) -> None:
        self._run(AttachType.TRACE_FENTRY, cpu, Call(self._whole(arguments), self.unknown), read)

    def returned(self, cpu: Cpu, arguments: Sequence[int], result: int, read: Reader | None) -> None:
        self._run(AttachType.TRACE_FEXIT, cpu, Call(self._whole(arguments), self.unknown, result), read)

    def _whole(self, arguments: Sequence[int]) -> tuple[int, ...]:
        return (*arguments, *[0] * self._count)[: self._count]

    def _run(self, type: AttachType, cpu: Cpu, call: Call, read: Reader | None) -> None:
        for link in tuple(self.links[type]):
            link.program.on_function(cpu, link.cookie, call, self.address, read)


class KernelTrampoline(Trampoline):
    """Of a function of the kernel. It hears of it while somebody is attached."""

    def __init__(self, function: KernelFunction, address: int, count: int, unknown: frozenset[int], of: Linux) -> None:
        super().__init__(address, count, unknown)
        self._function = function
        self._tracepoints = of.tracepoints
        self._kprobes = Kprobes(of)
        self._ends: list[Callable[[], None]] = []
        self._under_way: dict[int, KernelMoment] = {}  # calls that have not returned, by tid

    def attach(self, link: TracingLink) -> None:
        super().attach(link)
        if not self._ends:
            self._ends.append(self._kprobes.listen(self._function, False, self._on_entry))
            if self._function.returns:
                self._tracepoints.task_exit.subscribe(self._on_exit)
                self._ends.append(lambda: self._tracepoints.task_exit.unsubscribe(self._on_exit))
                self._ends.append(self._kprobes.listen(self._function, True, self._on_return))

    def detach(self, link: TracingLink) -> None:
        super().detach(link)
        if not self.is_used:
            while self._ends:
                self._ends.pop()()
            self._under_way.clear()

    def _on_entry(self, cpu: Cpu, task: Task, moment: KernelMoment) -> None:
        if self._function.returns:
            self._under_way[task.tid] = moment
        self.entered(cpu, moment.arguments, moment.read)

    def _on_exit(self, task: Task) -> None:
        self._under_way.pop(task.tid, None)

    def _on_return(self, cpu: Cpu, task: Task, moment: KernelMoment) -> None:
        """Of a call that has begun before somebody was attached nothing is heard."""
        began = self._under_way.pop(task.tid, None)
        if began is not None:
            self.returned(cpu, began.arguments, moment.returned, began.read)


class Trampolines:
    """All of one kernel."""

    def __init__(self, kernel: Linux) -> None:
        self._kernel = kernel
        self._functions = KernelFunctions(kernel.architecture.isa)
        self._of_functions: dict[str, Trampoline] = {}

    def find(self, attachment: Attachment) -> Trampoline:
        """That of the function which a program is for."""
        target = attachment.target
        program = attachment.program
        if program is not None:
            if program.traced_by is None:
                program.traced_by = Trampoline(0, len(target.prototype.parameters), target.unknown)
            assert isinstance(program.traced_by, Trampoline), "nothing else traces programs"
            return program.traced_by
        found = self._of_functions.get(target.name)
        if found is None:
            assert target.function is not None, "raw tracepoints have links of their own"
            address, count = self._functions.addresses[target.name], len(target.prototype.parameters)
            found = KernelTrampoline(target.function, address, count, target.unknown, self._kernel)
            self._of_functions[target.name] = found
        return found


class TracingLink(Link):
    """To a function, as its program was loaded for it."""

    type = LINK_TYPE_TRACING

    def __init__(self, program: Program, on_end: Callable[[Link], None], trampoline: Trampoline, cookie: int) -> None:
        super().__init__(program, on_end)
        assert program.attachment is not None, "programs of type TRACING have one"
        self.attachment = program.attachment
        self.cookie = cookie
        self._trampoline = trampoline
        try:
            trampoline.attach(self)
        except LinuxError:
            program.release()
            raise

    def let_go(self) -> None:
        self._trampoline.detach(self)
