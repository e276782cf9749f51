"""GenericTimer: the counter and the timers that every Armv8 CPU has. Arm ARM DDI 0487, "The Generic Timer"."""

from __future__ import annotations

from collections.abc import Callable

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.sysregs import Access, SysReg, SystemRegisters, TrappedRegister

COUNTER_HZ = 62_500_000  # as boards of this kind have it
NS_PER_TICK = 1_000_000_000 // COUNTER_HZ
CNTKCTL_EL1 = SysReg(3, 0, 14, 1, 0)
CNTFRQ_EL0 = SysReg(3, 3, 14, 0, 0)
COUNTERS = {  # and the bits of CNTKCTL_EL1 that give them to EL0
    SysReg(3, 3, 14, 0, 1): 1 << 0,  # CNTPCT_EL0: EL0PCTEN
    SysReg(3, 3, 14, 0, 2): 1 << 1,  # CNTVCT_EL0: EL0VCTEN
}
PHYSICAL_CRM, VIRTUAL_CRM = 2, 3  # of their timers' registers
USER_ACCESS = {  # the bits of CNTKCTL_EL1 of which EL0 needs one
    CNTFRQ_EL0: 0b11,
    **COUNTERS,
    **{SysReg(3, 3, 14, PHYSICAL_CRM, op2): 1 << 9 for op2 in range(3)},  # EL0PTEN
    **{SysReg(3, 3, 14, VIRTUAL_CRM, op2): 1 << 8 for op2 in range(3)},  # EL0VTEN
}
CONTROL_MASK = 0x3FF
PHYSICAL_INTERRUPT, VIRTUAL_INTERRUPT = 30, 27  # PPIs
ENABLE, IMASK, ISTATUS = 1, 2, 4
MOST_CYCLES = 1 << 62  # in a century
WORD, DOUBLE_WORD = (1 << 32) - 1, (1 << 64) - 1


class Timer:
    """One comparator: CNTP_* or CNTV_* of EL1 and EL0."""

    kept = "control", "compare"

    def __init__(
        self, interrupt: int, count: Callable[[], int], shown: Callable[[], int], changed: Callable[[], None]
    ) -> None:
        """`count`: of its CPU's own time, at which it interrupts; `shown`: what the guest sees of the count."""
        self.interrupt = interrupt
        self.control = 0
        self.compare = 0  # CVAL
        self._count = count
        self._shown = shown
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
        registers.claim(SysReg(3, 3, 14, crm, 0), Access(lambda: self.compare - self._shown() & WORD, self._set_value))
        registers.claim(SysReg(3, 3, 14, crm, 1), Access(self._read_control, self._set_control))
        registers.claim(SysReg(3, 3, 14, crm, 2), Access(lambda: self.compare, self._set_compare))

    def _read_control(self) -> int:
        is_met = self.control & ENABLE and self._shown() >= self.compare
        return self.control | (ISTATUS if is_met else 0)

    def _set_control(self, value: int) -> None:
        self.control = value & (ENABLE | IMASK)
        self._changed()

    def _set_compare(self, value: int) -> None:
        self.compare = value
        self._changed()

    def _set_value(self, value: int) -> None:
        signed = (value & WORD ^ 1 << 31) - (1 << 31)
        self._set_compare(self._shown() + signed & DOUBLE_WORD)


class GenericTimer:
    """Of one CPU. There is no EL2, so that virtual and physical time are one."""

    kept = "physical", "virtual", "_user_access"

    def __init__(self, clock: Clock, cpu: Cpu, changed: Callable[[], None]) -> None:
        """`changed` is called when another time may be the next at which one of the timers is due."""
        self._clock = clock
        self._core = cpu.core
        self._is_native = False
        self._control = 0  # CNTKCTL_EL1
        self.physical = Timer(PHYSICAL_INTERRUPT, self.count, self.shown_count, changed)
        self.virtual = Timer(VIRTUAL_INTERRUPT, self.count, self.shown_count, changed)

    @property
    def timers(self) -> tuple[Timer, Timer]:
        return self.physical, self.virtual

    def count(self) -> int:
        return self._clock.at(self._core.cycles) // NS_PER_TICK

    def shown_count(self) -> int:
        """What the guest reads: no CPU takes back what another has shown."""
        return self._clock.at(self._clock.shown.show(self._core.cycles)) // NS_PER_TICK

    def due_cycle(self) -> int | None:
        """The cycle at which the next of them interrupts; None where none will in what a core counts."""
        ticks = [tick for timer in self.timers if (tick := timer.due_tick) is not None]
        due = self._clock.cycle_at(min(ticks) * NS_PER_TICK) if ticks else None
        return due if due is not None and due < MOST_CYCLES else None

    def answer_natively(self, *, on: bool) -> None:
        """Reads of the counter, which guests make in loops, leave the core only if not `on`. They end no turn."""
        self._is_native = on
        counters = [register.encoding for register in COUNTERS] if on else []
        of_user = [register.encoding for register, bit in COUNTERS.items() if on and self._control & bit]
        self._core.set_counter(counters, of_user, COUNTER_HZ, self._clock.frequency_hz)

    @property
    def _user_access(self) -> int:
        """CNTKCTL_EL1."""
        return self._control

    @_user_access.setter
    def _user_access(self, value: int) -> None:
        self._control = value & CONTROL_MASK
        self.answer_natively(on=self._is_native)

    def check_user_access(self, register: SysReg) -> None:
        """Raises TrappedRegister for one of the timer's that CNTKCTL_EL1 keeps from EL0."""
        needed = USER_ACCESS.get(register)
        if needed is not None and not self._control & needed:
            raise TrappedRegister(f"{register} at EL0")

    def claim_registers(self, registers: SystemRegisters) -> None:
        self._core.share_shown_cycles(self._clock.shown)
        registers.claim(CNTKCTL_EL1, Access(lambda: self._control, lambda value: setattr(self, "_user_access", value)))
        registers.claim(CNTFRQ_EL0, Access(lambda: COUNTER_HZ, lambda value: None))
        for register in COUNTERS:
            registers.claim(register, Access(self.shown_count))
        self.physical.claim(registers, PHYSICAL_CRM)
        self.virtual.claim(registers, VIRTUAL_CRM)
