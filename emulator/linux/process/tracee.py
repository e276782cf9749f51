"""Tracee: what the kernel keeps of a task that another one traces: where it is stopped, and what it is to do next."""

from __future__ import annotations

from dataclasses import dataclass, field

from emulator.linux.signals.signal import SignalInfo

PTRACE_O_SUSPEND_SECCOMP = 1 << 21
NO_CALL = -1  # the number of the system call in which a task is that is in none


@dataclass(slots=True)
class Stop:
    """A ptrace-stop (ptrace(2), "Stopped states")."""

    code: int  # bits 8 and up of the wait status word: the signal, and what else there is to say
    why: int  # CLD_TRAPPED or CLD_STOPPED, as SIGCHLD tells it
    info: SignalInfo | None  # what PTRACE_GETSIGINFO gives; None in a group-stop
    told: bool = False  # the tracer has waited for it


@dataclass(slots=True)
class Tracee:
    """Linux's task_struct.ptrace, jobctl, ptrace_message and last_siginfo."""

    seized: bool  # by PTRACE_SEIZE, and not by PTRACE_ATTACH or PTRACE_TRACEME
    options: int = 0  # PTRACE_O_*
    message: int = 0  # of the present stop: PTRACE_GETEVENTMSG
    stop: Stop | None = None  # None: it is not stopped for its tracer
    injected: int = 0  # the signal with which its tracer lets it go on
    reports_calls: bool = False  # PTRACE_SYSCALL
    emulates_calls: bool = False  # PTRACE_SYSEMU: it stops at the entry, and the call is not made
    steps: bool = False  # PTRACE_SINGLESTEP
    call_number: int = NO_CALL  # x86: orig_rax; AArch64: NT_ARM_SYSTEM_CALL
    first_argument: int = 0  # AArch64: orig_x0
    interrupted: bool = False  # PTRACE_INTERRUPT: it is to stop
    notified: bool = False  # seized, and its process has stopped or gone on: it is to tell
    group_stop: bool = False  # its process has stopped: so is it to do
    listens: bool = False  # PTRACE_LISTEN: it stays stopped, and tells when its process goes on
    events: list[tuple[int, int]] = field(default_factory=list)  # (PTRACE_EVENT_*, message) that this call has to tell
    ended: int | None = None  # wait status word of a thread that has ended, until its tracer has waited for it

    @property
    def suspends_seccomp(self) -> bool:
        return bool(self.options & PTRACE_O_SUSPEND_SECCOMP)

    @property
    def goes_on(self) -> bool:
        """Whether it is in no stop."""
        return self.stop is None

    @property
    def has_to_stop(self) -> bool:
        """Whether it stops before it executes on, whatever signals there are."""
        return self.interrupted or self.notified or self.group_stop
