"""Exceptions of x86-64, for people: what vectors and error codes say. Intel SDM volume 3, "Interrupt and Exception
Handling"."""

from __future__ import annotations

from dataclasses import dataclass

from emulator._native import Core
from emulator.board.last_exceptions import go_round
from emulator.board.trace import Trace

Row = tuple[int, int, int, int, int | None, int | None, bool]  # Core.exceptions_taken

USER_CPL = 3
PAGE_FAULT = 14
_NAMES = {
    0: "#DE (divide error)", 1: "#DB (debug)", 2: "NMI", 3: "#BP (breakpoint)", 4: "#OF (overflow)", 5: "#BR (bound)",
    6: "#UD (undefined instruction)", 7: "#NM (no FPU)", 8: "#DF (double fault)", 10: "#TS (invalid TSS)",
    11: "#NP (segment not present)", 12: "#SS (stack)", 13: "#GP (general protection)", 14: "#PF (page fault)",
    16: "#MF (x87)", 17: "#AC (alignment)", 18: "#MC (machine check)", 19: "#XM (SIMD)",
}  # fmt: skip
_EXTERNAL, _IN_IDT, _IN_LDT = 1, 2, 4  # bits of an error code that names a selector
_SELECTORS = {10, 11, 12, 13}  # vectors whose error codes do
_PRESENT, _WRITE, _USER, _RESERVED, _FETCH = 1, 2, 4, 8, 16  # of a page fault's


def exception_name(vector: int) -> str:
    """As the manual has it."""
    return _NAMES.get(vector, f"vector {vector:#x}")


def described_error(vector: int, error: int) -> str:
    """What an error code says; empty where that is nothing."""
    if vector == PAGE_FAULT:
        access = "fetch" if error & _FETCH else "write" if error & _WRITE else "read"
        why = "a reserved bit" if error & _RESERVED else "not allowed" if error & _PRESENT else "not present"
        return f"{'user' if error & _USER else 'kernel'} {access}, {why}"
    if vector not in _SELECTORS or not error:
        return ""
    if error & _IN_IDT:
        text = f"of the IDT's entry {error >> 3:#x}"
    else:
        text = f"selector {error & 0xFFF8:#x} of the {'LDT' if error & _IN_LDT else 'GDT'}"
    return text + (", by another event" if error & _EXTERNAL else "")


def described(vector: int, error: int | None, address: int | None, software: bool) -> str:
    """``#PF (page fault), error 0x2 (kernel write, not present), CR2 0x4000020``."""
    text = f"INT {vector:#x}" if software else exception_name(vector)
    if error is not None:
        says = described_error(vector, error)
        text += f", error {error:#x}" + (f" ({says})" if says else "")
    return text + ("" if address is None else f", CR2 {address:#x}")


@dataclass(frozen=True, slots=True)
class PcException:
    """Also one that could not be delivered, behind which another is."""

    cycle: int
    cpu: int
    cpl: int  # from there
    rip: int  # as its handler finds it
    vector: int
    error: int | None
    address: int | None  # CR2, of page faults
    software: bool  # INT n has made it

    @property
    def place(self) -> tuple[int | None, ...]:
        """All but the cycle."""
        return self.cpu, self.cpl, self.rip, self.vector, self.error, self.address, self.software

    @property
    def is_kernels(self) -> bool:
        """Made by the guest's kernel, and no call."""
        return self.cpl != USER_CPL and not self.software

    @property
    def what(self) -> str:
        return described(self.vector, self.error, self.address, self.software)

    def __str__(self) -> str:
        return f"cycle {self.cycle} CPU {self.cpu} CPL {self.cpl} {self.rip:#x}: {self.what}"


class CoreExceptions:
    """The last ones of one CPU, which its core keeps."""

    def __init__(self, number: int, core: Core) -> None:
        self._number, self._core = number, core

    @property
    def rows(self) -> list[PcException]:
        return [of_row(self._number, row) for row in self._core.exceptions_taken]

    @property
    def goes_round(self) -> bool:
        """Whether they are one or two of the kernel's, over and over: handlers that make exceptions."""
        return go_round(self.rows)


def trace_exceptions(number: int, core: Core, trace: Trace) -> None:
    """Say there which ones CPU `number` takes, as they come."""

    def hear(row: Row) -> None:
        taken = of_row(number, row)
        level = "user" if taken.cpl == USER_CPL else "kernel"
        trace.write(taken.cycle, number, level, taken.rip, f"exception: {taken.what}")

    core.hear_exceptions(hear)


def of_row(cpu: int, row: Row) -> PcException:
    cycle, cpl, rip, vector, error, address, software = row
    return PcException(cycle, cpu, cpl, rip, vector, error, address, software)
