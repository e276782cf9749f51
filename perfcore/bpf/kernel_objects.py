"""Objects of the kernel's that programs meet by their addresses: what they hold, as far as the modelled kernel has it.

Nothing is at these addresses but what `types.declarations` says of the structures.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from emulator.cpu import Cpu
from emulator.linux.process.task import Task
from perfcore.abi.tracepoints import COMM_BYTES

_TASKS = 0xFFFF_8880_0000_0000  # where a kernel would have them
_TASK_BYTES = 1 << 14
_LAST_TASK = 1 << 22  # PID_MAX_LIMIT
_TASK = struct.Struct("<iiQQ16s")  # struct task_struct: pid, tgid, real_parent, group_leader, comm


def task_address(task: Task | None) -> int:
    """None is the idle task."""
    return _of_tid(0 if task is None else task.tid)


def _of_tid(tid: int) -> int:
    return _TASKS + tid * _TASK_BYTES


def comm_of(task: Task | None, cpu: Cpu) -> bytes:
    """Without the NUL. Of no task: the idle task's of `cpu`."""
    comm = f"swapper/{cpu.number}" if task is None else task.comm
    return comm.encode("utf-8", "surrogateescape")[: COMM_BYTES - 1]


class KernelObjects:
    """Of one machine. `tasks`: all that there are, by tid."""

    def __init__(self, tasks: Mapping[int, Task]) -> None:
        self._tasks = tasks

    def read(self, address: int, size: int, cpu: Cpu) -> bytes | None:
        """Some bytes of a task; None where there are none."""
        tid, offset = divmod(address - _TASKS, _TASK_BYTES)
        if not 0 <= tid <= _LAST_TASK or offset + size > _TASK.size:
            return None
        task = self._tasks.get(tid)
        if task is None and tid:
            return None
        return self._task(task, cpu)[offset : offset + size]

    @staticmethod
    def _task(task: Task | None, cpu: Cpu) -> bytes:
        if task is None:
            idle = _of_tid(0)
            return _TASK.pack(0, 0, idle, idle, comm_of(None, cpu))
        return _TASK.pack(task.tid, task.pid, _of_tid(task.ppid), _of_tid(task.pid), comm_of(task, cpu))
