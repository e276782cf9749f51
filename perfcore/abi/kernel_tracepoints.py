"""The tracepoints that the modelled kernel has besides those of system calls, a row each: include/trace/events of Linux
6.12."""

from __future__ import annotations

from collections.abc import Mapping

from perfcore.abi.tracepoints import COMM_BYTES, LOCATION, TO_THE_END, Field, TracepointEvent


def _comm(name: str) -> Field:
    return Field("char", name, COMM_BYTES)


# include/linux/sched.h: what a state's bits mean, and the bit of a task that could have gone on (TASK_REPORT_MAX)
TASK_STATES = {0x01: "S", 0x02: "D", 0x04: "T", 0x08: "t", 0x10: "X", 0x20: "Z", 0x40: "P", 0x80: "I"}
TASK_PREEMPTED = 0x100


def _prints(text: str, *names: str) -> str:
    return ", ".join((f'"{text}"', *(f"REC->{name}" for name in names)))


def _switch_prints() -> str:
    states = ", ".join(f'{{ {bit:#x}, "{letter}" }}' for bit, letter in TASK_STATES.items())
    bits = f"(REC->prev_state & {TASK_PREEMPTED - 1:#x})"
    state = f'{bits} ? __print_flags{bits[:-1]}, "|", {states}) : "R"'
    preempted = f'REC->prev_state & {TASK_PREEMPTED:#x} ? "+" : ""'
    left = "prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s"
    values = ("REC->prev_comm", "REC->prev_pid", "REC->prev_prio", state, preempted)
    text = f'"{left} ==> next_comm=%s next_pid=%d next_prio=%d"'
    return ", ".join((text, *values, "REC->next_comm", "REC->next_pid", "REC->next_prio"))


# What tracers write (kernel/trace/trace_entries.h): its layout is told as an event's is, but nobody can open it.
PRINT = TracepointEvent(
    5,
    "ftrace",
    "print",
    (Field("unsigned long", "ip"), Field("char", "buf", TO_THE_END)),
    '"%ps: %s", (void *)REC->ip, REC->buf',
)
SYS_ENTER = TracepointEvent(
    349,
    "raw_syscalls",
    "sys_enter",
    (Field("long", "id"), Field("unsigned long", "args", 6)),
    _prints("NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)", "id", *(f"args[{index}]" for index in range(6))),
)
SYS_EXIT = TracepointEvent(
    348,
    "raw_syscalls",
    "sys_exit",
    (Field("long", "id"), Field("long", "ret")),
    _prints("NR %ld = %ld", "id", "ret"),
)
SCHED_MIGRATE_TASK = TracepointEvent(
    310,
    "sched",
    "sched_migrate_task",
    (_comm("comm"), Field("pid_t", "pid"), Field("int", "prio"), Field("int", "orig_cpu"), Field("int", "dest_cpu")),
    _prints("comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d", "comm", "pid", "prio", "orig_cpu", "dest_cpu"),
)
SCHED_PROCESS_EXEC = TracepointEvent(
    303,
    "sched",
    "sched_process_exec",
    (Field(LOCATION, "filename"), Field("pid_t", "pid"), Field("pid_t", "old_pid")),
    '"filename=%s pid=%d old_pid=%d", __get_str(filename), REC->pid, REC->old_pid',
)


def _process(id: int, name: str) -> TracepointEvent:
    """sched_process_template, which sched_process_wait tells, too."""
    fields = _comm("comm"), Field("pid_t", "pid"), Field("int", "prio")
    return TracepointEvent(id, "sched", name, fields, _prints("comm=%s pid=%d prio=%d", "comm", "pid", "prio"))


SCHED_PROCESS_EXIT = _process(308, "sched_process_exit")
SCHED_PROCESS_WAIT = _process(306, "sched_process_wait")
SCHED_PROCESS_FORK = TracepointEvent(
    304,
    "sched",
    "sched_process_fork",
    (_comm("parent_comm"), Field("pid_t", "parent_pid"), _comm("child_comm"), Field("pid_t", "child_pid")),
    _prints("comm=%s pid=%d child_comm=%s child_pid=%d", "parent_comm", "parent_pid", "child_comm", "child_pid"),
)


def _stat(id: int, name: str) -> TracepointEvent:
    """sched_stat_template: how long a task was what the name says."""
    return TracepointEvent(
        id,
        "sched",
        f"sched_stat_{name}",
        (_comm("comm"), Field("pid_t", "pid"), Field("u64", "delay")),
        '"comm=%s pid=%d delay=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->delay',
    )


SCHED_STAT_BLOCKED = _stat(299, "blocked")
SCHED_STAT_IOWAIT = _stat(300, "iowait")
SCHED_STAT_SLEEP = _stat(301, "sleep")
SCHED_STAT_WAIT = _stat(302, "wait")
SCHED_STAT_RUNTIME = TracepointEvent(
    298,
    "sched",
    "sched_stat_runtime",
    (_comm("comm"), Field("pid_t", "pid"), Field("u64", "runtime")),
    '"comm=%s pid=%d runtime=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->runtime',
)
SCHED_SWITCH = TracepointEvent(
    311,
    "sched",
    "sched_switch",
    (
        _comm("prev_comm"),
        Field("pid_t", "prev_pid"),
        Field("int", "prev_prio"),
        Field("long", "prev_state"),
        _comm("next_comm"),
        Field("pid_t", "next_pid"),
        Field("int", "next_prio"),
    ),
    _switch_prints(),
)


def _wakeup(id: int, name: str) -> TracepointEvent:
    """sched_wakeup_template."""
    fields = _comm("comm"), Field("pid_t", "pid"), Field("int", "prio"), Field("int", "target_cpu")
    text = _prints("comm=%s pid=%d prio=%d target_cpu=%03d", "comm", "pid", "prio", "target_cpu")
    return TracepointEvent(id, "sched", name, fields, text)


SCHED_WAKEUP = _wakeup(313, "sched_wakeup")
SCHED_WAKEUP_NEW = _wakeup(312, "sched_wakeup_new")
SCHED_WAKING = _wakeup(314, "sched_waking")

TASK_NEWTASK = TracepointEvent(
    129,
    "task",
    "task_newtask",
    (Field("pid_t", "pid"), _comm("comm"), Field("unsigned long", "clone_flags"), Field("short", "oom_score_adj")),
    _prints("pid=%d comm=%s clone_flags=%lx oom_score_adj=%hd", "pid", "comm", "clone_flags", "oom_score_adj"),
)
TASK_RENAME = TracepointEvent(
    128,
    "task",
    "task_rename",
    (Field("pid_t", "pid"), _comm("oldcomm"), _comm("newcomm"), Field("short", "oom_score_adj")),
    _prints("pid=%d oldcomm=%s newcomm=%s oom_score_adj=%hd", "pid", "oldcomm", "newcomm", "oom_score_adj"),
)

_SIGINFO = Field("int", "sig"), Field("int", "errno"), Field("int", "code")
SIGNAL_DELIVER = TracepointEvent(
    180,
    "signal",
    "signal_deliver",
    (*_SIGINFO, Field("unsigned long", "sa_handler"), Field("unsigned long", "sa_flags")),
    _prints("sig=%d errno=%d code=%d sa_handler=%lx sa_flags=%lx", "sig", "errno", "code", "sa_handler", "sa_flags"),
)
SIGNAL_GENERATE = TracepointEvent(
    181,
    "signal",
    "signal_generate",
    (*_SIGINFO, _comm("comm"), Field("pid_t", "pid"), Field("int", "group"), Field("int", "result")),
    _prints(
        "sig=%d errno=%d code=%d comm=%s pid=%d grp=%d res=%d",
        *("sig", "errno", "code", "comm", "pid", "group", "result"),
    ),
)

_NS = "unsigned long long"
ITIMER_EXPIRE = TracepointEvent(
    340,
    "timer",
    "itimer_expire",
    (Field("int", "which"), Field("pid_t", "pid"), Field(_NS, "now")),
    '"which=%d pid=%d now=%llu", REC->which, (int) REC->pid, REC->now',
)
ITIMER_STATE = TracepointEvent(
    341,
    "timer",
    "itimer_state",
    (
        Field("int", "which"),
        Field(_NS, "expires"),
        *(Field("long", name) for name in ("value_sec", "value_nsec", "interval_sec", "interval_nsec")),
    ),
    '"which=%d expires=%llu it_value=%ld.%06ld it_interval=%ld.%06ld", REC->which, REC->expires, REC->value_sec, '
    "REC->value_nsec / 1000L, REC->interval_sec, REC->interval_nsec / 1000L",
)

_HRTIMER, _FUNCTION = Field("void *", "hrtimer"), Field("void *", "function")
_HRTIMER_CLOCKS = {0: "CLOCK_REALTIME", 1: "CLOCK_MONOTONIC", 7: "CLOCK_BOOTTIME", 11: "CLOCK_TAI"}
HRTIMER_MODES = {"ABS": 0, "REL": 1, "PINNED": 2, "SOFT": 4, "HARD": 8}  # enum hrtimer_mode; the others are sums
_WHOLE_MODES = [
    f"{way}{pinned}{where}" for where in ("", "_SOFT", "_HARD") for pinned in ("", "_PINNED") for way in ("ABS", "REL")
]
HRTIMER_MODES |= {name: sum(HRTIMER_MODES[part] for part in name.split("_")) for name in _WHOLE_MODES}


def _symbolic(field: str, names: Mapping[int, str] | Mapping[str, str]) -> str:
    rows = ", ".join(f'{{ {value}, "{name}" }}' for value, name in names.items())
    return f"__print_symbolic(REC->{field}, {rows})"


_CLOCK = _symbolic("clockid", _HRTIMER_CLOCKS)
_MODE = _symbolic("mode", {f"HRTIMER_MODE_{name}": name.replace("_", "|") for name in _WHOLE_MODES})
HRTIMER_INIT = TracepointEvent(
    334,
    "timer",
    "hrtimer_init",
    (_HRTIMER, Field("clockid_t", "clockid"), Field("enum hrtimer_mode", "mode")),
    f'"hrtimer=%p clockid=%s mode=%s", REC->hrtimer, {_CLOCK}, {_MODE}',
)
HRTIMER_START = TracepointEvent(
    335,
    "timer",
    "hrtimer_start",
    (
        _HRTIMER,
        _FUNCTION,
        Field("s64", "expires"),
        Field("s64", "softexpires"),
        Field("enum hrtimer_mode", "mode"),
        Field("bool", "was_armed"),
    ),
    '"hrtimer=%p function=%ps expires=%llu softexpires=%llu mode=%s was_armed=%d", REC->hrtimer, REC->function, '
    f"({_NS}) REC->expires, ({_NS}) REC->softexpires, {_MODE}, REC->was_armed",
)
HRTIMER_EXPIRE_ENTRY = TracepointEvent(
    336,
    "timer",
    "hrtimer_expire_entry",
    (_HRTIMER, Field("s64", "now"), _FUNCTION),
    f'"hrtimer=%p function=%ps now=%llu", REC->hrtimer, REC->function, ({_NS}) REC->now',
)


def _hrtimer(id: int, name: str) -> TracepointEvent:
    """hrtimer_class."""
    return TracepointEvent(id, "timer", name, (_HRTIMER,), _prints("hrtimer=%p", "hrtimer"))


HRTIMER_EXPIRE_EXIT = _hrtimer(337, "hrtimer_expire_exit")
HRTIMER_CANCEL = _hrtimer(338, "hrtimer_cancel")

_LOCKS = ", ".join(
    f'{{ (1U << {bit}), "{name}" }}' for bit, name in enumerate(("SPIN", "READ", "WRITE", "RT", "PERCPU", "MUTEX"))
)
CONTENTION_BEGIN = TracepointEvent(
    290,
    "lock",
    "contention_begin",
    (Field("void *", "lock_addr"), Field("unsigned int", "flags")),
    f'"%p (flags=%s)", REC->lock_addr, __print_flags(REC->flags, "|", {_LOCKS} )',
)
CONTENTION_END = TracepointEvent(
    291,
    "lock",
    "contention_end",
    (Field("void *", "lock_addr"), Field("int", "ret")),
    _prints("%p (ret=%d)", "lock_addr", "ret"),
)


def _cpu(id: int, name: str) -> TracepointEvent:
    """The class cpu."""
    text = '"state=%lu cpu_id=%lu", (unsigned long)REC->state, (unsigned long)REC->cpu_id'
    return TracepointEvent(id, "power", name, (Field("u32", "state"), Field("u32", "cpu_id")), text)


CPU_FREQUENCY = _cpu(460, "cpu_frequency")
CPU_IDLE = _cpu(461, "cpu_idle")


def _page_fault(id: int, name: str) -> TracepointEvent:
    """The class x86_exceptions."""
    text = '"address=%ps ip=%ps error_code=0x%lx", (void *)REC->address, (void *)REC->ip, REC->error_code'
    fields = tuple(Field("unsigned long", field) for field in ("address", "ip", "error_code"))
    return TracepointEvent(id, "exceptions", name, fields, text)


PAGE_FAULT_KERNEL = _page_fault(120, "page_fault_kernel")
PAGE_FAULT_USER = _page_fault(121, "page_fault_user")

ON_EVERY_ISA = (
    SYS_ENTER,
    SYS_EXIT,
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
    TASK_NEWTASK,
    TASK_RENAME,
    SIGNAL_DELIVER,
    SIGNAL_GENERATE,
    ITIMER_EXPIRE,
    ITIMER_STATE,
    HRTIMER_INIT,
    HRTIMER_START,
    HRTIMER_EXPIRE_ENTRY,
    HRTIMER_EXPIRE_EXIT,
    HRTIMER_CANCEL,
    CONTENTION_BEGIN,
    CONTENTION_END,
    CPU_FREQUENCY,
    CPU_IDLE,
)
KERNEL_TRACEPOINTS: dict[str, tuple[TracepointEvent, ...]] = {  # by ISA
    "aarch64": ON_EVERY_ISA,
    "x86_64": (*ON_EVERY_ISA, PAGE_FAULT_KERNEL, PAGE_FAULT_USER),
}
