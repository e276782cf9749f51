"""Kernel: the Linux of one machine. Answers every exit of a CPU; owns tasks, timers, tracepoints, syscalls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from emulator.arch.processor import Processor
from emulator.core_file.core_file import KernelCosts
from emulator.cpu import Cpu, ExceptionKind, ExitReason, TrapKind
from emulator.linux.arch import architecture
from emulator.linux.cgroup import cgroupfs
from emulator.linux.cgroup.cgroups import Cgroup, Cgroups
from emulator.linux.configuration import LinuxConfig
from emulator.linux.debug_registers import DebugRegisters
from emulator.linux.errors import LinuxError
from emulator.linux.fs import sysfs
from emulator.linux.fs.file import Caller, File
from emulator.linux.fs.file_tree import FileTree
from emulator.linux.fs.mounted_tree import MEMORY_LIMIT_BYTES
from emulator.linux.ipc.ipc import Ipc
from emulator.linux.mm.mapping import MappedFile
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.mm.page_cache import PageCache
from emulator.linux.mm.vdso import Vdso
from emulator.linux.proc import procfs
from emulator.linux.process.lifecycle import Lifecycle
from emulator.linux.process.loader import Loader
from emulator.linux.process.task import COMM_LENGTH, Process, Task, TaskState
from emulator.linux.ptrace.stepping import Stepping
from emulator.linux.random import Random
from emulator.linux.sched.choices import Choices
from emulator.linux.sched.dispatcher import Dispatcher
from emulator.linux.sched.futexes import Futexes
from emulator.linux.sched.hrtimers import HrTimers
from emulator.linux.sched.restartable import came_back
from emulator.linux.sched.scheduler import Scheduler
from emulator.linux.sched.timers import Timer, Timers
from emulator.linux.signals.exceptions import REGISTERS, exception_info, fault_info
from emulator.linux.signals.signal import (
    SI_KERNEL,
    SIGKILL,
    SIGSEGV,
    Generated,
    Interrupted,
    SignalAction,
    SignalInfo,
)
from emulator.linux.signals.signal_delivery import deliver, force
from emulator.linux.signals.signal_sending import send_to_process, send_to_thread
from emulator.linux.syscalls import table
from emulator.linux.syscalls.entry import SyscallEntry
from emulator.linux.tracepoints import Tracepoints
from emulator.linux.tty.terminals import Terminals
from emulator.linux.user_breakpoints import UserBreakpoints
from emulator.machine import Hardware
from emulator.sysregs import UndefinedRegister

MOST_MESSAGES = 1000  # to the user, of one run


class Kernel:
    """One Linux on the CPUs and the RAM of one machine."""

    def __init__(self, hardware: Hardware, config: LinuxConfig) -> None:
        """Raises LinuxError for a bind that cannot be."""
        machine, cpus, memory, clock = hardware.config, hardware.cpus, hardware.memory, hardware.clock
        self.architecture = architecture(machine.isa)
        self.processor = Processor.of(machine.core, machine.isa, len(cpus))
        self.memory = memory
        self.cpus = cpus
        self.clock = clock
        self.random = Random(machine.seed)
        self.tracepoints = Tracepoints()
        self.stepping = Stepping(self.tracepoints)
        self.costs = machine.core.kernel
        self._takes_time = machine.core.model is not None or self.costs != KernelCosts()
        # CPUs in step with each other can starve a thread: one that looks for a lock always just before it is free.
        choices = Choices(0 if machine.schedule_seed is None and len(cpus) > 1 else machine.schedule_seed)
        dispatcher = Dispatcher(self, cpus, clock, self.tracepoints, choices)
        self.dispatcher = dispatcher
        self.scheduler = Scheduler(self, dispatcher, clock, self.tracepoints, machine.quantum, choices, hardware.caches)
        self.next_turn = self.scheduler.next_turn
        self.tasks: dict[int, Task] = {}
        self.debug_registers = {cpu.number: DebugRegisters(cpu) for cpu in cpus}
        self.user_breakpoints: UserBreakpoints[Task] | None = None  # perf's, for ptrace
        self.check_fork: Callable[[Task, bool], None] = lambda parent, makes_thread: None  # perf
        self.futexes = Futexes()
        self.hrtimers = HrTimers(self.tracepoints.hrtimer, clock)
        self.exit_status: int | None = None  # wait status word of the first process
        self.stopped: str | None = None  # why the machine was stopped before that had ended by itself
        self.messages: Callable[[str], None] = _to_stderr
        self.outside_hears: Callable[[int, int], bool] = lambda pid, signal: False
        self.undefined_instruction: Callable[[Task, int], str | None] = lambda task, pc: None  # what to say of one
        self._said: set[str] = set()
        self.page_cache = PageCache(memory)
        self.ipc = Ipc(self.page_cache, self)
        hwcap = self.architecture.hwcap(self.processor)
        zero_frame = memory.allocate()
        vdso = Vdso(self.architecture, memory, clock) if config.vdso else None
        loader = Loader(self.architecture, memory, self.page_cache, self.random, zero_frame, hwcap, vdso)
        self.file_tree = FileTree(
            now=clock.realtime_ns,
            random=self.random,
            message=self.name_once,
            pages=self.page_cache,
            open_flags=self.architecture.open_flags,
            config=config,
            memory_limit_bytes=min(MEMORY_LIMIT_BYTES, memory.size_bytes // 2),
        )
        self.cgroups = Cgroups(self.file_tree.superblock.inodes.new)
        self.lifecycle = Lifecycle(self, loader, config.most_tasks)
        self.syscalls = SyscallEntry(self, table.by_number(table.load(), machine.isa))
        for cpu in cpus:
            self.architecture.claim_registers(cpu, clock, self.processor)
        self.terminals = Terminals(self)
        self.file_tree.console.attach(self.terminals, self.scheduler)
        procfs.install(self)
        sysfs.install(self)
        cgroupfs.install(self)

    # ---- what other rooms attach

    def add_timer(self, cycle: int, callback: Callable[[], None], cpu: Cpu | None = None) -> Timer:
        """Call `callback` at exactly that cycle of `cpu` (None: of the one that executes), between two instructions.

        For who observes: that it is called changes nothing of who executes when.
        """
        dispatcher = self.dispatcher
        queue = dispatcher.executing if cpu is None else dispatcher.queues[cpu.number]
        return queue.observers.at_cycle(cycle, callback)

    @property
    def timers(self) -> Timers:
        """Of the CPU for which the machine works at the moment."""
        return self.dispatcher.executing.timers

    @property
    def executing_cpu(self) -> Cpu:
        """For which the machine works at the moment."""
        return self.dispatcher.executing.cpu

    def come_to_now(self, cpu: Cpu) -> None:
        """If it idles: let the time pass there that has passed on the CPU that executes."""
        self.scheduler.come_to_now(cpu)

    def register_files(self, path: str, factory: Callable[[Caller, int], File]) -> None:
        """A file of /proc, /sys or /dev that another room answers: `factory(task, flags)` opens it."""
        self.file_tree.register(path, factory)

    def current(self, cpu: Cpu) -> Task | None:
        """The task of that CPU; None while it idles."""
        return self.dispatcher.current(cpu)

    @property
    def executes(self) -> bool:
        """Whether the guest executes it."""
        return False

    @property
    def keeps_frame_pointers(self) -> bool:
        """It has no frames here."""
        return False

    def thread(self, cpu: Cpu) -> tuple[int, int]:
        """pid and tid of the task of that CPU; 0, 0 while it idles."""
        task = self.dispatcher.queues[cpu.number].current
        return (0, 0) if task is None else (task.process.pid, task.tid)

    def cgroup(self, cpu: Cpu) -> Cgroup:
        """That of the task of that CPU; the root's while it idles."""
        task = self.dispatcher.current(cpu)
        return self.cgroups.root if task is None else task.cgroup

    def running(self, cpu: Cpu) -> Task:
        """... when it cannot idle, because it has just executed."""
        task = self.dispatcher.queues[cpu.number].current
        assert task is not None, f"CPU {cpu.number} runs no task"
        return task

    def calling(self) -> Task:
        """The task for which the machine works at the moment: it made the system call."""
        return self.running(self.dispatcher.executing.cpu)

    def mappings_of(self, file: MappedFile) -> int:
        """How many mappings of all processes show a file."""
        return sum(mm.mappings.count(file) for mm in self._memories())

    def _memories(self) -> set[MemoryMap]:
        return {task.mm for task in self.tasks.values() if task.exit_code is None}

    def writes_mapped(self, file: MappedFile) -> bool:
        """Whether any process has it mapped so that it could write it."""
        mapped = [mapping for mm in self._memories() for mapping in mm.mappings if mapping.file == file]
        return any(mapping.shared and mapping.may_write for mapping in mapped)

    def name_once(self, message: str) -> None:
        """Say something to the user, if it has not been said. A guest that causes ever new messages is cut off."""
        if message in self._said or len(self._said) > MOST_MESSAGES:
            return
        self._said.add(message)
        self.messages(_visible(message) if len(self._said) <= MOST_MESSAGES else "further messages are not shown")

    # ---- processes

    def stop(self, why: str) -> None:
        """A limit has been reached: the machine's first process ends, and what else runs."""
        self.stopped = why
        self.lifecycle.end_process(self.lifecycle.first.process, SIGKILL)

    def rename(self, task: Task, comm: str, by_exec: bool = False) -> None:
        comm = comm.encode("utf-8", "surrogateescape")[:COMM_LENGTH].decode("utf-8", "surrogateescape")
        self.tracepoints.task_rename.fire(task, comm)
        task.comm = comm
        self.tracepoints.task_comm.fire(task, by_exec)
        if by_exec:
            self.tracepoints.sched_process_exec.fire(task)

    # ---- exits of a CPU

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        return {
            ExitReason.SYSCALL: self.syscalls.handle,
            ExitReason.REGISTER: self.handle_register,
            ExitReason.OVERFLOW: self.handle_overflow,
            ExitReason.FAULT: self.handle_fault,
            ExitReason.EXCEPTION: self.handle_exception,
            ExitReason.DEADLINE: self.handle_deadline,
            ExitReason.BREAKPOINT: self.handle_breakpoint,
            ExitReason.WATCHPOINT: self.handle_watchpoint,
            ExitReason.STEP: self.handle_step,
        }

    def work(self, task: Task, cycles: int) -> None:
        """The kernel works for a task: time goes by, and PMUs count nothing but the kernel's cycles."""
        if self._takes_time:
            task.spend(cycles)

    def handle_overflow(self, cpu: Cpu) -> None:
        """Who counts only observes."""
        self.scheduler.begin_interruption()
        cpu.deliver_interrupts()
        self.after_interrupt(cpu)
        self.scheduler.end_interruption()

    def handle_breakpoint(self, cpu: Cpu) -> None:
        """Whoever has set it only observes, but for signals that a guest asks for."""
        self.scheduler.begin_interruption()
        self.running(cpu).mm.breakpoints.reached(cpu)
        self._tell_hits(cpu, self.debug_registers[cpu.number].reached_instruction)

    def handle_watchpoint(self, cpu: Cpu) -> None:
        """Likewise."""
        self.scheduler.begin_interruption()
        self._tell_hits(cpu, self.debug_registers[cpu.number].reached_data)

    def _tell_hits(self, cpu: Cpu, tell: Callable[[], None]) -> None:
        task = self.running(cpu)
        was_due = task.signals.due
        tell()
        if self.stepping.is_used:  # a watchpoint's stop may be the end of a step, too
            self.stepping.has_stepped(task, cpu)
        if task.signals.due and not was_due:
            deliver(task)
        self.scheduler.end_interruption()

    def after_interrupt(self, cpu: Cpu) -> None:
        """An interrupt has been handled: on the way back to user mode signals are delivered.

        Where the core owes an exit, the interrupt fell on a system call or an exception, which comes first.
        """
        task = self.dispatcher.queues[cpu.number].current
        if task is None or cpu.core.owes_exit:
            return
        if self.stepping.is_used:
            self.stepping.has_stepped(task, cpu)
        if task.signals.due:
            deliver(task)

    def handle_fault(self, cpu: Cpu) -> None:
        task = self.running(cpu)
        address, access = cpu.core.fault_address, cpu.core.fault_access
        try:
            failure = task.mm.fault(address, access)
        except MemoryError:
            self.out_of_memory(task)
            return
        if failure is not None:
            present = task.mm.space.lookup(address) is not None
            force(task, fault_info(self.architecture, failure, address, access, present))
        if task.signals.due:
            deliver(task)

    def out_of_memory(self, task: Task) -> None:
        """The machine has no frame left for what `task` does: its process ends."""
        megabytes = self.memory.size_bytes >> 20
        self.name_once(f"{task.comm}: killed: the machine's {megabytes} MiB of memory are used up")
        self.lifecycle.end_process(task.process, SIGKILL)

    def handle_register(self, cpu: Cpu) -> None:
        try:
            task = self.running(cpu)
            if task.trapped_instructions:
                task.check_instruction(TrapKind(cpu.core.trapped[0]))
            self.architecture.complete_register_access(cpu)
            if self.stepping.is_used:
                self._end_step(cpu)
        except UndefinedRegister:
            self.work(task, self.costs.exception)
            force(task, REGISTERS[TrapKind(cpu.core.trapped[0])].info(cpu.core.pc))
            deliver(task)

    def handle_exception(self, cpu: Cpu) -> None:
        task = self.running(cpu)
        self.work(task, self.costs.exception)
        kind = ExceptionKind(cpu.core.exception)
        if kind is ExceptionKind.INTERNAL:
            self.name_once(f"{task.comm}: the engine stopped at {cpu.core.pc:#x}, nobody knows why: a bug of perfemu")
        force(task, exception_info(self.architecture, kind, cpu.core))
        deliver(task)

    def _end_step(self, cpu: Cpu) -> None:
        """Something else that ended the run may have come with the end of a step."""
        task = self.current(cpu)
        if task is not None and not cpu.core.owes_exit and self.stepping.has_stepped(task, cpu):
            deliver(task)

    def handle_step(self, cpu: Cpu) -> None:
        """A task that is stepped by its tracer has executed an instruction."""
        self._end_step(cpu)

    def return_traced(self, task: Task, interrupted: Interrupted | None) -> None:
        assert task.tracee is not None, f"task {task.tid} is not traced"
        self.syscalls.return_traced(task, task.tracee, interrupted)

    def dies_of_instruction(self, task: Task, pc: int) -> None:
        """SIGILL ends the task's process, and nobody has sent that."""
        message = self.undefined_instruction(task, pc)
        if message is not None:
            self.name_once(message)

    def handle_deadline(self, cpu: Cpu) -> None:
        """Something is due: the scheduler knows what."""
        self.scheduler.end_turn()
        if self.stepping.is_used:
            self._end_step(cpu)

    # ---- signals

    def send_signal(self, task: Task, info: SignalInfo) -> bool:
        """To a thread; it is delivered on the way back to user mode. False: one that queues found no room."""
        return send_to_thread(task, info)

    def signal_process(self, process: Process, info: SignalInfo) -> bool:
        """To the first thread of a process that does not block it."""
        return send_to_process(process, info)

    def tell_generated(self, task: Task, info: SignalInfo, group: bool, result: Generated) -> None:
        self.tracepoints.signal_generate.fire(task, info, group, result)

    def tell_delivered(self, task: Task, info: SignalInfo, action: SignalAction) -> None:
        self.tracepoints.signal_deliver.fire(task, info, action)

    def tell_waits(self, task: Task, number: int) -> None:
        self.tracepoints.sched_process_wait.fire(task, number)

    def tell_itimer(self, task: Task, which: int, value_ns: int, interval_ns: int) -> None:
        self.tracepoints.itimer_state.fire(task, which, value_ns, interval_ns)

    def tell_itimer_expired(self, process: Process, which: int) -> None:
        self.tracepoints.itimer_expire.fire(process, which)

    # ---- what the scheduler asks

    @property
    def ended(self) -> bool:
        return self.exit_status is not None

    def work_switch(self, task: Task) -> None:
        self.work(task, self.costs.switch)

    def resume(self, task: Task) -> None:
        """The call in which `task` slept goes on."""
        self.syscalls.resume(task)

    def return_to_user(self, task: Task) -> None:
        registration = task.rseq
        if registration is not None and registration.stale:
            registration.stale = False
            try:
                came_back(task, registration)
            except LinuxError:
                force(task, SignalInfo(SIGSEGV, SI_KERNEL))
            except MemoryError:
                self.out_of_memory(task)
                return
        if task.signals.due or task.tracee is not None:
            deliver(task)

    def nothing_left(self) -> None:
        """All sleep for what nobody can bring. The first process ends, and with it the machine."""
        for task in self.tasks.values():
            if task.sleep is not None:
                self.name_once(f"{task.sleep.what} waits for what nobody can bring")
            elif task.state is TaskState.STOPPED:
                self.name_once(f"{task.comm} is stopped, and nobody lets it go on")
        first = self.lifecycle.first
        sleeps = any(task.sleep is not None and task.sleep.until_ns is not None for task in self.tasks.values())
        what = (
            "sleeps beyond the end of the machine's time" if sleeps else "waits, and nothing is left that could wake it"
        )
        self.name_once(f"{first.comm}: killed: it {what}")
        self.lifecycle.end_process(first.process, SIGKILL)


def _visible(text: str) -> str:
    """A guest's names may be in it: their control characters shall not reach the user's terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or "\udc80" <= char <= "\udcff" else char.encode("unicode_escape").decode()
        for char in text
    )


def _to_stderr(message: str) -> None:
    with suppress(OSError):  # the guest does not fail because nobody can be told
        print(f"perfemu: {message}", file=sys.stderr)
