"""Kernel tracepoints that can be events: attr.config is the id that tracefs shows. Linux's ids differ by its build."""

from __future__ import annotations

from enum import IntEnum


class TracepointId(IntEnum):
    """The names are those below /sys/kernel/tracing/events."""

    SYS_EXIT = 348
    SYS_ENTER = 349
    SCHED_PROCESS_EXEC = 303
    SCHED_PROCESS_FORK = 304
    SCHED_PROCESS_EXIT = 308
    SCHED_MIGRATE_TASK = 310
    SCHED_SWITCH = 311
    SCHED_WAKEUP = 313


TRACEPOINTS: dict[str, TracepointId] = {
    "raw_syscalls:sys_enter": TracepointId.SYS_ENTER,
    "raw_syscalls:sys_exit": TracepointId.SYS_EXIT,
    "sched:sched_migrate_task": TracepointId.SCHED_MIGRATE_TASK,
    "sched:sched_process_exec": TracepointId.SCHED_PROCESS_EXEC,
    "sched:sched_process_exit": TracepointId.SCHED_PROCESS_EXIT,
    "sched:sched_process_fork": TracepointId.SCHED_PROCESS_FORK,
    "sched:sched_switch": TracepointId.SCHED_SWITCH,
    "sched:sched_wakeup": TracepointId.SCHED_WAKEUP,
}
