"""PMUs that a host shares with the guests of its hypervisor, by their drivers: for the host, and guests' registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.arch.cpuid import Leaf
from emulator.cpu import Cpu, Level
from emulator.sysregs import Access, SysReg, SystemRegisters
from perfcore.events.drivers.amd_core_host import AmdCoreHost
from perfcore.events.drivers.arm_pmuv3_host import ArmPmuV3Host
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.drivers.intel_core_host import IntelCoreHost
from pmu.amd.core_counters import CoreCounters
from pmu.amd.sharing import GuestCoreCounters, SharedCoreCounters
from pmu.arm.privileged import EL0, EL1, PrivilegedPmuV3
from pmu.arm.registers import ArmRegister
from pmu.arm.sharing import GuestPmuV3, SharedPmuV3
from pmu.intel.perfmon import Perfmon
from pmu.intel.sharing import GuestPerfmon, SharedPerfmon
from pmu.model import PmuModel
from pmu.register import Register
from pmu.sharing import SharedPmu
from pmu.x86_msrs import claim_msrs

Trap = Callable[[], None]
"""Called before each access of a guest's: it leaves the guest for its host."""


class GuestPmuRegisters:
    """emulator.board.board_cpu.BoardPmu: MRS and MSR of a guest's PMUv3, and its interrupt."""

    def __init__(self, pmu: GuestPmuV3, trap: Trap) -> None:
        self.tell: Callable[[str], None] = lambda text: None
        self._pmu, self._trap = pmu, trap

    @property
    def identification(self) -> Mapping[SysReg, int]:
        return self._pmu.shared.device.identification

    def interrupt_asserted(self) -> bool:
        return self._pmu.interrupt_asserted()

    def pause(self) -> None:
        """A hypervisor's guest has counters alone, which do not listen."""

    def resume(self) -> None: ...

    def grant_access(self, system_registers: SystemRegisters, level: Callable[[], Level]) -> None:
        """All that EL1 and EL0 may name: who may reach what is said at each access."""
        device = self._pmu.shared.device
        for register in device.registers():
            assert issubclass(register, ArmRegister)
            if register.least_level <= EL1:
                for index in range(1 if register.bank is None else device.counters):
                    system_registers.claim(register.encoding_of(index), self._access(register, index, level))

    def _access(self, register: type[ArmRegister], index: int, level: Callable[[], Level]) -> Access:
        def read() -> int:
            self._trap()
            return self._pmu.read_at(EL1 if level() else EL0, register, index)

        def write(value: int) -> None:
            self._trap()
            self._pmu.write_at(EL1 if level() else EL0, register, value, index)

        device = self._pmu.shared.device
        return Access(read if device.can_read(register) else None, write if device.can_write(register) else None)


class GuestMsrs:
    """emulator.board.pc.pc_pmu.PcPmu: RDMSR, WRMSR and RDPMC of a guest's counters, CPUID, and its interrupt."""

    def __init__(self, pmu: GuestPerfmon | GuestCoreCounters, trap: Trap) -> None:
        self.tell: Callable[[str], None] = lambda text: None
        self._pmu, self._trap = pmu, trap
        self._device = pmu.shared.device
        self.local_vector = self._device.local_vector
        self.masks_its_vector = self._device.masks_its_vector
        self.unavailable = self._device.unavailable

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        return self._pmu.cpuid(leaf, subleaf, plain)

    def claim(self, registers: SystemRegisters) -> dict[int, str]:
        registers.claim_rdpmc(self._rdpmc)
        return claim_msrs(self, registers)

    def _rdpmc(self, ecx: int) -> int:
        """Where CR4.PCE, which the core looks at, allows it."""
        self._trap()
        return self._pmu.rdpmc(ecx, in_user_mode=False)

    def interrupt_asserted(self) -> bool:
        return self._pmu.interrupt_asserted()

    def take_interrupt(self) -> None:
        self._pmu.take_interrupt()

    def set_local_vector(self, entry: int) -> None:
        self._pmu.write_local_vector(entry)

    def pause(self) -> None:
        """A hypervisor's guest has counters alone, which do not listen."""

    def resume(self) -> None: ...

    # pmu.x86_msrs.MsrDevice

    def registers(self) -> list[type[Register]]:
        return self._pmu.registers()

    def registers_of(self, register: type[Register]) -> int:
        return self._pmu.registers_of(register)

    def can_read(self, register: type[Register]) -> bool:
        return self._device.can_read(register)

    def can_write(self, register: type[Register]) -> bool:
        return self._device.can_write(register)

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        self._pmu.check(register, value, index)

    def read(self, register: type[Register], index: int = 0) -> int:
        self._trap()
        return self._pmu.read(register, index)

    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        self._trap()
        self._pmu.write(register, value, index)


@dataclass(frozen=True, slots=True)
class SharedKind:
    """How PMUs with one driver are shared."""

    share: Callable[[Cpu, PmuModel, int], SharedPmu]  # with so many counters for guests. ValueError
    host: Callable[[Cpu, Any], HardwareDriver]
    registers: Callable[[Any, Trap], Any]  # of a guest's, as its board wants them


def _pmuv3(cpu: Cpu, model: PmuModel, guest_counters: int) -> SharedPmu:
    device = PrivilegedPmuV3(cpu.core.add_bank(model.bank_size(model.counters)), model)
    return SharedPmuV3(device, guest_counters)


def _core_counters(cpu: Cpu, model: PmuModel, guest_counters: int) -> SharedPmu:
    return SharedCoreCounters(CoreCounters(cpu.core.add_bank(model.bank_size(model.counters)), model), guest_counters)


def _perfmon(cpu: Cpu, model: PmuModel, guest_counters: int) -> SharedPmu:
    return SharedPerfmon(Perfmon(cpu.core.add_bank(model.bank_size(model.counters)), model), guest_counters)


SHARED_KINDS: Mapping[str, SharedKind] = {  # by the driver that the model is for
    "arm_pmuv3": SharedKind(_pmuv3, lambda cpu, shared: ArmPmuV3Host([cpu], [shared]), GuestPmuRegisters),
    "amd_core": SharedKind(_core_counters, lambda cpu, shared: AmdCoreHost([cpu], [shared]), GuestMsrs),
    "intel_core": SharedKind(_perfmon, lambda cpu, shared: IntelCoreHost([cpu], [shared]), GuestMsrs),
}
