"""Kernel: the Linux of one machine. Answers every exit of a CPU; owns tasks, timers, tracepoints, syscalls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from emulator._native import PhysicalMemory
from emulator.arch import architecture
from emulator.clock import Clock
from emulator.core_file import CoreFile, KernelCosts
from emulator.cpu import Cpu, ExceptionKind, TrapKind
from emulator.linux import procfs, sysfs
from emulator.linux.errors import ENOENT, ENOSYS, LinuxError
from emulator.linux.exceptions import EXCEPTION_SIGNALS, REGISTER_SIGNALS
from emulator.linux.file import Caller, File, FileTable
from emulator.linux.file_tree import FileTree
from emulator.linux.limits import RLIMIT_NOFILE, RLIMIT_SIGPENDING, RLIMIT_STACK
from emulator.linux.loader import Executable, Loader
from emulator.linux.mapping import Mapping
from emulator.linux.mm import MemoryMap
from emulator.linux.page_cache import PageCache
from emulator.linux.program import NOT_EXECUTABLE, NOT_FOUND, Program, ProgramError
from emulator.linux.random import Random
from emulator.linux.signal import SI_KERNEL, SIGKILL, SIGRTMIN, SignalInfo
from emulator.linux.signal_delivery import Interrupted, deliver, force, is_restart
from emulator.linux.syscalls import table
from emulator.linux.syscalls.names import syscall_name
from emulator.linux.task import COMM_LENGTH, FileContext, Task
from emulator.linux.timers import Timer, Timers
from emulator.linux.tracepoints import Tracepoints
from emulator.sysregs import UndefinedRegister

FIRST_PID = 1000  # of the program; its parent, which nobody sees, is 999
COMM_BEFORE_EXEC = "perfemu-exec"
MOST_MESSAGES = 1000  # to the user, of one run

Call = Callable[[Task, tuple[int, ...]], int | None]


class Configuration(Protocol):
    """What of a machine's configuration its Linux needs (a ``MachineConfig``)."""

    @property
    def isa(self) -> str: ...
    @property
    def core(self) -> CoreFile: ...
    @property
    def seed(self) -> int: ...
    @property
    def sysroot(self) -> str | None: ...
    @property
    def writable_paths(self) -> tuple[str, ...]: ...


class Kernel:
    """One Linux on the CPUs and the RAM of one machine."""

    def __init__(self, config: Configuration, memory: PhysicalMemory, cpus: list[Cpu], clock: Clock) -> None:
        self.architecture = architecture(config.isa)
        self.memory = memory
        self.cpus = cpus
        self.clock = clock
        self.random = Random(config.seed)
        self.tracepoints = Tracepoints()
        self._costs = config.core.kernel
        self._takes_time = config.core.model is not None or self._costs != KernelCosts()
        self.system_cycles = 0  # that all tasks together have used
        self.timers = Timers(clock, lambda: cpus[0].core.cycles)
        self.tasks: dict[int, Task] = {}
        self.exit_status: int | None = None  # wait status word of the first process
        self.messages: Callable[[str], None] = _to_stderr
        self._said: set[str] = set()
        self.page_cache = PageCache(memory)
        self._zero_frame = memory.allocate()
        self._loader = Loader(self.architecture, memory, self.page_cache, self.random, self._zero_frame)
        self.file_tree = FileTree(
            now=clock.realtime_ns,
            random=self.random,
            message=self.name_once,
            pages=self.page_cache,
            open_flags=self.architecture.open_flags,
            sysroot=config.sysroot,
            writable_paths=config.writable_paths,
        )
        self._current: list[Task | None] = [None] * len(cpus)
        self._first: Task | None = None
        self._rows = table.by_number(table.load(), config.isa)
        self._calls: dict[int, Call] = {}  # compiled rows
        for cpu in cpus:
            self.architecture.claim_registers(cpu, clock)
        procfs.install(self)
        sysfs.install(self)

    # ---- what other rooms attach

    def add_timer(self, cycle: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` at exactly that cycle, between two instructions."""
        return self.timers.at_cycle(cycle, callback)

    def next_deadline(self) -> int:
        """The cycle at which something is due."""
        return self.timers.next_cycle()

    def install_syscall(self, row: table.Syscall) -> None:
        """Put `row` in place of what this kernel has for its number: a call that another room's object answers."""
        number = row.number(self.architecture.isa)
        if number is not None:
            self._rows[number] = row
            self._calls.pop(number, None)

    def register_files(self, path: str, factory: Callable[[Caller, int], File]) -> None:
        """A file of /proc, /sys or /dev that another room answers: `factory(task, flags)` opens it."""
        self.file_tree.register(path, factory)

    def current(self, cpu: Cpu) -> Task:
        task = self._current[cpu.number]
        assert task is not None, f"CPU {cpu.number} runs no task"
        return task

    def name_once(self, message: str) -> None:
        """Say something to the user, if it has not been said. A guest that causes ever new messages is cut off."""
        if message in self._said or len(self._said) > MOST_MESSAGES:
            return
        self._said.add(message)
        self.messages(_visible(message) if len(self._said) <= MOST_MESSAGES else "further messages are not shown")

    # ---- the first process

    def prepare(self, program: Program) -> Task:
        """The first process before its execve: an identity and files, and no memory. `start` calls this if need be."""
        if self._first is not None:
            return self._first
        cpu = self.cpus[0]
        files = FileTable()
        for number, descriptor in enumerate((program.stdin, program.stdout, program.stderr)):
            if descriptor >= 0:
                files.install_at(number, self.file_tree.standard_stream(descriptor, program.interactive))
        self.file_tree.allow_writing(program.cwd)
        task = Task(
            tid=FIRST_PID,
            pid=FIRST_PID,
            ppid=FIRST_PID - 1,
            comm=COMM_BEFORE_EXEC,
            mm=self._loader.new_memory_map(),
            files=files,
            fs=FileContext(self.file_tree, program.cwd),
            kernel=self,
            cpu=cpu,
            start_time_ns=self.clock.elapsed_ns(),
            start_busy_ns=self.clock.busy_ns(),
            pgid=FIRST_PID,
            sid=FIRST_PID - 1,
        )
        files.limit = task.limits.soft(RLIMIT_NOFILE)
        self.tasks[task.tid] = self._first = self._current[0] = task
        return task

    def start(self, program: Program) -> None:
        """Make the first process and stop it at its first instruction. Raises ProgramError."""
        task = self.prepare(program)
        argv = tuple(_encode(argument) for argument in program.argv)
        environment = tuple(_encode(f"{name}={value}") for name, value in program.environment)
        try:
            executable = self._loader.prepare(task, self.file_tree, program.path, program.cwd, argv)
            self._replace(task, executable, environment, program.path)
        except LinuxError as error:
            status = NOT_FOUND if error.code == ENOENT else NOT_EXECUTABLE
            raise ProgramError(error.why or f"{program.path}: {error.name}", status) from None
        except MemoryError:
            raise ProgramError(f"{program.path}: does not fit the machine's memory", NOT_EXECUTABLE) from None
        self.tracepoints.sched_in.fire(task, task.cpu)

    def execute(self, task: Task, path: str, argv: list[bytes], environment: list[bytes]) -> None:
        """execve(2): raises LinuxError while the old program can go on; then there is no way back."""
        executable = self._loader.prepare(task, self.file_tree, path, task.fs.cwd, tuple(argv))
        try:
            self._replace(task, executable, tuple(environment), path)
        except (LinuxError, MemoryError) as error:
            self.name_once(f"{path}: execve failed when the old program was gone: {error}")
            self.exit_group(task, SIGKILL)

    def _replace(self, task: Task, executable: Executable, environment: tuple[bytes, ...], path: str) -> None:
        """The point of no return of execve."""
        old, new = task.mm, self._loader.new_memory_map()
        new.stack_limit = task.limits.soft(RLIMIT_STACK)
        new.minor_faults, new.major_faults = old.minor_faults, old.major_faults
        self._watch(task, new)
        old.clear()
        task.mm = new
        task.executable = executable.content.identity.path
        self.tracepoints.task_exec.fire(task)
        self.rename(task, path.rpartition("/")[2], by_exec=True)
        ids = task.credentials.uid, task.credentials.gid
        loaded = self._loader.load(executable, new, environment, path, ids)
        task.signals.reset_for_exec()
        task.files.close_on_exec()
        task.clear_child_tid = 0
        task.robust_list = 0, 0
        task.cpu.set_address_space(new.space)
        self.architecture.start_program(task.cpu.core, loaded.entry, loaded.stack_pointer)

    def _watch(self, task: Task, mm: MemoryMap) -> None:
        """Turn what the memory map tells into tracepoints."""
        mapped, faulted = self.tracepoints.mmap, self.tracepoints.page_fault

        def on_map(mapping: Mapping) -> None:
            if mapped:
                mapped.fire(task, mapping)

        def on_fault(address: int, major: bool | None, user: bool) -> None:
            self._work(task, self._costs.fault)
            if faulted:
                faulted.fire(task, address, major, user)

        mm.on_map, mm.on_fault = on_map, on_fault

    def rename(self, task: Task, comm: str, by_exec: bool = False) -> None:
        task.comm = comm.encode("utf-8", "surrogateescape")[:COMM_LENGTH].decode("utf-8", "surrogateescape")
        self.tracepoints.task_comm.fire(task, by_exec)

    def exit_group(self, task: Task, status: int) -> None:
        """End the task's process with a wait status word."""
        if task.exit_code is not None:
            return
        task.exit_code = status
        self.tracepoints.task_exit.fire(task)
        self.tracepoints.sched_out.fire(task, task.cpu)
        task.mm.clear()
        task.files.close_all()
        if task is self._first:
            self.exit_status = status

    # ---- exits of a CPU

    def _work(self, task: Task, cycles: int) -> None:
        """The kernel works for a task: time goes by, and no PMU counts. What the CPU has begun is completed before."""
        if self._takes_time:
            task.cpu.core.elapse(cycles)
            task.system_cycles += cycles
            self.system_cycles += cycles

    def handle_syscall(self, cpu: Cpu) -> None:
        task = self._current[cpu.number]
        assert task is not None, f"CPU {cpu.number} runs no task"
        core = cpu.core
        self._work(task, self._costs.syscall)
        registers = core.syscall_arguments()
        number, arguments = registers[0], registers[1:]
        call = self._calls.get(number) or self._compile(number)
        tracepoints = self.tracepoints
        if tracepoints.sys_enter:
            tracepoints.sys_enter.fire(task, number, arguments)
        try:
            result = call(task, arguments)
        except LinuxError as error:
            result = -error.code
        except MemoryError:
            self._out_of_memory(task)
            return
        if tracepoints.sys_exit:
            tracepoints.sys_exit.fire(task, number, 0 if result is None else result)
        interrupted = None
        if result is not None:
            if result < 0 and is_restart(result):
                interrupted = Interrupted(-result, number, arguments[0])
            else:
                self.architecture.set_syscall_result(core, result)
        if task.signals.pending or interrupted is not None:
            deliver(task, interrupted)

    def _compile(self, number: int) -> Call:
        row = self._rows.get(number)
        call = self._unknown(number) if row is None else row.compile()
        self._calls[number] = call
        return call

    def _unknown(self, number: int) -> Call:
        isa = self.architecture.isa

        def call(task: Task, arguments: tuple[int, ...]) -> int:
            self.name_once(f"syscall {number} ({syscall_name(isa, number)}) is not modelled: ENOSYS")
            return -ENOSYS

        return call

    def after_interrupt(self, cpu: Cpu) -> None:
        """An interrupt has been handled: on the way back to user mode signals are delivered."""
        task = self._current[cpu.number]
        if task is not None and task.signals.pending:
            deliver(task)

    def handle_fault(self, cpu: Cpu) -> None:
        task = self.current(cpu)
        address, access = cpu.core.fault_address, cpu.core.fault_access
        try:
            failure = task.mm.fault(address, access)
        except MemoryError:
            self._out_of_memory(task)
            return
        if failure is not None:
            signal, code = failure
            trap, error = self.architecture.fault_syndrome(access, task.mm.space.lookup(address) is not None)
            force(task, SignalInfo(signal, code, address, trap_number=trap, error_code=error))
        if task.signals.pending:
            deliver(task)

    def _out_of_memory(self, task: Task) -> None:
        megabytes = self.memory.size_bytes >> 20
        self.name_once(f"{task.comm}: killed: the machine's {megabytes} MiB of memory are used up")
        self.exit_group(task, SIGKILL)

    def handle_register(self, cpu: Cpu) -> None:
        try:
            self.architecture.complete_register_access(cpu)
        except UndefinedRegister:
            task = self.current(cpu)
            self._work(task, self._costs.exception)
            signal, code = REGISTER_SIGNALS[TrapKind(cpu.core.trapped[0])]
            force(task, SignalInfo(signal, code, cpu.core.pc if code != SI_KERNEL else 0))
            deliver(task)

    def handle_exception(self, cpu: Cpu) -> None:
        task = self.current(cpu)
        self._work(task, self._costs.exception)
        kind = ExceptionKind(cpu.core.exception)
        signal, code = EXCEPTION_SIGNALS[kind]
        if kind is ExceptionKind.INTERNAL:
            self.name_once(f"{task.comm}: the engine stopped at {cpu.core.pc:#x}, nobody knows why: a bug of perfemu")
        force(task, SignalInfo(signal, code, cpu.core.pc if code != SI_KERNEL else 0))
        deliver(task)

    def handle_deadline(self, cpu: Cpu) -> None:
        self.timers.fire_due()
        self.after_interrupt(cpu)

    # ---- signals and sleep

    def send_signal(self, task: Task, info: SignalInfo) -> None:
        """Make a signal pending; it is delivered on the way back to user mode. One that queues may find no room."""
        if info.signal < SIGRTMIN or len(task.signals.pending) < task.limits.soft(RLIMIT_SIGPENDING):
            task.signals.post(info)

    def sleep_until(self, task: Task, elapsed_ns: int | None) -> bool:
        """Idle until the clock shows `elapsed_ns` (None: for ever); False when a signal came first."""
        self._work(task, self._costs.switch)
        self.tracepoints.sched_out.fire(task, task.cpu)
        reached = self._idle(task, elapsed_ns)
        if task.exit_code is None:
            self.tracepoints.sched_in.fire(task, task.cpu)
        return reached

    def _idle(self, task: Task, elapsed_ns: int | None) -> bool:
        while not task.signals.deliverable():
            now = self.clock.elapsed_ns()
            if elapsed_ns is not None and now >= elapsed_ns:
                return True
            wake = self.timers.next_time()
            if elapsed_ns is not None and (wake is None or wake > elapsed_ns):
                wake = elapsed_ns
            if wake is None:
                self.name_once(f"{task.comm}: killed: it waits, and nothing is left that could wake it")
                self.exit_group(task, SIGKILL)
                return False
            self.clock.sleep(wake - now)
            self.timers.fire_due()
        return False


def _visible(text: str) -> str:
    """A guest's names may be in it: their control characters shall not reach the user's terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or "\udc80" <= char <= "\udcff" else char.encode("unicode_escape").decode()
        for char in text
    )


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _to_stderr(message: str) -> None:
    with suppress(OSError):  # the guest does not fail because nobody can be told
        print(f"perfemu: {message}", file=sys.stderr)
