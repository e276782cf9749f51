"""The MSRs of an x86 PMU for a CPU whose kernel is executed: each answers RDMSR and WRMSR, or is #GP."""

from __future__ import annotations

from typing import Protocol

from emulator.sysregs import Access, Msr, SystemRegisters, UndefinedRegister
from pmu.register import Register


class MsrDevice(Protocol):
    """What has them."""

    @property
    def local_vector(self) -> type[Register] | None:
        """The local APIC's, which is none of them."""

    def registers(self) -> list[type[Register]]: ...
    def registers_of(self, register: type[Register]) -> int: ...
    def can_read(self, register: type[Register]) -> bool: ...
    def can_write(self, register: type[Register]) -> bool: ...
    def read(self, register: type[Register], index: int = 0) -> int: ...
    def write(self, register: type[Register], value: int, index: int = 0) -> None: ...

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        """ValueError if writing that value faults."""


def claim_msrs(device: MsrDevice, system_registers: SystemRegisters) -> dict[int, str]:
    """All but the local APIC's: the names by number."""
    names: dict[int, str] = {}
    for register in device.registers():
        if register is device.local_vector:
            continue
        for index in range(device.registers_of(register)):
            msr = register.encoding_of(index)
            assert isinstance(msr, Msr), "x86's have MSRs"
            system_registers.claim(msr, _access(device, register, index))
            names[msr.index] = register.name_of(index)
    return names


def _access(device: MsrDevice, register: type[Register], index: int) -> Access:
    def takes(value: int) -> None:
        try:
            register.write(0, value)
            device.check(register, value, index)
        except ValueError as error:
            raise UndefinedRegister(str(error)) from None

    return Access(
        (lambda: device.read(register, index)) if device.can_read(register) else None,
        (lambda value: device.write(register, value, index)) if device.can_write(register) else None,
        takes=takes,
    )
