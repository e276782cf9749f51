"""PerformanceMonitors: LoongArch's, as a live device. LoongArch Reference Manual volume 1.

Registers turn into settings of a counter bank in the core; nothing is counted here. The interrupt is a level: a monitor
that has IE asks for it while bit 63 of its counter is set, so that software ends it by writing the counter, and nothing
remembers an overflow.

What the engine executes in user mode is at privilege level 3, what it executes in a kernel at level 0: nothing is ever
at 1 or 2. It executes no LoongArch, so that no guest reaches the registers; `read_at` and `write_at` are for those who
drive the register model themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from emulator.cpu import Level
from emulator.sysregs import SystemRegisters, TrappedRegister, UndefinedRegister
from pmu.counter_bank import CounterBank
from pmu.event import Event
from pmu.loongarch.registers import (
    CPUCFG6,
    ECFG,
    ESTAT,
    MISC,
    MOST_ANNOUNCED,
    MOST_MONITORS,
    OVERFLOW,
    WIDTH_BITS,
    PERFCNTRn,
    PERFCTRLn,
)
from pmu.model import PmuModel
from pmu.register import Register
from pmu.register_device import RegisterDevice

_EVENT, _IE = PERFCTRLn.EVENT.mask, PERFCTRLn.IE.mask
_ANYWHERE = PERFCTRLn.make(PLV0=1, PLV1=1, PLV2=1, PLV3=1)
_LEVELS = ((PERFCTRLn.PLV3.mask, 1 << Level.USER), (PERFCTRLn.PLV0.mask, 1 << Level.KERNEL))
_PENDING, _ENABLED = ESTAT.PCOV.mask, ECFG.PCOV.mask


class PrivilegeLevel(IntEnum):
    """CSR.CRMD.PLV: 0 is the kernel's."""

    PLV0 = 0
    PLV1 = 1
    PLV2 = 2
    PLV3 = 3


class InstructionPrivilegeError(TrappedRegister):
    """The access is an exception IPE."""


class PerformanceMonitors(RegisterDevice):
    """On `bank`, with the events of `model` and `counters` monitors (default: the model's number)."""

    kept = "storage", "_controls", "_interrupting"  # besides the bank

    def __init__(self, bank: CounterBank, model: PmuModel, counters: int | None = None) -> None:
        super().__init__()
        n = model.counters if counters is None else counters
        if not 1 <= n <= MOST_MONITORS:
            raise ValueError(f"{model.name}: {n} performance monitors; there can be 1 to {MOST_MONITORS}")
        if bank.size < n:
            raise ValueError(f"{model.name}: {n} performance monitors need a bank of {n}, not {bank.size}")
        self.model = model
        self.counters = n
        self._bank = bank
        self._events = {event.code: event.probe_mask for event in model.events}
        self._controls = [0] * n  # PERFCTRLn
        self._interrupting = 0  # mask of the monitors that have IE
        for monitor in range(n):
            bank.set_width(monitor, WIDTH_BITS, WIDTH_BITS - 1)  # so that the bank tells when bit 63 changes
            bank.filter(monitor, 0)
        self._declare()

    def _declare(self) -> None:
        """Every register that the device has."""
        self._compute(
            PERFCTRLn, self._checked(PERFCTRLn, self._controls.__getitem__), self._checked_write(self._write_control)
        )
        self._compute(PERFCNTRn, self._checked(PERFCNTRn, self._bank.read), self._checked_write(self._write_counter))
        self._store(MISC)
        self._store(ECFG)
        self._compute(ESTAT, lambda index: _PENDING if self._overflows() else 0)
        announced = min(self.counters, MOST_ANNOUNCED) - 1
        word = CPUCFG6.make(PMP=1, PAMVER=self.model.version, PMNUM=announced, PMBITS=WIDTH_BITS - 1, UPM=1)
        self._compute(CPUCFG6, lambda index: word)

    # the interrupt

    def _overflows(self) -> int:
        """Mask of the monitors that ask for the interrupt."""
        left, found = self._interrupting, 0
        while left:
            bit = left & -left
            left ^= bit
            if self._bank.read(bit.bit_length() - 1) & OVERFLOW:
                found |= bit
        return found

    def interrupt_asserted(self) -> bool:
        """ESTAT.PCOV is set and ECFG.PCOV enables it."""
        return bool(self.storage["ECFG"] & _ENABLED and self._overflows())

    def take_interrupt(self) -> None:
        """Nothing: it stays pending until software writes the counters."""

    # monitors

    def _check(self, register: type[Register], monitor: int) -> None:
        if not 0 <= monitor < self.counters:
            raise ValueError(f"{register.name_of(monitor)}: this PMU has {self.counters} monitors, 0 to N-1")

    def _checked(self, register: type[Register], read: Callable[[int], int]) -> Callable[[int], int]:
        def checked(monitor: int) -> int:
            self._check(register, monitor)
            return read(monitor)

        return checked

    def _checked_write(self, write: Callable[[int, int], None]) -> Callable[[int, int], None]:
        def checked(value: int, monitor: int) -> None:
            self._check(PERFCTRLn, monitor)
            write(value, monitor)

        return checked

    def registers_of(self, register: type[Register]) -> int:
        """How many there are, each with a number of its own."""
        return 1 if register.bank is None else self.counters

    def event_of(self, monitor: int) -> Event | None:
        """The event that a monitor is set to; None if this PMU does not count it."""
        self._check(PERFCTRLn, monitor)
        return self.model.events.by_code(self._controls[monitor] & _EVENT)

    def _write_control(self, value: int, monitor: int) -> None:
        old = self._controls[monitor]
        new = self._controls[monitor] = PERFCTRLn.write(old, value)
        if old == new:
            return
        levels = sum(level for bit, level in _LEVELS if new & bit)
        self._bank.filter(monitor, levels)
        self._bank.connect(monitor, self._events.get(new & _EVENT, 0) if new & _ANYWHERE else 0)
        if (old ^ new) & _IE:
            self._interrupting ^= 1 << monitor
            self._bank.arm(self._interrupting)
            self._raise(monitor)

    def _write_counter(self, value: int, monitor: int) -> None:
        self._bank.write(monitor, value & PERFCNTRn.declared)
        self._raise(monitor)

    def _raise(self, monitor: int) -> None:
        """After software has changed what the level is: the core stops for it if it is up, wherever that came from."""
        bit = 1 << monitor
        self._bank.clear_overflowed(bit)
        if self._interrupting & bit and self._bank.read(monitor) & OVERFLOW:
            self._bank.set_overflowed(bit)

    def may_count(self, monitor: int, level: PrivilegeLevel) -> bool:
        """Whether a monitor counts at that level."""
        self._check(PERFCTRLn, monitor)
        return bool(self._controls[monitor] & PERFCTRLn.fields[level.name].mask)

    # who may

    def read_at(self, level: PrivilegeLevel, register: type[Register], index: int = 0) -> int:
        """CSRRD, or CPUCFG. Raises InstructionPrivilegeError, or UndefinedRegister where there is no such register."""
        self._check_there(register, index)
        if register is CPUCFG6 or level is PrivilegeLevel.PLV0:
            return self.read(register, index)
        allowing = MISC.fields[f"RPCNTL{level:d}"].mask
        if register is not PERFCNTRn or not self.storage["MISC"] & allowing:
            raise InstructionPrivilegeError(f"read of {register.name_of(index)} at PLV{level:d}: IPE")
        return self.read(register, index)

    def write_at(self, level: PrivilegeLevel, register: type[Register], value: int, index: int = 0) -> None:
        """CSRWR. Raises as `read_at` does."""
        self._check_there(register, index)
        if register is CPUCFG6:
            raise UndefinedRegister("CPUCFG6 has no instruction that writes it")
        if level is not PrivilegeLevel.PLV0:
            raise InstructionPrivilegeError(f"write of {register.name_of(index)} at PLV{level:d}: IPE")
        if register is not ESTAT:  # whose PCOV ignores writes
            self.write(register, value, index)

    def _check_there(self, register: type[Register], index: int) -> None:
        if register not in self._readers or (register.bank is not None and not 0 <= index < self.counters):
            raise UndefinedRegister(f"{register.name_of(index)}: there is no such register")

    def grant_user_access(self, system_registers: SystemRegisters) -> None:
        """Nothing: no guest has an instruction for them."""
