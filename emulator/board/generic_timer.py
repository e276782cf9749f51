"""GenericTimer: the counter and the timers that every Armv8 CPU has. Arm ARM DDI 0487, "The Generic Timer"."""

from __future__ import annotations

from collections.abc import Callable

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.sysregs import Access, SysReg, SystemRegisters

COUNTER_HZ = 62_500_000  # as boards of this kind have it
NS_PER_TICK = 1_000_000_000 // COUNTER_HZ
COUNTERS = SysReg(3, 3, 14, 0, 1), SysReg(3, 3, 14, 0, 2)  # CNTPCT_EL0, CNTVCT_EL0
PHYSICAL_INTERRUPT, VIRTUAL_INTERRUPT = 30, 27  # PPIs
ENABLE, IMASK, ISTATUS = 1, 2, 4
MOST_CYCLES = 1 << 62  # in a century
WORD, DOUBLE_WORD = (1 << 32) - 1, (1 << 64) - 1


class Timer:
    """One comparator: CNTP_* or CNTV_* of EL1 and EL0."""

    kept = "control", "compare"

    def __init__(self, interrupt: int, count: Callable[[], int], changed: Callable[[], None]) -> None:
        self.interrupt = interrupt
        self.control = 0
        self.compare = 0  # CVAL
        self._count = count
        self._changed = changed

    @property
    def is_met(self) -> bool:
        return bool(self.control & ENABLE) and self._count() >= self.compare

    @property
    def is_asserted(self) -> bool:
        return self.is_met and not self.control & IMASK

    @property
    def due_tick(self) -> int | None:
        """The count at which it will interrupt; None where it will not, or has."""
        armed = self.control & ENABLE and not self.control & IMASK and not self.is_met
        return self.compare if armed else None

    def claim(self, registers: SystemRegisters, crm: int) -> None:
        registers.claim(SysReg(3, 3, 14, crm, 0), Access(lambda: self.compare - self._count() & WORD, self._set_value))
        registers.claim(SysReg(3, 3, 14, crm, 1), Access(self._read_control, self._set_control))
        registers.claim(SysReg(3, 3, 14, crm, 2), Access(lambda: self.compare, self._set_compare))

    def _read_control(self) -> int:
        return self.control | (ISTATUS if self.is_met else 0)

    def _set_control(self, value: int) -> None:
        self.control = value & (ENABLE | IMASK)
        self._changed()

    def _set_compare(self, value: int) -> None:
        self.compare = value
        self._changed()

    def _set_value(self, value: int) -> None:
        signed = (value & WORD ^ 1 << 31) - (1 << 31)
        self._set_compare(self._count() + signed & DOUBLE_WORD)


class GenericTimer:
    """Of one CPU. There is no EL2, so that virtual and physical time are one."""

    kept = "physical", "virtual"

    def __init__(self, clock: Clock, cpu: Cpu, changed: Callable[[], None]) -> None:
        """`changed` is called when another time may be the next at which one of the timers is due."""
        self._clock = clock
        self._core = cpu.core
        self.physical = Timer(PHYSICAL_INTERRUPT, self.count, changed)
        self.virtual = Timer(VIRTUAL_INTERRUPT, self.count, changed)

    @property
    def timers(self) -> tuple[Timer, Timer]:
        return self.physical, self.virtual

    def count(self) -> int:
        return self._clock.at(self._core.cycles) // NS_PER_TICK

    def due_cycle(self) -> int | None:
        """The cycle at which the next of them interrupts; None where none will in what a core counts."""
        ticks = [tick for timer in self.timers if (tick := timer.due_tick) is not None]
        due = self._clock.cycle_at(min(ticks) * NS_PER_TICK) if ticks else None
        return due if due is not None and due < MOST_CYCLES else None

    def answer_natively(self, *, on: bool) -> None:
        """Reads of the counter, which guests make in loops, leave the core only if not `on`. They end no turn."""
        encodings = [each.encoding for each in COUNTERS] if on else []
        self._core.set_counter(encodings, COUNTER_HZ, self._clock.frequency_hz)

    def claim_registers(self, registers: SystemRegisters) -> None:
        registers.claim(SysReg(3, 3, 14, 0, 0), Access(lambda: COUNTER_HZ, lambda value: None))  # CNTFRQ_EL0
        for register in COUNTERS:
            registers.claim(register, Access(self.count))
        self.physical.claim(registers, 2)
        self.virtual.claim(registers, 3)
