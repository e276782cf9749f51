"""Permission: who may look into a task, and who may trace it (kernel/ptrace.c, ptrace_may_access; security/yama).

Debian's kernel has Yama, with kernel.yama.ptrace_scope at 0: whoever has the same user may. Asked of 6.12 on a board.
"""

from __future__ import annotations

from emulator.linux.errors import EPERM, LinuxError
from emulator.linux.process.credentials import CAP_SYS_PTRACE
from emulator.linux.process.task import Task

PTRACE_SCOPE = 0  # kernel.yama.ptrace_scope


def may_access(task: Task, target: Task) -> bool:
    """Whether `task` may read and write what is `target`'s (PTRACE_MODE_READ and PTRACE_MODE_ATTACH)."""
    own, others = task.credentials, target.credentials
    if task.process is target.process or own.has(CAP_SYS_PTRACE):
        return True
    if (own.uid, own.gid) != (others.uid, others.gid) or target.dumpable != 1:
        return False
    return not others.capabilities.permitted & ~own.capabilities.permitted


def check_access(task: Task, target: Task) -> None:
    """EPERM if it may not."""
    if not may_access(task, target):
        raise LinuxError(EPERM, f"process {task.pid} may not look into {target.pid}: another user's, or not dumpable")
