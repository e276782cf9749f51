"""GuestX86Pmu: what guests of Intel's and AMD's have of counters that they share with a host.

A guest has the first general-purpose counters, as many as CPUID tells it. The global registers are one for all: of them
it sees and changes its own bits. Its own, given by the hypervisor, are the local APIC's entry, CR4.PCE, and the debug
control with its freeze: a guest that is frozen has its counters disabled globally, which it does not see, so that the
host's go on. A host that is frozen counts nothing in guests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from emulator.sysregs import UndefinedRegister
from pmu.register import Register
from pmu.sharing import Context, GuestPmu, Kept, SharedPmu, values_of
from pmu.x86_counters import X86Counters


@dataclass(frozen=True, slots=True)
class GlobalRegisters:
    """Which registers a vendor has for what all counters have in common."""

    control: type[Register]  # a bit enables a counter
    status: type[Register]  # a bit says that it has overflowed
    clear: type[Register]  # by ones
    set: type[Register]
    frozen: int  # bit of those three
    debug_control: type[Register]
    freezes: int  # bit of that
    local_vector: type[Register]


class SharedX86Pmu(SharedPmu):
    """Masks are the global control's."""

    global_registers: ClassVar[GlobalRegisters]

    def __init__(
        self, device: X86Counters, guest_counters: int, kept: Sequence[Kept], guest_mask: int, host_mask: int
    ) -> None:
        super().__init__(device, guest_counters, kept, guest_mask, host_mask)
        self.device = device
        self.visible = guest_mask  # bits of the global registers that a guest has

    def reset_context(self) -> Context:
        """The general-purpose counters are enabled globally."""
        control, general = self.global_registers.control, (1 << self.guest_counters) - 1
        return {kept: general if kept.register is control else value for kept, value in super().reset_context().items()}

    def _host_counts(self) -> bool:
        own = self.global_registers
        return not values_of(self._host, own.status)[0] & own.frozen

    def _enabled(self) -> int:
        return self.device.read(self.global_registers.control) & self._host_mask

    def _enable(self, counters: int) -> None:
        control = self.global_registers.control
        self.device.write(control, self.device.read(control) & ~self._host_mask | counters)


class GuestX86Pmu(GuestPmu):
    """`read` and `write` are RDMSR and WRMSR at ring 0."""

    shared: SharedX86Pmu

    def __init__(self, shared: SharedX86Pmu) -> None:
        super().__init__(shared)
        self.local_vector = 0  # its local APIC's entry
        self.user_rdpmc = False  # its CR4.PCE
        self._debug_control = 0
        self._enables: int | None = None  # while it is frozen: what the global control says

    @property
    def _registers(self) -> GlobalRegisters:
        return self.shared.global_registers

    @property
    def freezes(self) -> bool:
        """Whether an overflow that interrupts is to freeze its counters."""
        return bool(self._debug_control & self._registers.freezes)

    def read(self, register: type[Register], index: int = 0) -> int:
        self._check(register, index)
        own = self._registers
        if register is own.local_vector:
            return self.local_vector
        if register is own.debug_control:
            return self._debug_control
        if register is own.control and self._enables is not None:
            return self._enables
        value = self.shared.device.read(register, index)
        if register is own.status:
            return value & self.shared.visible | (0 if self._enables is None else own.frozen)
        return value & self.shared.visible if register is own.control else value

    def write(self, register: type[Register], value: int, index: int = 0) -> None:
        self._check(register, index)
        self.check(register, value, index)
        own = self._registers
        if register is own.local_vector:
            self.local_vector = register.write(self.local_vector, value)
        elif register is own.debug_control:
            self._debug_control = register.write(self._debug_control, value)
        elif register is own.control:
            self._write_control(value & self.shared.visible)
        elif register in (own.clear, own.set):
            self.shared.device.write(register, value & self.shared.visible)
            if value & own.frozen:
                self.set_frozen(register is own.set)
        else:
            self.shared.device.write(register, value, index)

    def _write_control(self, enables: int) -> None:
        if self._enables is not None:
            self._enables, enables = enables, 0
        device, control = self.shared.device, self._registers.control
        device.write(control, device.read(control) & ~self.shared.visible | enables)

    def set_frozen(self, frozen: bool) -> None:
        enables = self._enables
        if frozen and enables is None:
            self._enables = self.shared.device.read(self._registers.control) & self.shared.visible
            self._write_control(self._enables)
        elif not frozen and enables is not None:
            self._enables = None
            self._write_control(enables)

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        """ValueError if writing that value faults."""
        self.shared.device.check(register, value, index)

    def registers(self) -> list[type[Register]]:
        """All that it may name."""
        return self.shared.device.registers()

    def registers_of(self, register: type[Register]) -> int:
        """How many it has of that."""
        there = self.shared.device.registers_of(register)
        return there if register.bank is None else min(there, self.counters)

    def rdpmc(self, ecx: int, *, in_user_mode: bool = True) -> int:
        """EDX:EAX. Raises UndefinedRegister where #GP(0) is due."""
        self._check_running()
        if in_user_mode and not self.user_rdpmc:
            raise UndefinedRegister(f"RDPMC with ECX={ecx:#x} while CR4.PCE is 0")
        if self._is_hosts(ecx):
            raise UndefinedRegister(f"RDPMC with ECX={ecx:#x}: this guest has {self.counters} counters")
        return self.shared.device.rdpmc(ecx, in_user_mode=False)

    def _is_hosts(self, ecx: int) -> bool:
        """Whether RDPMC would read what no guest has."""
        return self.counters <= ecx < self.shared.device.counters

    def write_local_vector(self, entry: int) -> None:
        """The local APIC's entry, as software has written it in memory."""
        register = self._registers.local_vector
        self.local_vector = register.write(self.local_vector, entry & register.declared)

    def _check(self, register: type[Register], index: int) -> None:
        self._check_running()
        if register not in self.registers():
            raise ValueError(f"{register.__name__} is not offered to guests")
        if register.bank is not None and not 0 <= index < self.registers_of(register):
            raise ValueError(f"{register.name_of(index)}: this guest has {self.registers_of(register)} of them")
