"""Process texts: what the files of /proc/PID say. A row is a name and the function that makes its text."""

from __future__ import annotations

from collections.abc import Callable

from emulator.linux.errors import LinuxError
from emulator.linux.fs.nodes import (
    BPF_DEVICE,
    CGROUP_DEVICE,
    DEV_DEVICE,
    HOST_DEVICE,
    MEMORY_DEVICE,
    PROC_DEVICE,
    SYS_DEVICE,
    TRACE_DEVICE,
)
from emulator.linux.mm.mapping import PAGE_SIZE, PROT_WRITE
from emulator.linux.mm.program_bounds import ProgramBounds
from emulator.linux.proc import memory_texts
from emulator.linux.proc.memory_texts import KIB
from emulator.linux.process.limits import RLIM_NLIMITS
from emulator.linux.process.task import Task, TaskState
from emulator.linux.seccomp.filters import MODE_DISABLED
from emulator.linux.signals.signal import SIG_IGN, bit
from emulator.linux.structures import NANOSECONDS, TICKS_PER_SECOND

STATE_NAMES = {  # fs/proc/array.c, task_state_array
    TaskState.RUNNABLE: "running",
    TaskState.SLEEPING: "sleeping",
    TaskState.STOPPED: "stopped",
    TaskState.TRACED: "tracing stop",
    TaskState.ZOMBIE: "zombie",
}


def _pages(task: Task) -> int:
    return sum(mapping.length for mapping in task.mm.mappings) // PAGE_SIZE


def _threads(task: Task) -> int:
    """A zombie is its own only one."""
    return max(1, len(task.process.threads))


def statm(task: Task) -> str:
    """Pages: size resident shared text lib data dt."""
    mm = task.mm
    if task.exit_code is not None:
        return "0 0 0 0 0 0 0\n"
    text = (mm.program.code_end - mm.program.code_start + PAGE_SIZE - 1) // PAGE_SIZE
    data = sum(
        mapping.length for mapping in mm.mappings if mapping.protection & PROT_WRITE and not mapping.shared
    )  # fmt: skip
    return f"{_pages(task)} {mm.resident_pages()} 0 {text} 0 {data // PAGE_SIZE} 0\n"


def ticks(nanoseconds: int) -> int:
    """Time in the unit of /proc/stat and /proc/PID/stat."""
    return nanoseconds * TICKS_PER_SECOND // NANOSECONDS


def _handled(task: Task) -> tuple[int, int]:
    """Masks of the signals that are ignored and that are caught."""
    actions = task.signals.actions.items()
    ignored = sum(bit(signal) for signal, action in actions if action.handler == SIG_IGN)
    return ignored, sum(bit(signal) for signal, action in actions if action.handler > SIG_IGN)


def stat(task: Task) -> str:
    """The 52 fields of proc(5), /proc/PID/stat."""
    mm = task.mm
    program, brk_start = (mm.program, mm.brk_start) if task.exit_code is None else (ProgramBounds(), 0)
    ignored, caught = _handled(task)
    # the clock of a process starts at boot: 100 s before the machine's first instruction
    start = ticks(task.clock.monotonic_ns() - task.clock.elapsed_ns() + task.start_time_ns)
    terminal = task.kernel.terminals.told_of(task.process)
    fields: list[object] = [
        task.pid, f"({task.comm})", task.state.value, task.ppid, task.pgid, task.sid, *terminal, 0x400000,
        task.minor_faults, 0, task.major_faults, 0, ticks(task.user_ns()), ticks(task.system_ns()), 0, 0,
        20 + task.nice, task.nice, _threads(task), 0, start,
        _pages(task) * PAGE_SIZE, mm.resident_pages(), (1 << 64) - 1, program.code_start, program.code_end,
        program.stack_start,
        0, 0, 0, task.signals.blocked & 0x7FFFFFFF, ignored & 0x7FFFFFFF, caught & 0x7FFFFFFF, 0, 0, 0, 17,
        task.cpu.number, 0, 0, 0, 0, 0, program.data_start, program.data_end, brk_start,
        program.argument_start,
        program.argument_end, program.environment_start, program.environment_end, task.exit_code or 0,
    ]  # fmt: skip
    return " ".join(str(field) for field in fields) + "\n"


def status(task: Task) -> str:
    """proc(5), /proc/PID/status"""
    mm, uid, gid = task.mm, task.credentials.uid, task.credentials.gid
    capabilities = task.credentials.capabilities
    ended = task.exit_code is not None
    ignored, caught = _handled(task)
    size = _pages(task) * PAGE_SIZE // KIB
    resident = mm.resident_pages() * PAGE_SIZE // KIB
    stack = sum(mapping.length for mapping in mm.mappings if mapping.name == "[stack]") // KIB
    text = (mm.program.code_end - mm.program.code_start) // KIB
    rows: list[tuple[str, object]] = [
        ("Name", task.comm),
        ("Umask", f"{task.fs.umask:04o}"),
        ("State", f"{task.state.value} ({STATE_NAMES[task.state]})"),
        ("Tgid", task.pid),
        ("Ngid", 0),
        ("Pid", task.tid),
        ("PPid", task.ppid),
        ("TracerPid", task.tracer.pid if task.tracer is not None else 0),
        ("Uid", f"{uid}\t{uid}\t{uid}\t{uid}"),
        ("Gid", f"{gid}\t{gid}\t{gid}\t{gid}"),
        ("FDSize", 0 if ended else max(64, 1 << (len(task.files.descriptors()) or 1).bit_length())),
        ("Groups", " ".join(str(group) for group in task.credentials.groups) + " "),
        ("VmPeak", f"{size:8} kB"),
        ("VmSize", f"{size:8} kB"),
        ("VmLck", f"{memory_texts.locked_bytes(task) // KIB:8} kB"),
        ("VmPin", f"{0:8} kB"),
        ("VmHWM", f"{resident:8} kB"),
        ("VmRSS", f"{resident:8} kB"),
        ("VmStk", f"{stack:8} kB"),
        ("VmExe", f"{text:8} kB"),
        ("VmSwap", f"{0:8} kB"),
        ("Threads", _threads(task)),
        ("SigQ", f"{len(task.signals.pending) + len(task.signals.shared.pending)}/31192"),
        ("SigPnd", f"{task.signals.pending.mask:016x}"),
        ("ShdPnd", f"{task.signals.shared.pending.mask:016x}"),
        ("SigBlk", f"{task.signals.blocked:016x}"),
        ("SigIgn", f"{ignored:016x}"),
        ("SigCgt", f"{caught:016x}"),
        ("CapInh", f"{capabilities.inheritable:016x}"),
        ("CapPrm", f"{capabilities.permitted:016x}"),
        ("CapEff", f"{capabilities.effective:016x}"),
        ("CapBnd", f"{capabilities.bounding:016x}"),
        ("CapAmb", f"{capabilities.ambient:016x}"),
        ("NoNewPrivs", int(task.no_new_privileges)),
        ("Seccomp", MODE_DISABLED if task.seccomp is None else task.seccomp.mode),
        ("Seccomp_filters", 0 if task.seccomp is None else len(task.seccomp.filters())),
        ("Cpus_allowed", f"{task.affinity:x}"),
        ("Cpus_allowed_list", allowed_list(task.affinity)),
        ("Mems_allowed", "1"),
        ("Mems_allowed_list", "0"),
        ("voluntary_ctxt_switches", 0),
        ("nonvoluntary_ctxt_switches", 0),
    ]
    if ended:
        rows = [row for row in rows if row[0] != "Umask" and not row[0].startswith("Vm")]
    return "".join(f"{name}:\t{value}\n" for name, value in rows)


def cpu_list(count: int) -> str:
    """The kernel's list format of CPUs 0..count-1."""
    return allowed_list((1 << count) - 1)


def allowed_list(mask: int) -> str:
    """The same of the CPUs in a mask: 0,2-3."""
    ranges: list[list[int]] = []
    for number in range(mask.bit_length()):
        if mask >> number & 1:
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _memory_text(task: Task, start: int, end: int) -> bytes:
    try:
        return task.mm.read(start, end - start) if end > start else b""
    except LinuxError:
        return b""


def cmdline(task: Task) -> bytes:
    return _memory_text(task, task.mm.program.argument_start, task.mm.program.argument_end)


def environ(task: Task) -> bytes:
    return _memory_text(task, task.mm.program.environment_start, task.mm.program.environment_end)


LIMIT_NAMES = (  # fs/proc/base.c, lnames, by RLIMIT_*
    ("Max cpu time", "seconds"), ("Max file size", "bytes"), ("Max data size", "bytes"), ("Max stack size", "bytes"),
    ("Max core file size", "bytes"), ("Max resident set", "bytes"), ("Max processes", "processes"),
    ("Max open files", "files"), ("Max locked memory", "bytes"), ("Max address space", "bytes"),
    ("Max file locks", "locks"), ("Max pending signals", "signals"), ("Max msgqueue size", "bytes"),
    ("Max nice priority", ""), ("Max realtime priority", ""), ("Max realtime timeout", "us"),
)  # fmt: skip


def limits(task: Task) -> str:
    lines = [f"{'Limit':<25} {'Soft Limit':<20} {'Hard Limit':<20} Units     "]
    for resource in range(RLIM_NLIMITS):
        name, unit = LIMIT_NAMES[resource]
        soft, hard = ("unlimited" if value >> 63 else str(value) for value in task.limits.get(resource))
        lines.append(f"{name:<25} {soft:<20} {hard:<20} {unit:<10}")
    return "\n".join(lines) + "\n"


MOUNTS = (  # device, source, place, type, options
    (HOST_DEVICE, "/dev/root", "/", "ext4", "rw,relatime"),
    (PROC_DEVICE, "proc", "/proc", "proc", "rw,nosuid,nodev,noexec,relatime"),
    (SYS_DEVICE, "sysfs", "/sys", "sysfs", "rw,nosuid,nodev,noexec,relatime"),
    (CGROUP_DEVICE, "cgroup2", "/sys/fs/cgroup", "cgroup2", "rw,nosuid,nodev,noexec,relatime"),
    (TRACE_DEVICE, "tracefs", "/sys/kernel/tracing", "tracefs", "rw,nosuid,nodev,noexec,relatime"),
    (DEV_DEVICE, "devtmpfs", "/dev", "devtmpfs", "rw,nosuid,relatime"),
    (MEMORY_DEVICE, "tmpfs", "/dev/shm", "tmpfs", "rw,nosuid,nodev"),
    (BPF_DEVICE, "bpf", "/sys/fs/bpf", "bpf", "rw,nosuid,nodev,noexec,relatime,mode=700"),
)
FIRST_MOUNT = 20  # mount IDs count from here; the root's comes first
MOUNT_NUMBERS = {place: number for number, (_, _, place, _, _) in enumerate(MOUNTS, FIRST_MOUNT)}


def mounts(task: Task) -> str:
    return "".join(f"{source} {place} {kind} {options} 0 0\n" for _, source, place, kind, options in MOUNTS)


def mountinfo(task: Task) -> str:
    """proc(5): ID, parent's ID, device, root, mount point, options, type, source, options of the file system."""
    lines = []
    numbers = MOUNT_NUMBERS
    for (major, minor), source, place, kind, options in MOUNTS:
        number = numbers[place]
        parent = max((numbers[other] for other in numbers if place.startswith(f"{other}/")), default=FIRST_MOUNT)
        parent = parent if place != "/" else 1
        lines.append(f"{number} {parent} {major}:{minor} / {place} {options} - {kind} {source} {options}\n")
    return "".join(lines)


def cgroup(task: Task) -> str:
    """proc_cgroup_show(): of a group that has been removed, too."""
    return f"0::{task.cgroup.path}{' (deleted)' if task.cgroup.removed else ''}\n"


ALL_IDS = f"{0:10} {0:10} {0xFFFF_FFFF:10}\n"  # there is one user namespace

PROCESS_TEXTS: dict[str, Callable[[Task], str | bytes]] = {
    "auxv": lambda task: task.mm.program.auxiliary_vector,
    "cgroup": cgroup,
    "cmdline": cmdline,
    "environ": environ,
    "limits": limits,
    "loginuid": lambda task: "4294967295",
    "maps": memory_texts.maps,
    "mountinfo": mountinfo,
    "mounts": mounts,
    "oom_score": lambda task: "0\n",
    "oom_score_adj": lambda task: "0\n",
    "smaps": memory_texts.smaps,
    "smaps_rollup": memory_texts.smaps_rollup,
    "personality": lambda task: f"{task.personality:08x}\n",
    "stat": stat,
    "statm": statm,
    "status": status,
    "coredump_filter": lambda task: "00000033\n",
    "gid_map": lambda task: ALL_IDS,
    "setgroups": lambda task: "allow\n",
    "timerslack_ns": lambda task: f"{task.timer_slack_ns}\n",
    "uid_map": lambda task: ALL_IDS,
    "wchan": lambda task: "0",
}

PROCESS_LINKS: dict[str, Callable[[Task], str]] = {
    "cwd": lambda task: task.fs.cwd,
    "exe": lambda task: task.executable,
    "root": lambda task: "/",
}
