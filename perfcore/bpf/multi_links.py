"""Links of a program to many functions at once. kernel/trace/bpf_trace.c"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from emulator.cpu import Cpu
from emulator.linux.errors import LinuxError
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.task import Task
from perfcore.abi.bpf import LINK_TYPE_KPROBE_MULTI, LINK_TYPE_UPROBE_MULTI
from perfcore.bpf.links import Link
from perfcore.bpf.program import Program
from perfcore.events.probes.kernel_functions import KernelFunction
from perfcore.events.probes.kprobes import KernelMoment, Kprobes
from perfcore.events.probes.moment import UserMoment
from perfcore.events.probes.uprobe_definition import ProbedFile
from perfcore.events.probes.uprobes import Place, Uprobes


class MultiLink(Link):
    """What both have in common."""

    def __init__(
        self, program: Program, on_end: Callable[[Link], None], returns: bool, discharge: Callable[[], None]
    ) -> None:
        """`discharge`: of the memory that it takes."""
        super().__init__(program, on_end)
        self.returns = returns
        self._discharge = discharge
        self._ends: list[Callable[[], None]] = []

    def let_go(self) -> None:
        self._unregister()
        self._discharge()

    def _unregister(self) -> None:
        while self._ends:
            self._ends.pop()()


@dataclass(frozen=True, slots=True)
class ProbedFunction:
    """One of the kernel's, and what programs are told there."""

    function: KernelFunction
    address: int
    cookie: int


class KprobeMultiLink(MultiLink):
    """At functions of the kernel."""

    type = LINK_TYPE_KPROBE_MULTI

    def __init__(
        self,
        program: Program,
        on_end: Callable[[Link], None],
        kprobes: Kprobes,
        functions: Sequence[ProbedFunction],
        *,
        returns: bool,
        discharge: Callable[[], None],
    ) -> None:
        """`functions`: by their addresses, which may come more than once."""
        super().__init__(program, on_end, returns, discharge)
        self.functions = functions
        for probed in {probed.address: probed for probed in functions}.values():
            self._ends.append(kprobes.listen(probed.function, returns, self._listener(probed)))

    def _listener(self, probed: ProbedFunction) -> Callable[[Cpu, Task, KernelMoment], None]:
        places = (probed.address, 0) if self.returns else (probed.address,)

        def hit(cpu: Cpu, task: Task, moment: KernelMoment) -> None:
            self.program.on_probe(cpu, probed.cookie, places, moment.register)

        return hit


@dataclass(frozen=True, slots=True)
class ProbedOffset:
    """An instruction of the file. `semaphore`: the offset of its count of listeners; 0: it has none."""

    offset: int
    semaphore: int
    cookie: int


class UprobeMultiLink(MultiLink):
    """At instructions of a file, in one process, or wherever it is mapped."""

    type = LINK_TYPE_UPROBE_MULTI

    def __init__(
        self,
        program: Program,
        on_end: Callable[[Link], None],
        uprobes: Uprobes,
        path: str,
        file: ProbedFile,
        places: Sequence[ProbedOffset],
        *,
        task: Task | None,
        returns: bool,
        discharge: Callable[[], None],
    ) -> None:
        """`task`: the process whose it is. LinuxError: at one of the places nothing can be, and it is at none."""
        super().__init__(program, on_end, returns, discharge)
        self.path = path
        self.places = places
        self.task = task
        try:
            for probed in places:
                consumer, place = _Consumer(self, probed), Place(file.inode, probed.offset)
                uprobes.register(place, consumer, file.size)
                self._ends.append(partial(uprobes.unregister, place, consumer))
        except LinuxError:
            self._unregister()
            program.release()
            raise


class _Consumer:
    """struct bpf_uprobe"""

    def __init__(self, link: UprobeMultiLink, probed: ProbedOffset) -> None:
        self.hears_returns = link.returns
        self.semaphore = probed.semaphore
        self._link = link
        self._probed = probed

    def wants(self, memory: MemoryMap) -> bool:
        """uprobe_multi_link_filter()"""
        task = self._link.task
        return task is None or task.mm is memory

    def hit(self, cpu: Cpu, task: Task) -> None:
        if not self.hears_returns:
            self._run(cpu, task, (cpu.core.pc,))

    def returned(self, cpu: Cpu, task: Task, function: int) -> None:
        self._run(cpu, task, (function, cpu.core.pc))

    def _run(self, cpu: Cpu, task: Task, places: tuple[int, ...]) -> None:
        """uprobe_prog_run()"""
        link = self._link
        if link.task is None or link.task.process is task.process:
            moment = UserMoment(task.architecture, cpu, task, 0)
            link.program.on_probe(cpu, self._probed.cookie, places, moment.register)
