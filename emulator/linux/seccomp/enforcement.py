"""What becomes of a system call that a task may not make (kernel/seccomp.c, __secure_computing)."""

from __future__ import annotations

import struct

from emulator.linux.errors import ENOSYS
from emulator.linux.process.task import Task
from emulator.linux.ptrace.abi import AUDIT_ARCHITECTURES
from emulator.linux.seccomp.filters import ALLOWED, MODE_STRICT, Action, Verdict
from emulator.linux.signals.signal import SIGKILL, SIGSYS, SYS_SECCOMP, SignalInfo
from emulator.linux.signals.signal_delivery import force
from emulator.linux.syscalls.names import syscall_name

STRICT = ("read", "write", "exit", "rt_sigreturn")
DATA = struct.Struct("<iIQ6Q")  # struct seccomp_data
WORDS = struct.Struct("<16I")
SIGINFO = struct.Struct("<iii4xQiI92x")  # of SIGSYS: signal, errno, code, where it was, the call and whose
MOST_ERRNO = 4095
MASK = (1 << 64) - 1
ENDED = -ENOSYS  # as a result: nobody sees it


def judge(task: Task, number: int, arguments: tuple[int, ...]) -> Verdict:
    """What its filters say of a call. `number` is a C int."""
    own = task.seccomp
    if own is None or (task.tracee is not None and task.tracee.suspends_seccomp):
        return ALLOWED
    isa = task.architecture.isa
    if own.mode == MODE_STRICT:
        return ALLOWED if number >= 0 and syscall_name(isa, number) in STRICT else Verdict(Action.KILL_THREAD)
    if own.works_cycles:
        task.spend(own.works_cycles)
    data = DATA.pack(number, AUDIT_ARCHITECTURES[isa], task.cpu.core.pc, *arguments[:6])
    return own.verdict(WORDS.unpack(data))


def ends_by(task: Task, verdict: Verdict) -> int:
    """The wait status word with which the task ends by that verdict; 0: it goes on."""
    if verdict.action not in (Action.KILL_PROCESS, Action.KILL_THREAD):
        return 0
    return SIGKILL if task.seccomp is not None and task.seccomp.mode == MODE_STRICT else SIGSYS


def refuse(task: Task, number: int, verdict: Verdict, rolled_back: int) -> int:
    """The call is not made: its result. `rolled_back`: what the result's register had before it."""
    action = verdict.action
    status = ends_by(task, verdict)
    if status:
        if action is Action.KILL_PROCESS or len(task.process.threads) == 1:
            task.kernel.lifecycle.end_process(task.process, status)
        else:
            task.kernel.lifecycle.end_thread(task, status)
        return ENDED
    if action is Action.ERRNO:
        return -min(verdict.data, MOST_ERRNO)
    if action is Action.TRAP:
        isa = task.architecture.isa
        raw = SIGINFO.pack(SIGSYS, verdict.data, SYS_SECCOMP, task.cpu.core.pc, number, AUDIT_ARCHITECTURES[isa])
        force(task, SignalInfo(SIGSYS, SYS_SECCOMP, raw=raw))
        return rolled_back
    return -ENOSYS  # nobody listens (USER_NOTIF), or traces it and wants to hear (TRACE)


def is_made(verdict: Verdict) -> bool:
    return verdict.action in (Action.ALLOW, Action.LOG)
