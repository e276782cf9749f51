"""LinuxMachine: a machine that carries our Linux, and runs programs."""

from __future__ import annotations

from collections.abc import Callable

from emulator.linux.configuration import LinuxConfig
from emulator.linux.fast_forward import FastForward, Skipped
from emulator.linux.instruction_alarm import MOST_PER_CYCLE, InstructionAlarm
from emulator.linux.kernel import Kernel
from emulator.linux.process.program import Program
from emulator.linux.run_limits import RunLimits
from emulator.machine import Hardware, Machine, MachineConfig


class LinuxMachine(Machine):
    """Make it, attach PMUs to its CPUs, `start` a program, `run` to its end."""

    def __init__(self, config: MachineConfig, linux: LinuxConfig | None = None, skipped: Skipped | None = None) -> None:
        hardware = Hardware(config)
        self.kernel = Kernel(hardware, linux or LinuxConfig())
        super().__init__(hardware, self.kernel)
        self._most_per_cycle = 1 if config.core.model is None else MOST_PER_CYCLE
        self.limits = RunLimits(
            self.kernel,
            config.most_instructions,
            config.most_ns,
            self._most_per_cycle,
        )
        self.fast_forward = FastForward(self.kernel, skipped or Skipped())

    def start(self, program: Program) -> None:
        """Load `program` as the first process, stopped at its first instruction. Raises ProgramError."""
        self.kernel.lifecycle.start(program)

    def at_instruction(self, instructions: int, call: Callable[[], None]) -> InstructionAlarm:
        """`call` when all CPUs together have executed so many, as exactly as InstructionAlarm."""
        return InstructionAlarm(self.kernel, instructions, call, self._most_per_cycle)

    def run_to_instruction(self, instructions: int) -> bool:
        """Until that has been executed; False if the machine ended before."""
        self.at_instruction(instructions, self.pause)
        self.run_to_the_end()
        return self.paused

    def run(self) -> int:
        """Run until the first process has ended; its wait status. After KeyboardInterrupt it can be called again."""
        self.run_to_the_end()
        assert self.kernel.exit_status is not None, "the machine ends with its first process"
        return self.kernel.exit_status
