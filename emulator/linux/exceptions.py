"""Which signal a CPU exception becomes, as tables."""

from __future__ import annotations

from emulator.cpu import ExceptionKind, TrapKind
from emulator.linux.signal import (
    BUS_ADRALN,
    FPE_INTDIV,
    ILL_ILLOPC,
    SI_KERNEL,
    SIGBUS,
    SIGFPE,
    SIGILL,
    SIGKILL,
    SIGSEGV,
    SIGTRAP,
    TRAP_BRKPT,
)

ILL_ILLOPN = 2

# (signal, si_code). arch/x86/kernel/traps.c: int3 and #GP come with SI_KERNEL and no address; arch/arm64/kernel/traps.c
EXCEPTION_SIGNALS: dict[ExceptionKind, tuple[int, int]] = {
    ExceptionKind.UNDEFINED: (SIGILL, ILL_ILLOPC),
    ExceptionKind.BREAKPOINT: (SIGTRAP, TRAP_BRKPT),
    ExceptionKind.DIVIDE: (SIGFPE, FPE_INTDIV),
    ExceptionKind.ALIGNMENT: (SIGBUS, BUS_ADRALN),
    ExceptionKind.PRIVILEGED: (SIGSEGV, SI_KERNEL),
    ExceptionKind.OVERFLOW: (SIGSEGV, SI_KERNEL),
    ExceptionKind.INTERNAL: (SIGKILL, SI_KERNEL),
}

REGISTER_SIGNALS: dict[TrapKind, tuple[int, int]] = {
    TrapKind.MRS: (SIGILL, ILL_ILLOPC),
    TrapKind.MSR: (SIGILL, ILL_ILLOPC),
    TrapKind.CPUID: (SIGSEGV, SI_KERNEL),
    TrapKind.RDTSC: (SIGSEGV, SI_KERNEL),
    TrapKind.RDTSCP: (SIGSEGV, SI_KERNEL),
    TrapKind.RDPMC: (SIGSEGV, SI_KERNEL),
    TrapKind.XGETBV: (SIGILL, ILL_ILLOPN),
}
