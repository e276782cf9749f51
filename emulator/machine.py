"""Machine: CPUs, RAM, clock and one Linux kernel; runs CPUs in turn, hands every exit of one to whoever answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from emulator._native import PhysicalMemory, SharedCaches
from emulator.clock import REALTIME_AT_BOOT_NS, Clock
from emulator.core_file.core_file import CoreFile, load_core
from emulator.cpu import Cpu, ExitReason
from emulator.linux.fs.binds import Bind
from emulator.linux.fs.mounted_tree import MOST_OUTPUT_BYTES
from emulator.linux.kernel import Kernel
from emulator.linux.program import Program
from emulator.run_limits import RunLimits

MEMORY_BYTES = 4 << 30
QUANTUM_CYCLES = 1000
MOST_TASKS = 4096
MOST_CPUS = 64  # that a mask of a word has room for


@dataclass(frozen=True, slots=True)
class MachineConfig:
    """What fixes a machine's behaviour. Equal configs and programs give equal runs, on any host."""

    isa: str  # "aarch64" or "x86_64"
    core: CoreFile = field(default_factory=lambda: load_core("ideal"))
    memory_bytes: int = MEMORY_BYTES
    seed: int = 0x9E3779B97F4A7C15  # of every random byte that a guest gets
    sysroot: str | None = None  # looked up before the plain path, as qemu-user's -L
    writable_paths: tuple[str, ...] = field(default=())  # besides the current directory and /tmp
    binds: tuple[Bind, ...] = ()  # the host's files at the guest's paths
    isolated: bool = False  # nothing of the host is there but what is bound
    cpus: int = 1
    quantum: int = QUANTUM_CYCLES  # cycles by which busy CPUs may be apart
    schedule_seed: int | None = None  # draws the interleaving; None: 0 for several CPUs, nothing drawn for one
    most_tasks: int = MOST_TASKS  # processes and threads that there may be at once
    most_output_bytes: int = MOST_OUTPUT_BYTES  # that the guest may write to the host's files and streams
    user: tuple[int, int] = (0, 0)  # uid and gid of the first process
    most_instructions: int | None = None  # of all CPUs together; then the machine is stopped
    most_ns: int | None = None  # of its own time
    realtime_at_boot_ns: int = REALTIME_AT_BOOT_NS  # since 1970, UTC
    vdso: bool = True  # False: as Linux booted with vdso=0, which answers each call itself


class Machine:
    """A computer with one Linux. Make it, attach PMUs to its CPUs, `start` a program, `run` to its end."""

    def __init__(self, config: MachineConfig) -> None:
        self.config = config
        self.memory = PhysicalMemory(config.memory_bytes)
        if config.cpus < 1 or config.quantum < 1:
            raise ValueError(f"{config.cpus} CPUs in turns of {config.quantum} cycles: there must be at least one")
        model = config.core.model
        shared = SharedCaches(model, config.cpus) if model is not None and config.cpus > 1 else None
        self.cpus = [Cpu(number, config.isa, self.memory, model, shared) for number in range(config.cpus)]
        core = self.cpus[0].core
        self.clock = Clock(lambda: core.cycles, config.core.frequency_hz, config.realtime_at_boot_ns)
        self.kernel = Kernel(config, self.memory, self.cpus, self.clock, shared)
        self.limits = RunLimits(
            self.kernel,
            config.most_instructions,
            config.most_ns,
            most_per_cycle=1 if config.core.model is None else None,
        )

    def start(self, program: Program) -> None:
        """Load `program` as the first process, stopped at its first instruction. Raises ProgramError."""
        self.kernel.lifecycle.start(program)

    def run(self) -> int:
        """Run until the first process has ended; its wait status. After KeyboardInterrupt it can be called again."""
        kernel = self.kernel
        next_turn = kernel.scheduler.next_turn
        answers: dict[int, Callable[[Cpu], None]] = {
            ExitReason.SYSCALL: kernel.handle_syscall,
            ExitReason.REGISTER: kernel.handle_register,
            ExitReason.OVERFLOW: self._handle_overflow,
            ExitReason.FAULT: kernel.handle_fault,
            ExitReason.EXCEPTION: kernel.handle_exception,
            ExitReason.DEADLINE: kernel.handle_deadline,
            ExitReason.BREAKPOINT: self._handle_breakpoint,
        }
        while (turn := next_turn()) is not None:
            cpu, until = turn
            answers[cpu.core.run(until)](cpu)
        assert kernel.exit_status is not None, "the machine ends with its first process"
        return kernel.exit_status

    def _handle_overflow(self, cpu: Cpu) -> None:
        scheduler = self.kernel.scheduler
        scheduler.begin_interruption()
        cpu.deliver_interrupts()
        self.kernel.after_interrupt(cpu)
        scheduler.end_interruption()

    def _handle_breakpoint(self, cpu: Cpu) -> None:
        """Whoever has set it only observes."""
        scheduler = self.kernel.scheduler
        scheduler.begin_interruption()
        self.kernel.running(cpu).mm.breakpoints.reached(cpu)
        scheduler.end_interruption()
