"""How software reaches a PMU's registers on each architecture: from which privilege level, and what it gets instead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from emulator.cpu import Level
from emulator.sysregs import TrappedRegister, UndefinedRegister
from pmu.amd.core_counters import CoreCounters
from pmu.arm.privileged import ExceptionLevel, PrivilegedPmuV3, Trap
from pmu.arm.registers import CYCLES, ArmRegister
from pmu.intel.perfmon import Perfmon
from pmu.live.probe_bank import Counts, ProbeBank
from pmu.loongarch.performance_monitors import InstructionPrivilegeError, PerformanceMonitors, PrivilegeLevel
from pmu.model import PmuModel
from pmu.register import RW, Register
from pmu.register_view import RegisterFile


class AccessError(Exception):
    """An access that the processor answers by an exception.

    `exception` names it: ``trap to EL1``, ``trap to EL2``, ``trap to EL3``, ``undefined``, ``#GP(0)`` or ``IPE``.
    """

    def __init__(self, access: str, exception: str, why: str = "") -> None:
        super().__init__(f"{access}: {exception}" + (f" ({why})" if why and why != access else ""))
        self.exception = exception


@dataclass(frozen=True, slots=True)
class Named:
    """A register, and which of its bank."""

    register: type[Register]
    index: int

    @property
    def name(self) -> str:
        return self.register.name_of(self.index)


class Architecture(ABC):
    """A PMU on a bank of its own, and who may reach it."""

    levels: tuple[str, ...]  # the least privileged first
    kernel: str  # at which the kernel executes

    def __init__(self, bank: ProbeBank, device: RegisterFile) -> None:
        self.bank = bank
        self.device = device
        self.registers: Mapping[str, Named] = {
            named.name: named for register in self._declared() for named in _each(register)
        }

    def _declared(self) -> list[type[Register]]:
        return self.device.registers()

    def is_there(self, named: Named) -> bool:
        """Whether this PMU has so many of them."""
        return named.register.bank is None or named.index < self.device.registers_of(named.register)

    @abstractmethod
    def read(self, level: str, named: Named) -> int:
        """Raises AccessError."""

    @abstractmethod
    def write(self, level: str, named: Named, value: int) -> None:
        """Raises AccessError."""

    @abstractmethod
    def counts(self, level: str) -> Counts:
        """Which counters of the bank count what happens at that level."""

    def rdpmc(self, level: str, ecx: int) -> int:
        raise AttributeError("RDPMC is x86's")


def _each(register: type[Register]) -> list[Named]:
    return [Named(register, index) for index in range(1 if register.bank is None else register.bank.count)]


class _Arm(Architecture):
    levels = "EL0", "EL1", "EL2", "EL3"
    kernel = "EL1"
    device: PrivilegedPmuV3

    def __init__(self, model: PmuModel, counters: int) -> None:
        bank = ProbeBank(model.bank_size(counters))
        super().__init__(bank, PrivilegedPmuV3(bank, model, counters))

    def read(self, level: str, named: Named) -> int:
        access = f"read of {named.name} at {level}"
        register = self._register(access, named)
        return _arm_access(access, lambda: self.device.read_at(_el(level), register, named.index))

    def write(self, level: str, named: Named, value: int) -> None:
        access = f"write of {named.name} at {level}"
        register = self._register(access, named)
        _arm_access(access, lambda: self.device.write_at(_el(level), register, value, named.index))

    def _register(self, access: str, named: Named) -> type[ArmRegister]:
        assert issubclass(named.register, ArmRegister), "Arm's devices have Arm's registers"
        if not self.is_there(named):
            raise AccessError(access, "undefined", f"there are {self.device.counters} event counters")
        return named.register

    def counts(self, level: str) -> Counts:
        events = self.device.counters
        return lambda counter: self.device.may_count(
            counter if counter < events else CYCLES + counter - events, _el(level)
        )


def _el(level: str) -> ExceptionLevel:
    return ExceptionLevel[level]


def _arm_access(access: str, reach: Callable[[], int | None]) -> int:
    try:
        return reach() or 0
    except Trap as trap:
        raise AccessError(access, f"trap to {trap.level.name}", _detail(trap)) from None
    except TrappedRegister as trap:
        raise AccessError(access, "trap to EL1", _detail(trap)) from None
    except UndefinedRegister:
        raise AccessError(access, "undefined") from None


def _detail(problem: Exception) -> str:
    """Of "read of X at EL0 with Y{...}" what behind the access says why."""
    _, _, detail = str(problem).partition(" with ")
    return detail


class CR4(Register):
    """Control register 4: what of it concerns the counters."""

    PCE = RW(8)  # RDPMC works in user mode


class _X86(Architecture):
    levels = "ring 3", "ring 0"
    kernel = "ring 0"
    device: Perfmon | CoreCounters

    def _declared(self) -> list[type[Register]]:
        return [*super()._declared(), CR4]

    def read(self, level: str, named: Named) -> int:
        self._check(f"read of {named.name} at {level}", level, named)
        if named.register is CR4:
            return CR4.make(PCE=int(self.device.user_rdpmc))
        if not self.device.can_read(named.register):
            raise AccessError(f"read of {named.name} at {level}", "#GP(0)", "it is write-only")
        return self.device.read(named.register, named.index)

    def write(self, level: str, named: Named, value: int) -> None:
        access = f"write of {value:#x} to {named.name} at {level}"
        self._check(access, level, named)
        if named.register is CR4:
            self.device.user_rdpmc = bool(CR4(value).PCE)
            return
        if not self.device.can_write(named.register):
            raise AccessError(access, "#GP(0)", "it is read-only")
        try:
            self.device.check(named.register, value, named.index)
            self.device.write(named.register, value, named.index)
        except ValueError as problem:
            raise AccessError(access, "#GP(0)", str(problem)) from None

    def _check(self, access: str, level: str, named: Named) -> None:
        if level != self.kernel:
            raise AccessError(access, "#GP(0)", "MSRs are the kernel's")
        if not self.is_there(named):
            raise AccessError(access, "#GP(0)", f"there are {self.device.registers_of(named.register)}")

    def counts(self, level: str) -> Counts:
        return self.bank.counts_at(Level.KERNEL if level == self.kernel else Level.USER)

    def rdpmc(self, level: str, ecx: int) -> int:
        try:
            return self.device.rdpmc(ecx, in_user_mode=level != self.kernel)
        except UndefinedRegister as problem:
            raise AccessError(f"RDPMC of {ecx:#x} at {level}", "#GP(0)", str(problem)) from None


class _Intel(_X86):
    def __init__(self, model: PmuModel, counters: int) -> None:
        bank = ProbeBank(model.bank_size(counters))
        super().__init__(bank, Perfmon(bank, model, counters))


class _Amd(_X86):
    def __init__(self, model: PmuModel, counters: int) -> None:
        bank = ProbeBank(model.bank_size(counters))
        super().__init__(bank, CoreCounters(bank, model, counters))


class _LoongArch(Architecture):
    levels = "PLV3", "PLV2", "PLV1", "PLV0"
    kernel = "PLV0"
    device: PerformanceMonitors

    def __init__(self, model: PmuModel, counters: int) -> None:
        bank = ProbeBank(model.bank_size(counters))
        super().__init__(bank, PerformanceMonitors(bank, model, counters))

    def read(self, level: str, named: Named) -> int:
        return _loongarch_access(
            f"read of {named.name} at {level}",
            lambda: self.device.read_at(PrivilegeLevel[level], named.register, named.index),
        )

    def write(self, level: str, named: Named, value: int) -> None:
        _loongarch_access(
            f"write of {named.name} at {level}",
            lambda: self.device.write_at(PrivilegeLevel[level], named.register, value, named.index),
        )

    def counts(self, level: str) -> Counts:
        return lambda monitor: self.device.may_count(monitor, PrivilegeLevel[level])


def _loongarch_access(access: str, reach: Callable[[], int | None]) -> int:
    try:
        return reach() or 0
    except InstructionPrivilegeError:
        raise AccessError(access, "IPE") from None
    except UndefinedRegister:
        raise AccessError(access, "undefined") from None


ARCHITECTURES: Mapping[str, Callable[[PmuModel, int], Architecture]] = {
    "arm_pmuv3": _Arm,
    "intel_core": _Intel,
    "amd_core": _Amd,
    "loongarch": _LoongArch,
}  # by the driver that the model is for
