"""Which signal a CPU exception becomes, as tables, and what its siginfo_t and frame show."""

from __future__ import annotations

from dataclasses import dataclass, replace

from emulator._native import Core
from emulator.cpu import ExceptionKind, TrapKind
from emulator.linux.arch.architecture import Architecture
from emulator.linux.signals.signal import (
    BUS_ADRALN,
    FPE_FLTDIV,
    FPE_FLTINV,
    FPE_FLTOVF,
    FPE_FLTRES,
    FPE_FLTUND,
    FPE_INTDIV,
    ILL_ILLOPC,
    ILL_ILLOPN,
    SI_KERNEL,
    SIGBUS,
    SIGFPE,
    SIGILL,
    SIGKILL,
    SIGSEGV,
    SIGTRAP,
    TRAP_BRKPT,
    TRAP_TRACE,
    SignalInfo,
)


@dataclass(frozen=True, slots=True)
class Row:
    """SI_KERNEL comes without an address; `trap_number` is what an x86 frame shows: the vector."""

    signal: int
    code: int
    trap_number: int = 0

    def info(self, pc: int) -> SignalInfo:
        return SignalInfo(self.signal, self.code, 0 if self.code == SI_KERNEL else pc, trap_number=self.trap_number)


X86_INVALID = Row(SIGILL, ILL_ILLOPN, 6)
X86_PROTECTION = Row(SIGSEGV, SI_KERNEL, 13)
INTERNAL = Row(SIGKILL, SI_KERNEL)

EXCEPTIONS: dict[str, dict[ExceptionKind, Row]] = {
    "aarch64": {  # arch/arm64/kernel/traps.c
        ExceptionKind.UNDEFINED: Row(SIGILL, ILL_ILLOPC),
        ExceptionKind.BREAKPOINT: Row(SIGTRAP, TRAP_BRKPT),
        ExceptionKind.DIVIDE: Row(SIGFPE, FPE_INTDIV),
        ExceptionKind.ALIGNMENT: Row(SIGBUS, BUS_ADRALN),
        ExceptionKind.PRIVILEGED: Row(SIGSEGV, SI_KERNEL),
        ExceptionKind.OVERFLOW: Row(SIGSEGV, SI_KERNEL),
        ExceptionKind.INTERNAL: INTERNAL,
    },
    "x86_64": {  # arch/x86/kernel/traps.c
        ExceptionKind.UNDEFINED: X86_INVALID,
        ExceptionKind.BREAKPOINT: Row(SIGTRAP, SI_KERNEL, 3),
        ExceptionKind.DIVIDE: Row(SIGFPE, FPE_INTDIV, 0),
        ExceptionKind.ALIGNMENT: Row(SIGBUS, BUS_ADRALN, 17),
        ExceptionKind.PRIVILEGED: X86_PROTECTION,
        ExceptionKind.OVERFLOW: X86_PROTECTION,
        ExceptionKind.INTERNAL: INTERNAL,
        ExceptionKind.X87: Row(SIGFPE, 0, 16),
        ExceptionKind.SIMD: Row(SIGFPE, 0, 19),
        ExceptionKind.STACK: Row(SIGBUS, SI_KERNEL, 12),
        ExceptionKind.STEP: Row(SIGTRAP, TRAP_TRACE, 1),
    },
}

FLOATING_POINT = (  # bits of MXCSR and of the x87 status word -> si_code, the first that is raised
    (0x01, FPE_FLTINV),
    (0x04, FPE_FLTDIV),
    (0x08, FPE_FLTOVF),
    (0x12, FPE_FLTUND),  # denormal operand, underflow
    (0x20, FPE_FLTRES),
)

REGISTERS: dict[TrapKind, Row] = {
    TrapKind.MRS: Row(SIGILL, ILL_ILLOPC),
    TrapKind.MSR: Row(SIGILL, ILL_ILLOPC),
    TrapKind.CPUID: X86_PROTECTION,
    TrapKind.RDTSC: X86_PROTECTION,
    TrapKind.RDTSCP: X86_PROTECTION,
    TrapKind.RDPMC: X86_PROTECTION,
    TrapKind.XGETBV: X86_INVALID,
}


def exception_info(architecture: Architecture, kind: ExceptionKind, core: Core) -> SignalInfo:
    pc = core.pc
    if pc % architecture.instruction_alignment:
        if kind is ExceptionKind.UNDEFINED:
            kind = ExceptionKind.ALIGNMENT  # the engine reports a misaligned PC so
    elif kind is ExceptionKind.ALIGNMENT:
        trap, error = architecture.misaligned_syndrome(core.fault_access)
        return SignalInfo(SIGBUS, BUS_ADRALN, core.fault_address, trap_number=trap, error_code=error)
    row = EXCEPTIONS[architecture.isa][kind]
    if kind in (ExceptionKind.X87, ExceptionKind.SIMD):
        raised = architecture.floating_point_exceptions(core, row.trap_number)
        row = replace(row, code=next((code for bits, code in FLOATING_POINT if raised & bits), 0))
    return row.info(pc)


def fault_info(
    architecture: Architecture, failure: tuple[int, int], address: int, access: int, present: bool
) -> SignalInfo:
    """A page fault that nothing could mend; `failure` is what the memory map made of it. `access`: 1, 2, 4 as X86_PF_*.

    An x86 address that is none (not canonical) is a general protection fault, which does not tell it.
    """
    if not architecture.is_address(address):
        return X86_PROTECTION.info(0)
    trap, error = architecture.fault_syndrome(access, present)
    return SignalInfo(*failure, address, trap_number=trap, error_code=error)
