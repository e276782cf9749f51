"""Machine: hardware, and the software that it carries: runs CPUs in turn, hands every exit of one to the software."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from emulator._native import PhysicalMemory, SharedCaches
from emulator.clock import REALTIME_AT_BOOT_NS, Clock, VariableClock
from emulator.core_file.core_file import CoreFile, load_core
from emulator.cpu import Cpu, ExitReason
from emulator.frequency import FrequencyProfile

MEMORY_BYTES = 4 << 30
QUANTUM_CYCLES = 1000
MOST_CPUS = 64  # that a mask of a word has room for

Turn = tuple[Cpu, int]  # that CPU executes until that cycle


@dataclass(frozen=True, slots=True)
class MachineConfig:
    """What fixes a machine's behaviour. Equal configs and equal software give equal runs, on any host."""

    isa: str  # "aarch64" or "x86_64"
    core: CoreFile = field(default_factory=lambda: load_core("ideal"))
    memory_bytes: int = MEMORY_BYTES
    seed: int = 0x9E3779B97F4A7C15  # of every random byte that a guest gets
    cpus: int = 1
    quantum: int = QUANTUM_CYCLES  # cycles by which busy CPUs may be apart
    schedule_seed: int | None = None  # draws the interleaving; None: 0 for several CPUs, nothing drawn for one
    most_instructions: int | None = None  # of all CPUs together; then the machine is stopped
    most_ns: int | None = None  # of its own time
    realtime_at_boot_ns: int = REALTIME_AT_BOOT_NS  # since 1970, UTC
    frequencies: FrequencyProfile | None = None  # of the CPUs' clock; None: the core's, always


class Hardware:
    """CPUs, RAM, what the CPUs share, and the clock. Knows no software.

    Raises ValueError for what no machine can be made of, also in the core file's tables.
    """

    def __init__(self, config: MachineConfig) -> None:
        self.config = config
        self.memory = PhysicalMemory(config.memory_bytes)
        if config.cpus < 1 or config.quantum < 1:
            raise ValueError(f"{config.cpus} CPUs in turns of {config.quantum} cycles: there must be at least one")
        model = config.core.model
        self.caches = SharedCaches(model, config.cpus) if model is not None and config.cpus > 1 else None
        features = config.core.features if config.isa == "aarch64" else ()
        self.cpus = [
            Cpu(number, config.isa, self.memory, model, self.caches, features) for number in range(config.cpus)
        ]
        core = self.cpus[0].core
        settings = (lambda: core.cycles, config.core.frequency_hz, config.realtime_at_boot_ns)
        profile = config.frequencies
        self.clock = Clock(*settings) if profile is None else VariableClock(*settings, profile=profile)
        for cpu in self.cpus:
            cpu.passed = self.clock.passed


class Software(Protocol):
    """What a machine carries: a modelled kernel, or a board with whatever is booted there."""

    @property
    def answers(self) -> Mapping[ExitReason, Callable[[Cpu], None]]:
        """Who answers each of the exits that its CPUs can make. Of SYSCALL and REGISTER, PC says which."""

    @property
    def next_turn(self) -> Callable[[], Turn | None]:
        """Tells who executes next, and until when; None when the machine has ended."""


class Machine:
    """A computer that runs."""

    def __init__(self, hardware: Hardware, software: Software) -> None:
        self.config = hardware.config
        self.memory = hardware.memory
        self.cpus = hardware.cpus
        self.clock = hardware.clock
        self._software = software
        self._pausing = False
        self._held: Turn | None = None  # as long as it has paused: who was about to execute

    def run_to_the_end(self) -> None:
        """Or to a pause. After that, and after KeyboardInterrupt, it can be called again."""
        answers = {int(reason): answer for reason, answer in self._software.answers.items()}
        next_turn = self._software.next_turn
        turn = self._held or next_turn()
        self._held = None
        while turn is not None:
            if self._pausing:
                cpu = turn[0]
                self._pausing, self._held = False, (cpu, cpu.core.cycles)  # so that what comes meanwhile is heeded
                return
            cpu, until = turn
            answers[cpu.core.run(until)](cpu)
            turn = next_turn()

    @property
    def paused(self) -> bool:
        """Whether it has stopped before its end: nothing is under way then, and a run goes on from there."""
        return self._held is not None

    def pause(self) -> None:
        """Stop before anything else executes. Called while it runs: by a timer, or by whoever answers an exit."""
        self._pausing = True
