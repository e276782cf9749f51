"""procfs: what /proc shows of the machine and its processes. A row is a path and the function that makes its text.

Anything that is not a row does not exist: the host's /proc never shows through.
"""

from __future__ import annotations

import os
import stat as file_mode
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from emulator._native import PhysicalMemory
from emulator.arch.architecture import Architecture
from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.attributes import Attributes, DirectoryEntry
from emulator.linux.cpuinfo import CPUINFO
from emulator.linux.errors import ENOENT, LinuxError
from emulator.linux.file_tree import FileTree
from emulator.linux.limits import RLIM_NLIMITS
from emulator.linux.mapping import PAGE_SIZE, PROT_EXEC, PROT_READ, PROT_WRITE, Mapping
from emulator.linux.nodes import (
    DEV_DEVICE,
    HOST_DEVICE,
    MEMORY_DEVICE,
    PROC_DEVICE,
    SYS_DEVICE,
    Directory,
    Node,
)
from emulator.linux.open_files import NodeFile
from emulator.linux.paths import Dentry, MagicLink
from emulator.linux.random import Random
from emulator.linux.release import RELEASE, VERSION
from emulator.linux.signal import SIG_IGN, bit
from emulator.linux.task import Task
from emulator.linux.virtual_files import TextFile, TextLink, VirtualDirectory, Volume

TICKS_PER_SECOND = 100  # USER_HZ
NANOSECONDS = 1_000_000_000
KIB = 1024
BOOT_ID = "5f0c4b1e-7d3a-4c86-9b52-e1a6f08d2c97"  # pinned

T = TypeVar("T")


class Kernel(Protocol):
    """What /proc shows (a ``Kernel``)."""

    @property
    def architecture(self) -> Architecture: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def memory(self) -> PhysicalMemory: ...
    @property
    def cpus(self) -> list[Cpu]: ...
    @property
    def random(self) -> Random: ...
    @property
    def tasks(self) -> dict[int, Task]: ...
    @property
    def file_tree(self) -> FileTree: ...

    def current(self, cpu: Cpu) -> Task: ...

    def rename(self, task: Task, comm: str, by_exec: bool = False) -> None: ...


# ---- a process


def maps(task: Task) -> str:
    """proc(5), /proc/PID/maps: as fs/proc/task_mmu.c writes it, names in column 74."""
    return "".join(_maps_line(mapping) + "\n" for mapping in task.mm.mappings)


def _maps_line(mapping: Mapping) -> str:
    protection = mapping.protection
    permissions = (
        ("r" if protection & PROT_READ else "-")
        + ("w" if protection & PROT_WRITE else "-")
        + ("x" if protection & PROT_EXEC else "-")
        + ("s" if mapping.shared else "p")
    )
    file = mapping.file
    major, minor, inode = (file.major, file.minor, file.inode) if file is not None else (0, 0, 0)
    offset = mapping.offset if file is not None else 0
    line = f"{mapping.start:08x}-{mapping.end:08x} {permissions} {offset:08x} {major:02x}:{minor:02x} {inode} "
    return f"{line:<73}{mapping.path}" if mapping.path else line


def _pages(task: Task) -> int:
    return sum(mapping.length for mapping in task.mm.mappings) // PAGE_SIZE


def statm(task: Task) -> str:
    """Pages: size resident shared text lib data dt."""
    mm = task.mm
    text = (mm.code_end - mm.code_start + PAGE_SIZE - 1) // PAGE_SIZE
    data = sum(
        mapping.length for mapping in mm.mappings if mapping.protection & PROT_WRITE and not mapping.shared
    )  # fmt: skip
    return f"{_pages(task)} {mm.resident_pages()} 0 {text} 0 {data // PAGE_SIZE} 0\n"


def _ticks(nanoseconds: int) -> int:
    return nanoseconds * TICKS_PER_SECOND // NANOSECONDS


def stat(task: Task) -> str:
    """The 52 fields of proc(5), /proc/PID/stat."""
    mm = task.mm
    ignored = sum(bit(signal) for signal, action in task.signals.actions.items() if action.handler == SIG_IGN)
    caught = sum(bit(signal) for signal, action in task.signals.actions.items() if action.handler > SIG_IGN)
    # the clock of a process starts at boot: 100 s before the machine's first instruction
    start = _ticks(task.clock.monotonic_ns() - task.clock.elapsed_ns() + task.start_time_ns)
    fields: list[object] = [
        task.pid, f"({task.comm})", "R", task.ppid, task.pgid, task.sid, 0, -1, 0x400000,
        mm.minor_faults, 0, mm.major_faults, 0, _ticks(task.user_ns()), 0, 0, 0, 20, 0, 1, 0, start,
        _pages(task) * PAGE_SIZE, mm.resident_pages(), (1 << 64) - 1, mm.code_start, mm.code_end, mm.stack_start,
        0, 0, 0, task.signals.blocked & 0x7FFFFFFF, ignored & 0x7FFFFFFF, caught & 0x7FFFFFFF, 0, 0, 0, 17,
        task.cpu.number, 0, 0, 0, 0, 0, mm.data_start, mm.data_end, mm.brk_start, mm.argument_start,
        mm.argument_end, mm.environment_start, mm.environment_end, 0,
    ]  # fmt: skip
    return " ".join(str(field) for field in fields) + "\n"


def status(task: Task) -> str:
    """proc(5), /proc/PID/status"""
    mm, uid, gid = task.mm, task.credentials.uid, task.credentials.gid
    ignored = sum(bit(signal) for signal, action in task.signals.actions.items() if action.handler == SIG_IGN)
    caught = sum(bit(signal) for signal, action in task.signals.actions.items() if action.handler > SIG_IGN)
    size = _pages(task) * PAGE_SIZE // KIB
    resident = mm.resident_pages() * PAGE_SIZE // KIB
    stack = sum(mapping.length for mapping in mm.mappings if mapping.name == "[stack]") // KIB
    text = (mm.code_end - mm.code_start) // KIB
    rows: list[tuple[str, object]] = [
        ("Name", task.comm),
        ("Umask", f"{task.fs.umask:04o}"),
        ("State", "R (running)"),
        ("Tgid", task.pid),
        ("Ngid", 0),
        ("Pid", task.tid),
        ("PPid", task.ppid),
        ("TracerPid", 0),
        ("Uid", f"{uid}\t{uid}\t{uid}\t{uid}"),
        ("Gid", f"{gid}\t{gid}\t{gid}\t{gid}"),
        ("FDSize", max(64, 1 << (len(task.files.descriptors()) or 1).bit_length())),
        ("Groups", " ".join(str(group) for group in task.credentials.groups) + " "),
        ("VmPeak", f"{size:8} kB"),
        ("VmSize", f"{size:8} kB"),
        ("VmLck", f"{0:8} kB"),
        ("VmPin", f"{0:8} kB"),
        ("VmHWM", f"{resident:8} kB"),
        ("VmRSS", f"{resident:8} kB"),
        ("VmStk", f"{stack:8} kB"),
        ("VmExe", f"{text:8} kB"),
        ("VmSwap", f"{0:8} kB"),
        ("Threads", sum(other.pid == task.pid for other in task.kernel.tasks.values())),
        ("SigQ", f"{len(task.signals.pending)}/31192"),
        ("SigPnd", f"{0:016x}"),
        ("ShdPnd", f"{task.signals.pending_mask():016x}"),
        ("SigBlk", f"{task.signals.blocked:016x}"),
        ("SigIgn", f"{ignored:016x}"),
        ("SigCgt", f"{caught:016x}"),
        ("NoNewPrivs", int(task.no_new_privileges)),
        ("Seccomp", 0),
        ("Cpus_allowed", f"{(1 << len(task.kernel.cpus)) - 1:x}"),
        ("Cpus_allowed_list", cpu_list(len(task.kernel.cpus))),
        ("Mems_allowed", "1"),
        ("Mems_allowed_list", "0"),
        ("voluntary_ctxt_switches", 0),
        ("nonvoluntary_ctxt_switches", 0),
    ]
    return "".join(f"{name}:\t{value}\n" for name, value in rows)


def cpu_list(count: int) -> str:
    """The kernel's list format of CPUs 0..count-1."""
    return "0" if count == 1 else f"0-{count - 1}"


def _memory_text(task: Task, start: int, end: int) -> bytes:
    try:
        return task.mm.read(start, end - start) if end > start else b""
    except LinuxError:
        return b""


def cmdline(task: Task) -> bytes:
    return _memory_text(task, task.mm.argument_start, task.mm.argument_end)


def environ(task: Task) -> bytes:
    return _memory_text(task, task.mm.environment_start, task.mm.environment_end)


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
    (DEV_DEVICE, "devtmpfs", "/dev", "devtmpfs", "rw,nosuid,relatime"),
    (MEMORY_DEVICE, "tmpfs", "/dev/shm", "tmpfs", "rw,nosuid,nodev"),
)
FIRST_MOUNT = 20  # mount IDs count from here; the root's comes first


def mounts(task: Task) -> str:
    return "".join(f"{source} {place} {kind} {options} 0 0\n" for _, source, place, kind, options in MOUNTS)


def mountinfo(task: Task) -> str:
    """proc(5): ID, parent's ID, device, root, mount point, options, type, source, options of the file system."""
    lines = []
    for number, ((major, minor), source, place, kind, options) in enumerate(MOUNTS, FIRST_MOUNT):
        parent = 1 if number == FIRST_MOUNT else FIRST_MOUNT
        lines.append(f"{number} {parent} {major}:{minor} / {place} {options} - {kind} {source} {options}\n")
    return "".join(lines)


PROCESS_TEXTS: dict[str, Callable[[Task], str | bytes]] = {
    "auxv": lambda task: task.mm.auxiliary_vector,
    "cgroup": lambda task: "0::/\n",
    "cmdline": cmdline,
    "environ": environ,
    "limits": limits,
    "loginuid": lambda task: "4294967295",
    "maps": maps,
    "mountinfo": mountinfo,
    "mounts": mounts,
    "oom_score": lambda task: "0\n",
    "oom_score_adj": lambda task: "0\n",
    "personality": lambda task: f"{task.personality:08x}\n",
    "stat": stat,
    "statm": statm,
    "status": status,
    "wchan": lambda task: "0",
}

PROCESS_LINKS: dict[str, Callable[[Task], str]] = {
    "cwd": lambda task: task.fs.cwd,
    "exe": lambda task: task.executable,
    "root": lambda task: "/",
}


class DescriptorLink(MagicLink):
    """/proc/PID/fd/N: leads to what the descriptor has open, whatever its name is now."""

    __slots__ = ("_descriptor", "_inode", "_task", "_volume")

    def __init__(self, volume: Volume, task: Task, descriptor: int, inode: int) -> None:
        self._volume = volume
        self._task = task
        self._descriptor = descriptor
        self._inode = inode

    @property
    def inode(self) -> int:
        return self._inode

    def attributes(self) -> Attributes:
        file = self._task.files.get(self._descriptor)
        permissions = (0o500 if file.readable else 0) | (0o300 if file.writable else 0)
        return self._volume.attributes(self._inode, file_mode.S_IFLNK | permissions, 64)

    def target(self) -> str:
        return self._task.files.get(self._descriptor).path or "anon_inode:[file]"

    def destination(self) -> Dentry:
        file = self._task.files.get(self._descriptor)
        if not isinstance(file, NodeFile) or file.dentry is None:
            raise LinuxError(ENOENT, f"{file.path or type(file).__name__} cannot be opened by its name in /proc")
        return file.dentry


class DescriptorDirectory(VirtualDirectory):
    """/proc/PID/fd"""

    __slots__ = ("_inodes", "_task")

    def __init__(self, volume: Volume, task: Task) -> None:
        super().__init__(volume)
        self._task = task
        self._inodes: dict[int, int] = {}

    def _link(self, descriptor: int) -> DescriptorLink:
        inode = self._inodes.get(descriptor)
        if inode is None:
            inode = self._inodes[descriptor] = self.volume.superblock.inodes.new()
        return DescriptorLink(self.volume, self._task, descriptor, inode)

    def lookup(self, name: str) -> Node | None:
        if not name.isdecimal() or int(name) not in self._task.files.descriptors():
            return None
        return self._link(int(name))

    def entries(self) -> Iterable[DirectoryEntry]:
        return [
            DirectoryEntry(self._link(descriptor).inode, file_mode.S_IFLNK, str(descriptor).encode())
            for descriptor in self._task.files.descriptors()
        ]


class DescriptorInfoDirectory(DescriptorDirectory):
    """/proc/PID/fdinfo"""

    __slots__ = ()

    def lookup(self, name: str) -> Node | None:
        if super().lookup(name) is None:
            return None
        file = self._task.files.get(int(name))
        position = getattr(file, "position", 0)
        return TextFile(self.volume, lambda: f"pos:\t{position}\nflags:\t0{file.flags:o}\nmnt_id:\t20\n")

    def entries(self) -> Iterable[DirectoryEntry]:
        return [
            DirectoryEntry(entry.inode, file_mode.S_IFREG, entry.name) for entry in super().entries()
        ]  # fmt: skip


def process_directory(volume: Volume, kernel: Kernel, task: Task, *, with_tasks: bool = True) -> VirtualDirectory:
    """/proc/PID, and without its threads /proc/PID/task/TID."""
    directory = VirtualDirectory(volume)
    for name, text in PROCESS_TEXTS.items():
        directory.add_text(name, _bound(text, task))
    for name, target in PROCESS_LINKS.items():
        directory.add(name, TextLink(volume, _bound(target, task)))

    def store_comm(data: bytes) -> None:
        kernel.rename(task, os.fsdecode(data.rstrip(b"\n")))

    directory.add_text("comm", lambda: task.comm + "\n", store_comm)
    directory.add("fd", DescriptorDirectory(volume, task))
    directory.add("fdinfo", DescriptorInfoDirectory(volume, task))
    if with_tasks:
        directory.add(f"task/{task.tid}", process_directory(volume, kernel, task, with_tasks=False))
    return directory


def _bound(function: Callable[[Task], T], task: Task) -> Callable[[], T]:
    return lambda: function(task)


# ---- the machine


def free_bytes(total_bytes: int) -> int:
    """What /proc/meminfo and sysinfo(2) call free is pinned: it may not depend on what has been measured."""
    return total_bytes * 7 // 8


def meminfo(kernel: Kernel) -> str:
    """proc(5), /proc/meminfo."""
    total, free = kernel.memory.size_bytes // KIB, free_bytes(kernel.memory.size_bytes) // KIB
    rows = [
        ("MemTotal", total), ("MemFree", free), ("MemAvailable", free), ("Buffers", 0), ("Cached", total // 16),
        ("SwapCached", 0), ("Active", total // 32), ("Inactive", total // 32), ("SwapTotal", 0), ("SwapFree", 0),
        ("Dirty", 0), ("Writeback", 0), ("AnonPages", total // 32), ("Mapped", total // 64), ("Shmem", 0),
        ("Slab", 0), ("KernelStack", 0), ("PageTables", 0), ("CommitLimit", total // 2), ("Committed_AS", 0),
        ("VmallocTotal", 1 << 35), ("VmallocUsed", 0), ("HugePages_Total", None), ("HugePages_Free", None),
        ("Hugepagesize", 2048),
    ]  # fmt: skip
    return "".join(
        f"{name + ':':<16}{0:8}\n" if value is None else f"{name + ':':<16}{value:8} kB\n" for name, value in rows
    )


def uptime(kernel: Kernel) -> str:
    centiseconds = kernel.clock.monotonic_ns() // 10_000_000
    idle = kernel.clock.idle_ns // 10_000_000
    return f"{centiseconds // 100}.{centiseconds % 100:02} {idle // 100}.{idle % 100:02}\n"


def machine_stat(kernel: Kernel) -> str:
    """/proc/stat, with the machine's time before the program as idle time."""
    user = _ticks(kernel.clock.busy_ns())
    idle = _ticks(kernel.clock.monotonic_ns()) - user
    boot = (kernel.clock.realtime_ns() - kernel.clock.monotonic_ns()) // NANOSECONDS
    times = f"{user} 0 0 {idle} 0 0 0 0 0 0"
    cpus = "".join(f"cpu{cpu.number} {times}\n" for cpu in kernel.cpus)
    return f"cpu  {times}\n{cpus}intr 0\nctxt 0\nbtime {boot}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"


def _uuid(kernel: Kernel) -> str:
    value = kernel.random.bytes(16).hex()  # version 4 and variant 1 in their places
    return f"{value[:8]}-{value[8:12]}-4{value[13:16]}-a{value[17:20]}-{value[20:]}\n"


SYSTEM_TEXTS: dict[str, Callable[[Kernel], str]] = {
    "cpuinfo": lambda kernel: CPUINFO[kernel.architecture.isa](len(kernel.cpus)),
    "cmdline": lambda kernel: "\n",
    "devices": lambda kernel: "Character devices:\n  1 mem\n  5 /dev/tty\n136 pts\n\nBlock devices:\n  8 sd\n",
    "filesystems": lambda kernel: "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\n\text4\n",
    "kallsyms": lambda kernel: "",  # only user mode is executed
    "loadavg": lambda kernel: "0.00 0.00 0.00 1/1 1000\n",
    "meminfo": meminfo,
    "modules": lambda kernel: "",
    "stat": machine_stat,
    "swaps": lambda kernel: "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
    "uptime": uptime,
    "version": lambda kernel: f"Linux version {RELEASE} (perfemu@perfemu) (perfemu) {VERSION}\n",
    "sys/fs/file-max": lambda kernel: "9223372036854775807\n",
    "sys/fs/nr_open": lambda kernel: "1048576\n",
    "sys/fs/pipe-max-size": lambda kernel: "1048576\n",
    "sys/kernel/hostname": lambda kernel: "perfemu\n",
    "sys/kernel/kptr_restrict": lambda kernel: "0\n",
    "sys/kernel/nmi_watchdog": lambda kernel: "0\n",
    "sys/kernel/osrelease": lambda kernel: f"{RELEASE}\n",
    "sys/kernel/ostype": lambda kernel: "Linux\n",
    "sys/kernel/overflowuid": lambda kernel: "65534\n",
    "sys/kernel/perf_cpu_time_max_percent": lambda kernel: "25\n",
    "sys/kernel/perf_event_max_contexts_per_stack": lambda kernel: "8\n",
    "sys/kernel/perf_event_max_sample_rate": lambda kernel: "100000\n",
    "sys/kernel/perf_event_max_stack": lambda kernel: "127\n",
    "sys/kernel/perf_event_mlock_kb": lambda kernel: "516\n",
    "sys/kernel/perf_event_paranoid": lambda kernel: "-1\n",
    "sys/kernel/pid_max": lambda kernel: "4194304\n",
    "sys/kernel/random/boot_id": lambda kernel: f"{BOOT_ID}\n",
    "sys/kernel/random/entropy_avail": lambda kernel: "256\n",
    "sys/kernel/random/uuid": _uuid,
    "sys/kernel/randomize_va_space": lambda kernel: "0\n",
    "sys/kernel/threads-max": lambda kernel: "62384\n",
    "sys/kernel/version": lambda kernel: f"{VERSION}\n",
    "sys/vm/max_map_count": lambda kernel: "65530\n",
    "sys/vm/mmap_min_addr": lambda kernel: "65536\n",
    "sys/vm/overcommit_memory": lambda kernel: "0\n",
}


STREAM_LINKS = {  # in /dev
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}


class ProcessRoot(VirtualDirectory):
    """/proc: the machine's rows, and a directory for each process."""

    __slots__ = ("_kernel", "_processes")

    def __init__(self, volume: Volume, kernel: Kernel) -> None:
        super().__init__(volume)
        self._kernel = kernel
        self._processes: dict[int, VirtualDirectory] = {}

    def lookup(self, name: str) -> Node | None:
        node = super().lookup(name)
        if node is not None or not name.isdecimal():
            return node
        task = self._kernel.tasks.get(int(name))
        if task is None or task.exit_code is not None:
            return None
        directory = self._processes.get(task.tid)
        if directory is None:
            directory = self._processes[task.tid] = process_directory(self.volume, self._kernel, task)
        return directory

    def entries(self) -> Iterable[DirectoryEntry]:
        entries = list(super().entries())
        for tid, task in sorted(self._kernel.tasks.items()):
            directory = self.lookup(str(tid))
            if task.tid == task.pid and isinstance(directory, Directory):
                entries.append(DirectoryEntry(directory.inode, directory.file_type, str(tid).encode()))
        return sorted(entries, key=lambda entry: entry.name)


def install(kernel: Kernel) -> None:
    """Give the machine its /proc."""
    volume = kernel.file_tree.proc.volume
    root = ProcessRoot(volume, kernel)
    for path, text in SYSTEM_TEXTS.items():
        root.add_text(path, _of_kernel(text, kernel))
    root.add("self", TextLink(volume, lambda: str(kernel.current(kernel.cpus[0]).pid)))
    root.add("thread-self", TextLink(volume, lambda: _thread_self(kernel.current(kernel.cpus[0]))))
    root.add("mounts", TextLink(volume, lambda: "self/mounts"))
    kernel.file_tree.mount_proc(root)
    for name, target in STREAM_LINKS.items():
        kernel.file_tree.dev.add(name, TextLink(kernel.file_tree.dev.volume, _fixed(target)))


def _fixed(target: str) -> Callable[[], str]:
    return lambda: target


def _of_kernel(function: Callable[[Kernel], str], kernel: Kernel) -> Callable[[], str]:
    return lambda: function(kernel)


def _thread_self(task: Task) -> str:
    return f"{task.pid}/task/{task.tid}"
