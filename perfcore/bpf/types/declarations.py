"""What C types mean in the modelled kernel: those that programs meet at its functions and tracepoints.

Of a structure there are the members that the modelled kernel has. Those whose insides it does not have are known by
name alone, so that a program which wants a member of them is not loaded, and none reads a zero that means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfcore.abi.kernel_tracepoints import HRTIMER_MODES
from perfcore.abi.pt_regs import PT_REGS
from perfcore.abi.tracepoints import COMMON_FIELDS
from perfcore.bpf.types.writer import Declarations, Function, Members

TASK = "struct task_struct"
POINTER_TO_TASK = f"{TASK} *"

_TYPEDEFS: dict[str, str | Function] = {  # of 6.12
    "__kernel_clockid_t": "int",
    "__kernel_fd_set": "struct fd_set",
    "__kernel_gid32_t": "unsigned int",
    "__kernel_key_t": "int",
    "__kernel_long_t": "long",
    "__kernel_loff_t": "long long",
    "__kernel_mqd_t": "int",
    "__kernel_off_t": "__kernel_long_t",
    "__kernel_old_time_t": "__kernel_long_t",
    "__kernel_pid_t": "int",
    "__kernel_rwf_t": "int",
    "__kernel_size_t": "__kernel_ulong_t",
    "__kernel_ssize_t": "__kernel_long_t",
    "__kernel_timer_t": "int",
    "__kernel_uid32_t": "unsigned int",
    "__kernel_ulong_t": "unsigned long",
    "__s16": "short",
    "__s32": "int",
    "__s64": "long long",
    "__s8": "signed char",
    "__u16": "unsigned short",
    "__u32": "unsigned int",
    "__u64": "unsigned long long",
    "__u8": "unsigned char",
    "bool": "_Bool",
    "cap_user_data_t": "struct __user_cap_data_struct *",
    "cap_user_header_t": "struct __user_cap_header_struct *",
    "clockid_t": "__kernel_clockid_t",
    "fd_set": "__kernel_fd_set",
    "gid_t": "__kernel_gid32_t",
    "key_t": "__kernel_key_t",
    "loff_t": "__kernel_loff_t",
    "mqd_t": "__kernel_mqd_t",
    "off_t": "__kernel_off_t",
    "pid_t": "__kernel_pid_t",
    "rwf_t": "__kernel_rwf_t",
    "s16": "__s16",
    "s32": "__s32",
    "s64": "__s64",
    "s8": "__s8",
    "siginfo_t": "struct siginfo",
    "sigset_t": "struct sigset",
    "size_t": "__kernel_size_t",
    "ssize_t": "__kernel_ssize_t",
    "stack_t": "struct sigaltstack",
    "timer_t": "__kernel_timer_t",
    "u16": "__u16",
    "u32": "__u32",
    "u64": "__u64",
    "u8": "__u8",
    "uid_t": "__kernel_uid32_t",
    "umode_t": "unsigned short",
    "vm_fault_t": "unsigned int",
}
_ENUMS = {"enum hrtimer_mode": {f"HRTIMER_MODE_{name}": value for name, value in HRTIMER_MODES.items()}}
_STRUCTURES: dict[str, Members] = {
    "struct fd_set": (("unsigned long [16]", "fds_bits"),),
    "struct sigset": (("unsigned long [1]", "sig"),),
    "struct open_how": (("__u64", "flags"), ("__u64", "mode"), ("__u64", "resolve")),
    "struct trace_entry": tuple((field.type, field.name.removeprefix("common_")) for field in COMMON_FIELDS),
    "struct syscall_trace_enter": (("struct trace_entry", "ent"), ("int", "nr"), ("unsigned long [0]", "args")),
    "struct syscall_trace_exit": (("struct trace_entry", "ent"), ("int", "nr"), ("long", "ret")),
    TASK: (
        ("pid_t", "pid"),
        ("pid_t", "tgid"),
        (POINTER_TO_TASK, "real_parent"),
        (POINTER_TO_TASK, "group_leader"),
        ("char [16]", "comm"),
    ),
}
_ANONYMOUS = frozenset(
    {"struct fd_set", "struct sigset", "union cs_words", "union ss_words", "union all_regs", "struct named_regs"}
)


def _x86_64() -> dict[str, Members]:
    """arch/x86/include/asm/ptrace.h: cs and ss share their words with what FRED, which there is not, knows of them."""
    shared = {"cs": ("union cs_words", ""), "ss": ("union ss_words", "")}
    return {
        "union cs_words": (("u16", "cs"), ("u64", "csx")),
        "union ss_words": (("u16", "ss"), ("u64", "ssx")),
        "struct pt_regs": tuple(shared.get(saved.name, ("unsigned long", saved.name)) for saved in PT_REGS["x86_64"]),
    }


def _aarch64() -> dict[str, Members]:
    """arch/arm64/include/asm/ptrace.h"""
    words = ("sp", "pc", "pstate")
    return {
        "struct user_pt_regs": (("__u64 [31]", "regs"), *(("__u64", name) for name in words)),
        "struct named_regs": (("u64 [31]", "regs"), *(("u64", name) for name in words)),
        "union all_regs": (("struct user_pt_regs", "user_regs"), ("struct named_regs", "")),
        "struct pt_regs": (
            ("union all_regs", ""),
            ("u64", "orig_x0"),
            ("s32", "syscallno"),
            ("u32", "unused2"),
            ("u64", "sdei_ttbr1"),
            ("u64", "pmr_save"),
            ("u64 [2]", "stackframe"),
            ("u64", "lockdep_hardirqs"),
            ("u64", "exit_rcu"),
        ),
    }


_REGISTERS = {"aarch64": _aarch64, "x86_64": _x86_64}
_USER_REGISTERS = {"aarch64": "struct user_pt_regs", "x86_64": "struct pt_regs"}


def declarations(isa: str, more: Mapping[str, Members], typedefs: Mapping[str, Function]) -> Declarations:
    """`more`: structures of tracepoints; `typedefs`: their prototypes."""
    of_events = (("bpf_user_pt_regs_t", "regs"), ("__u64", "sample_period"), ("__u64", "addr"))
    structures = {**_STRUCTURES, **_REGISTERS[isa](), "struct bpf_perf_event_data": of_events, **more}
    return Declarations(
        {**_TYPEDEFS, "bpf_user_pt_regs_t": _USER_REGISTERS[isa], **typedefs},
        structures,
        _ANONYMOUS,
        _ENUMS,
    )


# ---- functions: what they are declared as. System calls are all declared the same.

SYSTEM_CALL = Function("long", (("const struct pt_regs *", "regs"),))
FUNCTIONS: Mapping[str, Function] = {
    "do_exit": Function("void", (("long", "code"),)),
    "do_sys_openat2": Function("long", (("int", "dfd"), ("const char *", "filename"), ("struct open_how *", "how"))),
    "ksys_read": Function("ssize_t", (("unsigned int", "fd"), ("char *", "buf"), ("size_t", "count"))),
    "ksys_write": Function("ssize_t", (("unsigned int", "fd"), ("const char *", "buf"), ("size_t", "count"))),
    "finish_task_switch": Function("struct rq *", ((POINTER_TO_TASK, "prev"),)),
    "handle_mm_fault": Function(
        "vm_fault_t",
        (
            ("struct vm_area_struct *", "vma"),
            ("unsigned long", "address"),
            ("unsigned int", "flags"),
            ("struct pt_regs *", "regs"),
        ),
    ),
    "sched_fork": Function("int", (("unsigned long", "clone_flags"), (POINTER_TO_TASK, "p"))),
    "try_to_wake_up": Function("int", ((POINTER_TO_TASK, "p"), ("unsigned int", "state"), ("int", "wake_flags"))),
    "wake_up_new_task": Function("void", ((POINTER_TO_TASK, "p"),)),
}


def _told(*parameters: str) -> Function:
    """Of a tracepoint: what it is told, behind the data of who listens."""
    return Function("void", (("void *", ""), *((parameter, "") for parameter in parameters)))


TOLD: Mapping[str, Function] = {  # TP_PROTO, by the name of the raw tracepoint
    "sched_migrate_task": _told(POINTER_TO_TASK, "int"),
    "sched_process_exec": _told(POINTER_TO_TASK, "pid_t", "struct linux_binprm *"),
    "sched_process_exit": _told(POINTER_TO_TASK),
    "sched_process_fork": _told(POINTER_TO_TASK, POINTER_TO_TASK),
    "sched_switch": _told("bool", POINTER_TO_TASK, POINTER_TO_TASK, "unsigned int"),
    "sched_wakeup": _told(POINTER_TO_TASK),
    "sys_enter": _told("struct pt_regs *", "long"),
    "sys_exit": _told("struct pt_regs *", "long"),
}
UNKNOWN_ARGUMENTS: Mapping[str, frozenset[int]] = {  # of those: which the modelled kernel does not have
    "sched_process_exec": frozenset({2}),
    "sched_switch": frozenset({3}),
}

# The class of a tracepoint, after which its structure is named, where that is not its own name
CLASSES: Mapping[str, str] = {
    "cpu_frequency": "cpu",
    "cpu_idle": "cpu",
    "hrtimer_cancel": "hrtimer_class",
    "hrtimer_expire_exit": "hrtimer_class",
    "page_fault_kernel": "x86_exceptions",
    "page_fault_user": "x86_exceptions",
    "sched_process_exit": "sched_process_template",
    "sched_stat_blocked": "sched_stat_template",
    "sched_stat_iowait": "sched_stat_template",
    "sched_stat_sleep": "sched_stat_template",
    "sched_stat_wait": "sched_stat_template",
    "sched_wakeup": "sched_wakeup_template",
    "sched_wakeup_new": "sched_wakeup_template",
    "sched_waking": "sched_wakeup_template",
}
