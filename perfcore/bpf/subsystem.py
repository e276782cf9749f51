"""Bpf: all maps, programs, links and types of one machine, and the running of programs."""

from __future__ import annotations

from random import Random
from typing import Protocol

from emulator._native import PhysicalMemory
from emulator.cpu import Cpu
from emulator.linux.instruction_alarm import executed
from emulator.linux.process.task import Process, Task
from emulator.linux.signals.signal import SignalInfo
from perfcore.bpf.allowance import PER_INSTRUCTION, Allowance
from perfcore.bpf.btf import Btf
from perfcore.bpf.helpers.observing import task_address
from perfcore.bpf.instructions import FRAMES, STACK_BYTES
from perfcore.bpf.links import Link, raw_sources
from perfcore.bpf.maps.map import Map
from perfcore.bpf.memory import KernelMemory
from perfcore.bpf.objects import Registry
from perfcore.bpf.program import Program
from perfcore.bpf.program_kind import PT_REGS_BYTES, program_kinds
from perfcore.bpf.registers import system_call_registers
from perfcore.bpf.run import BUDGET, Exhausted, Run
from perfcore.bpf.trace_pipe import TraceBuffer
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux

_MAPS = 0xFFFF_8881_0000_0000  # where a kernel would have its maps; programs do not read there
_MAP_BYTES = 1 << 10
_RUN_COST = 50  # instructions: to begin and to end


class BpfKernel(Linux, Protocol):
    """What programs need of their kernel."""

    @property
    def memory(self) -> PhysicalMemory: ...

    def send_signal(self, task: Task, info: SignalInfo) -> bool: ...
    def signal_process(self, process: Process, info: SignalInfo) -> bool: ...
    def name_once(self, message: str) -> None: ...


class Bpf:
    """One for each machine. It changes nothing but maps and what programs ask for: programs take no time."""

    def __init__(self, kernel: BpfKernel) -> None:
        self.kernel = kernel
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
        self._stack = self.memory.add(memoryview(bytearray(STACK_BYTES * FRAMES)))
        self._registers = self.memory.add(memoryview(bytearray(PT_REGS_BYTES[kernel.architecture.isa])))
        self.raw_tracepoints = raw_sources(self._show_registers, task_address)
        self._context = self.memory.add(memoryview(bytearray(8)))

    # ---- what maps and helpers ask

    @property
    def cpu_count(self) -> int:
        return len(self.kernel.cpus)

    @property
    def cpu_number(self) -> int:
        return self.kernel.executing_cpu.number

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
    ) -> int:
        """What it returns. 0 where another one runs (bpf_prog_active), or it does not come to an end."""
        if self.runs:
            program.misses += 1
            return 0
        budget = self.allowance.left(BUDGET)
        if budget <= 0:
            self._say_ended(program)
            return 0
        size = self.kinds[program.type].end
        self.memory.views[self._context.address >> 32] = memoryview(bytearray(context.ljust(size, b"\0")))
        self._stack.data[:] = bytes(len(self._stack.data))
        run = Run(
            self, program.functions, self._stack.address, cpu, self.kernel.current(cpu),
            event=event, cookie=cookie, probed=probed, budget=budget,
        )  # fmt: skip
        self.runs = True
        try:
            return program.functions[0](run, self._context.address) & 0xFFFF_FFFF
        except Exhausted:
            self._say_ended(program, budget)
            return 0
        finally:
            self.runs = False
            self.allowance.spend(_RUN_COST + run.spent)
            run.finish()

    def _say_ended(self, program: Program, budget: int = 0) -> None:
        name = program.loaded.name.decode("utf-8", "replace") or "without a name"
        what = f"BPF program {program.id} ({name})"
        if budget == BUDGET:
            self.kernel.name_once(f"{what}: a run was ended after {BUDGET:,} instructions")
        else:
            self.kernel.name_once(
                f"{what} was ended: {PER_INSTRUCTION} instructions of programs for each of the guest's"
            )

    def ended(self, program: Program) -> None:
        self.programs.remove(program)
