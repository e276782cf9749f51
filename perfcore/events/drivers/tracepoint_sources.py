"""Where each tracepoint event is heard: which of the modelled kernel's tracepoints, on which CPU, and what it tells.

An occurrence is of the task that executes where it happens, as in Linux: a wakeup is the waker's. A migration is of
the task that comes to another CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from emulator.cpu import Cpu
from emulator.linux.mm.mapping import PROT_EXEC, PROT_WRITE
from emulator.linux.process.task import Process, Task, TaskState
from emulator.linux.sched.policies import MOST_REAL_TIME_PRIORITY, REAL_TIME
from emulator.linux.signals.signal import (
    SI_USER,
    SIG_DFL,
    SIGKILL,
    Default,
    Generated,
    SignalAction,
    SignalInfo,
    default_action,
)
from emulator.linux.structures import NANOSECONDS
from emulator.linux.tracepoint import Tracepoint
from emulator.linux.tracepoints import Tracepoints
from perfcore.abi.kernel_tracepoints import (
    CONTENTION_BEGIN,
    CONTENTION_END,
    CPU_FREQUENCY,
    CPU_IDLE,
    ITIMER_EXPIRE,
    ITIMER_STATE,
    PAGE_FAULT_KERNEL,
    PAGE_FAULT_USER,
    SCHED_MIGRATE_TASK,
    SCHED_PROCESS_EXEC,
    SCHED_PROCESS_EXIT,
    SCHED_PROCESS_FORK,
    SCHED_PROCESS_WAIT,
    SCHED_STAT_BLOCKED,
    SCHED_STAT_IOWAIT,
    SCHED_STAT_RUNTIME,
    SCHED_STAT_SLEEP,
    SCHED_STAT_WAIT,
    SCHED_SWITCH,
    SCHED_WAKEUP,
    SCHED_WAKEUP_NEW,
    SCHED_WAKING,
    SIGNAL_DELIVER,
    SIGNAL_GENERATE,
    SYS_ENTER,
    SYS_EXIT,
    TASK_NEWTASK,
    TASK_PREEMPTED,
    TASK_RENAME,
)
from perfcore.abi.tracepoints import Value, syscall_of
from perfcore.events.kernel import Linux
from perfcore.events.late_probes import DefinedEvent

Told = Callable[..., tuple[Value, ...]]
"""From what a tracepoint tells to the values of the event's fields."""
WhichCpu = Callable[..., Cpu | None]
"""Of the kernel and what a tracepoint tells: the CPU on which it happens, None if it is not one of the event's."""

NORMAL_PRIORITY = 120  # of nice 0; include/linux/sched/prio.h: real-time priorities are 0..98 the other way round
IDLE = ("swapper", 0, NORMAL_PRIORITY)  # the idle task's name, pid and priority
_SLEEPING, _STOPPED, _TRACED, _DEAD, _ZOMBIE = 0x01, 0x04, 0x08, 0x10, 0x20
_STATES = {
    TaskState.RUNNABLE: 0,
    TaskState.SLEEPING: _SLEEPING,
    TaskState.STOPPED: _STOPPED,
    TaskState.TRACED: _TRACED,
}
_BEGINS_TO_IDLE, _HAS_IDLED = 1, (1 << 32) - 1  # of cpu_idle's state: the first idle state, PWR_EVENT_EXIT
_X86_PF_PROT, _X86_PF_WRITE, _X86_PF_USER, _X86_PF_INSTR = 1, 2, 4, 16  # arch/x86/include/asm/trap_pf.h
_NEVER: Tracepoint[[]] = Tracepoint()  # the modelled kernel has no locks for which CPUs wait


class Source(NamedTuple):
    """Where an event's occurrences are heard, on which CPU they are, and what they tell."""

    tracepoint: Callable[[Tracepoints], Tracepoint[Any]]
    which_cpu: WhichCpu
    told: Told
    often: bool = True
    in_kernel: bool = True
    is_probe: bool = False  # which tells an address and registers, too
    fits: Callable[..., bool] = lambda *told: True


def _of_the_task(linux: Linux, task: Task, *_: object) -> Cpu:
    return task.cpu


def that_executes(linux: Linux, *_: object) -> Cpu:
    return linux.executing_cpu


def _that_switches(linux: Linux, cpu: Cpu, *_: object) -> Cpu:
    return cpu


def _on_that_cpu(linux: Linux, task: Task, cpu: Cpu, *_: object) -> Cpu:
    return cpu


def _priority(task: Task) -> int:
    """task_struct.prio."""
    if task.policy in REAL_TIME:
        return MOST_REAL_TIME_PRIORITY - task.priority
    return NORMAL_PRIORITY + task.nice


def _state(task: Task) -> int:
    """Why it leaves its CPU, if it could not go on."""
    if task.exit_code is not None:
        return _ZOMBIE if task is task.process.leader else _DEAD
    return _STATES[task.state]


def _who(task: Task | None) -> tuple[str, int, int]:
    return IDLE if task is None else (task.comm, task.tid, _priority(task))


def _switch(cpu: Cpu, previous: Task | None, following: Task | None, preempted: bool) -> tuple[Value, ...]:
    state = TASK_PREEMPTED if preempted else 0 if previous is None else _state(previous)
    return (*_who(previous), state, *_who(following))


def _delay(task: Task, cpu: Cpu, cycles: int) -> tuple[Value, ...]:
    return task.comm, task.tid, task.kernel.clock.ns(cycles)


def _placed(task: Task, cpu: Cpu) -> tuple[Value, ...]:
    return *_who(task), cpu.number


def _page_fault_of(user: bool) -> WhichCpu:
    def which_cpu(linux: Linux, task: Task, address: int, access: int, is_there: bool, by_user: bool) -> Cpu | None:
        return task.cpu if by_user is user else None

    return which_cpu


def _page_fault(task: Task, address: int, access: int, is_there: bool, user: bool) -> tuple[Value, ...]:
    """Where the kernel's own access failed has no address: its code is modelled."""
    error_code = _X86_PF_PROT * is_there | _X86_PF_USER * user
    error_code |= _X86_PF_WRITE * bool(access & PROT_WRITE) | _X86_PF_INSTR * bool(access & PROT_EXEC)
    return address, task.cpu.core.pc if user else 0, error_code


def _generated(task: Task, info: SignalInfo, group: bool, result: Generated) -> tuple[Value, ...]:
    return info.signal, 0, info.code, task.comm, task.tid, int(group), int(result)


def _delivered(task: Task, info: SignalInfo, action: SignalAction) -> tuple[Value, ...]:
    """One that ends its process, without a core file and a tracer, comes as SIGKILL (complete_signal)."""
    is_fatal = action.handler == SIG_DFL and default_action(info.signal) is Default.TERMINATE
    if is_fatal and task.tracee is None:
        return SIGKILL, 0, SI_USER, SIG_DFL, 0
    return info.signal, 0, info.code, action.handler, action.flags


def _itimer(task: Task, which: int, value_ns: int, interval_ns: int) -> tuple[Value, ...]:
    """`expires` is 0 for ITIMER_REAL, and of the others what is asked for."""
    return (which, value_ns if which else 0, *divmod(value_ns, NANOSECONDS), *divmod(interval_ns, NANOSECONDS))


def _itimer_expired(process: Process, which: int) -> tuple[Value, ...]:
    """`now` is the CPU time that has been used, 0 for ITIMER_REAL."""
    used = (0, process.user_ns, process.cpu_ns)[which]
    return which, process.pid, used() if callable(used) else used


SOURCES: dict[int, Source] = {
    SYS_ENTER.id: Source(lambda points: points.sys_enter, _of_the_task, lambda _, number, args: (number, args)),
    SYS_EXIT.id: Source(lambda points: points.sys_exit, _of_the_task, lambda _, number, result: (number, result)),
    SCHED_PROCESS_EXEC.id: Source(
        lambda points: points.sched_process_exec,
        _of_the_task,
        lambda task: (task.process.executable, task.tid, task.tid),
        often=False,
    ),
    SCHED_PROCESS_EXIT.id: Source(lambda points: points.task_exit, _of_the_task, _who, often=False),
    SCHED_PROCESS_FORK.id: Source(
        lambda points: points.sched_process_fork,
        _of_the_task,
        lambda parent, child: (parent.comm, parent.tid, child.comm, child.tid),
    ),
    SCHED_PROCESS_WAIT.id: Source(
        lambda points: points.sched_process_wait,
        _of_the_task,
        lambda task, number: (task.comm, number, _priority(task)),
    ),
    SCHED_MIGRATE_TASK.id: Source(
        lambda points: points.sched_migrate_task,
        _of_the_task,
        lambda task, old, new: (*_who(task), old.number, new.number),
        often=False,
    ),
    SCHED_STAT_RUNTIME.id: Source(lambda points: points.sched_stat_runtime, _on_that_cpu, _delay),
    SCHED_STAT_WAIT.id: Source(lambda points: points.sched_stat_wait, _on_that_cpu, _delay),
    SCHED_STAT_SLEEP.id: Source(lambda points: points.sched_stat_sleep, that_executes, _delay),
    SCHED_STAT_BLOCKED.id: Source(lambda points: points.sched_stat_blocked, that_executes, _delay),
    SCHED_STAT_IOWAIT.id: Source(lambda points: points.sched_stat_iowait, that_executes, _delay),
    SCHED_SWITCH.id: Source(lambda points: points.sched_switch, _that_switches, _switch),
    SCHED_WAKEUP.id: Source(lambda points: points.sched_wakeup, that_executes, _placed),
    SCHED_WAKEUP_NEW.id: Source(lambda points: points.sched_wakeup_new, that_executes, _placed),
    SCHED_WAKING.id: Source(lambda points: points.sched_waking, that_executes, _placed),
    TASK_NEWTASK.id: Source(
        lambda points: points.task_newtask, _of_the_task, lambda _, child, flags: (child.tid, child.comm, flags, 0)
    ),
    TASK_RENAME.id: Source(
        lambda points: points.task_rename, _of_the_task, lambda task, comm: (task.tid, task.comm, comm, 0)
    ),
    SIGNAL_DELIVER.id: Source(lambda points: points.signal_deliver, _of_the_task, _delivered),
    SIGNAL_GENERATE.id: Source(lambda points: points.signal_generate, that_executes, _generated),
    ITIMER_EXPIRE.id: Source(lambda points: points.itimer_expire, that_executes, _itimer_expired),
    ITIMER_STATE.id: Source(lambda points: points.itimer_state, _of_the_task, _itimer),
    CONTENTION_BEGIN.id: Source(lambda _: _NEVER, that_executes, lambda: ()),
    CONTENTION_END.id: Source(lambda _: _NEVER, that_executes, lambda: ()),
    CPU_FREQUENCY.id: Source(lambda _: _NEVER, that_executes, lambda: ()),
    CPU_IDLE.id: Source(
        lambda points: points.cpu_idle,
        _that_switches,
        lambda cpu, begins: (_BEGINS_TO_IDLE if begins else _HAS_IDLED, cpu.number),
    ),
    PAGE_FAULT_KERNEL.id: Source(lambda points: points.page_fault_entry, _page_fault_of(user=False), _page_fault),
    PAGE_FAULT_USER.id: Source(lambda points: points.page_fault_entry, _page_fault_of(user=True), _page_fault),
}


def source_of_syscall(id: int) -> Source:
    """Of syscalls:sys_enter_* and syscalls:sys_exit_*: those of one number. They are told with the caller's registers,
    and so are user mode's."""
    wanted, exits = syscall_of(id)

    def which_cpu(linux: Linux, task: Task, number: int, told: object) -> Cpu | None:
        return task.cpu if number == wanted else None

    if exits:
        return Source(
            lambda points: points.sys_exit,
            which_cpu,
            lambda _, number, result: (number, result),
            in_kernel=False,
        )
    return Source(
        lambda points: points.sys_enter,
        which_cpu,
        lambda _, number, arguments: (number, *arguments),
        in_kernel=False,
    )


def source_of_probe(probe: DefinedEvent) -> Source:
    """Of one that has been defined."""
    return Source(
        lambda points: probe.told,
        lambda linux, hit, cpu, task, places, moment: cpu,
        lambda hit, cpu, task, places, moment: hit.values(places, moment),
        in_kernel=probe.in_kernel,
        is_probe=True,
        fits=lambda hit, cpu, task, places, moment: hit.fits(task, places, moment),
    )
