"""Bpf: all maps, programs, links and types of one machine, and the running of programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol

from emulator._native import PhysicalMemory
from emulator.cpu import Cpu
from emulator.linux.errors import E2BIG, LinuxError
from emulator.linux.instruction_alarm import executed
from emulator.linux.process.task import Process, Task
from emulator.linux.signals.signal import SignalInfo
from perfcore.abi.bpf import ProgType
from perfcore.bpf.allowance import PER_INSTRUCTION, Allowance
from perfcore.bpf.btf import Btf, KernelBtf
from perfcore.bpf.instructions import FRAMES, STACK_BYTES
from perfcore.bpf.kernel_objects import KernelObjects, task_address
from perfcore.bpf.links import Link, raw_sources
from perfcore.bpf.maps.map import Map
from perfcore.bpf.memory import KernelMemory
from perfcore.bpf.objects import Registry
from perfcore.bpf.program import Program
from perfcore.bpf.program_kind import PT_REGS_BYTES, program_kinds
from perfcore.bpf.registers import system_call_registers
from perfcore.bpf.run import BUDGET, Call, Exhausted, Reader, Run
from perfcore.bpf.trace_pipe import TraceBuffer
from perfcore.bpf.trampolines import Trampolines
from perfcore.bpf.types.vmlinux import KernelTypes, kernel_types
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
from perfcore.events.probes.kprobes import Kprobes
from perfcore.events.probes.uprobes import Uprobes
from perfcore.events.settings import Settings

_MAPS = 0xFFFF_8881_0000_0000  # where a kernel would have its maps; programs do not read there
_MAP_BYTES = 1 << 10
_MOST_WITHIN = 16  # runs that others have brought about
_RUN_COST = 50  # instructions: to begin and to end


class BpfKernel(Linux, Protocol):
    """What programs need of their kernel."""

    @property
    def memory(self) -> PhysicalMemory: ...
    @property
    def tasks(self) -> Mapping[int, Task]: ...

    def send_signal(self, task: Task, info: SignalInfo) -> bool: ...
    def signal_process(self, process: Process, info: SignalInfo) -> bool: ...
    def name_once(self, message: str) -> None: ...


KERNEL_BTF_ID = 1  # the first that there is
_WITHIN_OTHERS = frozenset({ProgType.RAW_TRACEPOINT, ProgType.TRACING})


class _Place:
    """Where a run has its stack and its context."""

    def __init__(self, memory: KernelMemory) -> None:
        self.stack = memory.add(memoryview(bytearray(STACK_BYTES * FRAMES)))
        self.context = memory.add(memoryview(bytearray(8)))

    def fill(self, context: bytes, memory: KernelMemory) -> None:
        memory.views[self.context.address >> 32] = memoryview(bytearray(context))
        self.stack.data[:] = bytes(len(self.stack.data))


class Bpf:
    """One for each machine. It changes nothing but maps and what programs ask for: programs take no time."""

    def __init__(self, kernel: BpfKernel, settings: Settings) -> None:
        """`settings`: perf_event's sysctls."""
        self.kernel = kernel
        self._settings = settings
        self.memory = KernelMemory(kernel.memory)
        self.kinds = program_kinds(kernel.architecture.isa)
        self.maps: Registry[Map] = Registry()
        self.programs: Registry[Program] = Registry()
        self.types: Registry[Btf] = Registry()
        self.links: Registry[Link] = Registry()
        self.printed = TraceBuffer()
        self.runs = False
        self.allowance = Allowance(lambda: executed(kernel.cpus))
        self._random = Random(0)  # of its own: what programs draw is missed by nobody else
        self._places = [_Place(self.memory)]  # of runs: those within others need their own
        self._depth = 0
        self._registers = self.memory.add(memoryview(bytearray(PT_REGS_BYTES[kernel.architecture.isa])))
        self.raw_tracepoints = raw_sources(self._show_registers, task_address)
        self.objects = KernelObjects(kernel.tasks)
        self.trampolines = Trampolines(kernel)
        self.kprobes = Kprobes(kernel)
        self.uprobes = Uprobes(kernel)
        self.types.add(KernelBtf(lambda: self.kernel_types().data))

    def kernel_types(self) -> KernelTypes:
        return kernel_types(self.kernel.architecture.isa)

    # ---- what maps and helpers ask

    @property
    def cpu_count(self) -> int:
        return len(self.kernel.cpus)

    @property
    def max_stack(self) -> int:
        return self._settings.max_stack

    @property
    def cpu_number(self) -> int:
        return self.kernel.executing_cpu.number

    def irq_work(self, work: Callable[[], object]) -> None:
        self.kernel.tracepoints.recursion.irq_work(self.kernel.executing_cpu, work)

    def address_of(self, map: Map) -> int:
        return _MAPS + map.id * _MAP_BYTES

    def map_at(self, address: int) -> Map:
        return self.maps.get((address - _MAPS) // _MAP_BYTES)

    def random_u32(self) -> int:
        return self._random.getrandbits(32)

    def print(self, cpu: Cpu, task: Task | None, text: bytes) -> None:
        self.printed.add(cpu, task, self.kernel.clock.monotonic_ns(), text)

    def signal_task(self, task: Task, info: SignalInfo) -> None:
        self.kernel.send_signal(task, info)

    def signal_process(self, task: Task, info: SignalInfo) -> None:
        self.kernel.signal_process(task.process, info)

    def _show_registers(self, cpu: Cpu, number: int) -> int:
        """The address of those of a task that is in a system call, for programs to read there."""
        words = system_call_registers(self.kernel.architecture, cpu, number)
        self._registers.data[: len(words)] = words
        return self._registers.address

    # ---- running

    def run(
        self,
        program: Program,
        context: bytes,
        cpu: Cpu,
        *,
        event: PerfEvent | None = None,
        cookie: int = 0,
        probed: int = 0,
        call: Call | None = None,
        read: Reader | None = None,
    ) -> int:
        """What it returns. 0 where another one runs (bpf_prog_active), or it does not come to an end.

        Those of tracepoints and functions are run while others are, but never while they run themselves.
        """
        alone = program.type not in _WITHIN_OTHERS
        if program.active or (alone and self.runs):
            program.misses += 1
            return 0
        budget = self.allowance.left(BUDGET)
        if budget <= 0:
            self._say_ended(program)
            return 0
        place = self._place()
        if place is None:
            program.misses += 1
            return 0
        place.fill(context.ljust(self.kinds[program.type].end, b"\0"), self.memory)
        run = Run(
            self, program.functions, place.stack.address, cpu, self.kernel.current(cpu),
            event=event, cookie=cookie, probed=probed, budget=budget, call=call, read_more=read,
        )  # fmt: skip
        program.active, self.runs = True, self.runs or alone
        self._depth += 1
        try:
            return self._execute(program, run, place.context.address)
        finally:
            program.active, self.runs = False, self.runs and not alone
            self._depth -= 1

    def _execute(self, program: Program, run: Run, context: int) -> int:
        traced_by, arguments = program.traced_by, (context,)
        if traced_by is not None:
            traced_by.entered(run.cpu, arguments, None)
        try:
            result = program.functions[0](run, context) & 0xFFFF_FFFF
        except Exhausted:
            self._say_ended(program, run.given)
            result = 0
        finally:
            self.allowance.spend(_RUN_COST + run.spent)
            run.finish()
        if traced_by is not None:
            traced_by.returned(run.cpu, arguments, result, None)
        return result

    def _place(self) -> _Place | None:
        """Of the next run; None: too many are within others, or BPF memory is all in use."""
        if self._depth >= _MOST_WITHIN:
            return None
        if self._depth == len(self._places):
            try:
                self._places.append(_Place(self.memory))
            except LinuxError:
                return None
        return self._places[self._depth]

    def check_allowance(self, what: str, cost: int = 1) -> None:
        """E2BIG where less is left of it."""
        if self.allowance.left(cost) < cost:
            why = f"BPF: {what} no more before the guest has executed more: {PER_INSTRUCTION} for each instruction"
            self.kernel.name_once(why)
            raise LinuxError(E2BIG, why)

    def charge_work(self, what: str, size: int, cost: int) -> Callable[[], None]:
        """For what takes so many bytes, until what is returned is called, and so much time. E2BIG, ENOMEM."""
        self.check_allowance(what, cost)
        self.allowance.spend(cost)
        return self.memory.charge(size)

    def _say_ended(self, program: Program, budget: int = 0) -> None:
        name = program.loaded.name.decode("utf-8", "replace") or "without a name"
        what = f"BPF program {program.id} ({name})"
        if budget == BUDGET:
            self.kernel.name_once(f"{what}: a run was ended after {BUDGET:,} instructions")
        else:
            self.kernel.name_once(
                f"{what} was ended: {PER_INSTRUCTION} instructions of programs for each of the guest's"
            )

    def tell(self, program: Program, *, loaded: bool) -> None:
        """Whoever wants to hear of programs that come and go."""
        self.kernel.tracepoints.bpf_program.fire(self.kernel.executing_cpu, loaded, program.id, program.tag)

    def ended(self, program: Program) -> None:
        if program.id:
            self.tell(program, loaded=False)
        self.programs.remove(program)
