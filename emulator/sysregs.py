"""SystemRegisters: routes MRS/MSR, CPUID, RDTSC, RDPMC and MSR accesses to whoever declared them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class SysReg(NamedTuple):
    """AArch64 system register encoding, as in ``S<op0>_<op1>_C<crn>_C<crm>_<op2>``."""

    op0: int
    op1: int
    crn: int
    crm: int
    op2: int

    @property
    def encoding(self) -> int:
        """The 16 bits op0:op1:crn:crm:op2 as they stand in MRS and MSR."""
        return self.op0 << 14 | self.op1 << 11 | self.crn << 7 | self.crm << 3 | self.op2

    @classmethod
    def from_encoding(cls, encoding: int) -> SysReg:
        return cls(encoding >> 14 & 3, encoding >> 11 & 7, encoding >> 7 & 15, encoding >> 3 & 15, encoding & 7)


@dataclass(frozen=True, slots=True)
class Msr:
    """x86 model-specific register, by its RDMSR index."""

    index: int


@dataclass(frozen=True, slots=True)
class Csr:
    """LoongArch control and status register, by its number in CSRRD and CSRWR."""

    number: int


@dataclass(frozen=True, slots=True)
class ConfigurationWord:
    """What LoongArch's CPUCFG answers, by its number."""

    number: int


Encoding = SysReg | Msr | Csr | ConfigurationWord  # how an instruction names a register


class UndefinedRegister(Exception):
    """No such register, or not at this privilege: the guest gets SIGILL (Arm) or SIGSEGV (x86 #GP)."""


class HigherRegister(UndefinedRegister):
    """The register is there, and the access is of a higher exception level than any that executes here (Arm)."""


class TrappedRegister(UndefinedRegister):
    """The register is there, and a control of the kernel's traps the access (Arm): a kernel is told which it was."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a register is reached; None where it may not be: by user mode, and on a board by whoever executes."""

    read: Callable[[], int] | None = None
    write: Callable[[int], None] | None = None
    may_write: Callable[[], None] | None = None  # raises UndefinedRegister if not at this privilege; writes nothing
    takes: Callable[[int], None] | None = (
        None  # raises UndefinedRegister for a value that is not written, but faults (x86)
    )


class SystemRegisters:
    """What user mode sees of system registers, and on a board the guest's kernel, too.

    Whoever owns a register claims it; an access to any other is undefined.
    """

    def __init__(self) -> None:
        self._claims: dict[Encoding, Access] = {}
        self._rdpmc: Callable[[int], int] | None = None
        self._cpuid: Callable[[int, int], tuple[int, int, int, int]] | None = None
        self._amend_cpuid: Callable[[int, int, tuple[int, int, int, int]], tuple[int, int, int, int]] | None = None
        self._tsc: Callable[[], int] | None = None

    def claim(self, register: Encoding, access: Access) -> None:
        """Route `register` to `access`. Two owners of one register are a bug."""
        if register in self._claims:
            raise ValueError(f"{register} is already claimed")
        self._claims[register] = access

    def claimed(self) -> list[Encoding]:
        return list(self._claims)

    def read(self, register: Encoding) -> int:
        access = self._claims.get(register)
        if access is None or access.read is None:
            raise UndefinedRegister(f"read of {register}")
        return access.read()

    def write(self, register: Encoding, value: int) -> None:
        access = self._claims.get(register)
        if access is None or access.write is None:
            raise UndefinedRegister(f"write of {register}")
        access.write(value)

    def writer(self, register: Encoding) -> Callable[[int], None]:
        """What writes `register`, if that may be written now: for those who have to do something in between."""
        access = self._claims.get(register)
        if access is None or access.write is None:
            raise UndefinedRegister(f"write of {register}")
        if access.may_write is not None:
            access.may_write()
        return access.write

    def check_value(self, register: Encoding, value: int) -> None:
        """Raises UndefinedRegister if writing that value faults."""
        access = self._claims.get(register)
        if access is not None and access.takes is not None:
            access.takes(value)

    def claim_rdpmc(self, read: Callable[[int], int]) -> None:
        """`read(ecx)` answers RDPMC in user mode; raises UndefinedRegister where #GP is due."""
        self._rdpmc = read

    def claim_cpuid(self, read: Callable[[int, int], tuple[int, int, int, int]]) -> None:
        """`read(leaf, subleaf) -> (eax, ebx, ecx, edx)`."""
        self._cpuid = read

    def amend_cpuid(self, amend: Callable[[int, int, tuple[int, int, int, int]], tuple[int, int, int, int]]) -> None:
        """`amend(leaf, subleaf, plain)` is what it says of that with a PMU or unit, where it would say `plain`
        without. Of several, the later ones are given what the earlier ones say."""
        before = self._amend_cpuid
        if before is None:
            self._amend_cpuid = amend
        else:
            self._amend_cpuid = lambda leaf, subleaf, plain: amend(leaf, subleaf, before(leaf, subleaf, plain))

    def claim_tsc(self, read: Callable[[], int]) -> None:
        self._tsc = read

    def rdpmc(self, index: int) -> int:
        if self._rdpmc is None:
            raise UndefinedRegister("RDPMC")
        return self._rdpmc(index)

    def cpuid(self, leaf: int, subleaf: int) -> tuple[int, int, int, int]:
        if self._cpuid is None:
            raise UndefinedRegister("CPUID")
        plain = self._cpuid(leaf, subleaf)
        return plain if self._amend_cpuid is None else self._amend_cpuid(leaf, subleaf, plain)

    def tsc(self) -> int:
        if self._tsc is None:
            raise UndefinedRegister("RDTSC")
        return self._tsc()
