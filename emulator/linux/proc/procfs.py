"""procfs: what /proc shows of the machine and its processes. A row is a path and the function that makes its text.

Anything that is not a row does not exist: the host's /proc never shows through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from emulator.arch.processor import Processor
from emulator.cpu import Cpu
from emulator.linux.cgroup.cgroups import CONTROLLER, Cgroups
from emulator.linux.fs import notifications
from emulator.linux.fs.attributes import DirectoryEntry
from emulator.linux.fs.file_tree import FileTree
from emulator.linux.fs.nodes import Directory, Node
from emulator.linux.fs.pipes import MOST_CAPACITY_BYTES
from emulator.linux.fs.virtual_files import TextLink, VirtualDirectory, Volume
from emulator.linux.ipc import message_queues, posix_queues, semaphores, shared_segments
from emulator.linux.mm.mapping_list import MAX_MAPPINGS
from emulator.linux.net.stream_sockets import MOST_BACKLOG
from emulator.linux.proc.cpuinfo import CPUINFO
from emulator.linux.proc.memory_texts import KIB
from emulator.linux.proc.process_directory import TaskDirectories
from emulator.linux.proc.process_texts import ticks
from emulator.linux.process.lifecycle import FIRST_PID
from emulator.linux.process.limits import MAX_OPEN_FILES
from emulator.linux.process.task import KernelServices, Task, TaskState
from emulator.linux.ptrace.permission import PTRACE_SCOPE
from emulator.linux.release import HOST_NAME, RELEASE, SYSTEM_NAME, VERSION
from emulator.linux.structures import NANOSECONDS

BOOT_ID = "5f0c4b1e-7d3a-4c86-9b52-e1a6f08d2c97"  # pinned


class Kernel(KernelServices, Protocol):
    """What /proc shows (a ``Kernel``)."""

    @property
    def file_tree(self) -> FileTree: ...
    @property
    def cgroups(self) -> Cgroups: ...
    @property
    def processor(self) -> Processor: ...

    def calling(self) -> Task:
        """The task that makes the system call."""


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
    now = kernel.calling().cpu.core.cycles
    busy = {task.cpu.number for task in kernel.tasks.values() if task.running_since is not None}
    passed = kernel.clock.passed
    until_now = sum(max(passed(cpu.core.cycles, now), 0) for cpu in kernel.cpus if cpu.number not in busy)
    idle = kernel.clock.ns(sum(cpu.idle_cycles for cpu in kernel.cpus) + until_now) // 10_000_000
    return f"{centiseconds // 100}.{centiseconds % 100:02} {idle // 100}.{idle % 100:02}\n"


def cpu_ticks(kernel: Kernel, cpu: Cpu) -> tuple[int, int, int]:
    """User, system and idle ones, with the machine's time before the program as idle time."""
    clock = kernel.clock
    system = ticks(clock.ns(cpu.system_cycles))
    user = ticks(clock.ns(clock.reference(cpu.core.cycles) - cpu.idle_cycles)) - system
    return user, system, ticks(clock.monotonic_ns()) - user - system


def machine_stat(kernel: Kernel) -> str:
    """/proc/stat."""
    boot = (kernel.clock.realtime_ns() - kernel.clock.monotonic_ns()) // NANOSECONDS
    times = [cpu_ticks(kernel, cpu) for cpu in kernel.cpus]
    rows = [("", tuple(map(sum, zip(*times, strict=True)))), *((str(number), row) for number, row in enumerate(times))]
    cpus = "".join(f"cpu{name or ' '} {row[0]} 0 {row[1]} {row[2]} 0 0 0 0 0 0\n" for name, row in rows)
    runnable, made = _runnable(kernel), kernel.lifecycle.last_tid - FIRST_PID + 1
    return f"{cpus}intr 0\nctxt 0\nbtime {boot}\nprocesses {made}\nprocs_running {runnable}\nprocs_blocked 0\n"


def _runnable(kernel: Kernel) -> int:
    return sum(task.state is TaskState.RUNNABLE for task in kernel.tasks.values())


def loadavg(kernel: Kernel) -> str:
    """proc(5): the averages are pinned; tasks that can execute, all tasks, the latest made."""
    return f"0.00 0.00 0.00 {_runnable(kernel)}/{len(kernel.tasks)} {kernel.lifecycle.last_tid}\n"


def cgroups(kernel: Kernel) -> str:
    """proc_cgroupstats_show(): of controllers there is perf's."""
    groups = kernel.cgroups.root.descendants + 1
    return f"#subsys_name\thierarchy\tnum_cgroups\tenabled\n{CONTROLLER}\t0\t{groups}\t1\n"


def _uuid(kernel: Kernel) -> str:
    value = kernel.random.bytes(16).hex()  # version 4 and variant 1 in their places
    return f"{value[:8]}-{value[8:12]}-4{value[13:16]}-a{value[17:20]}-{value[20:]}\n"


SEMAPHORE_LIMITS = (  # SEMMSL SEMMNS SEMOPM SEMMNI
    semaphores.MOST_IN_SET, semaphores.MOST_IN_ALL, semaphores.MOST_OPERATIONS, semaphores.MOST_SETS,
)  # fmt: skip

SYSTEM_NUMBERS = {  # limits of the machine, from who keeps them
    "sys/fs/file-max": (1 << 63) - 1,
    "sys/fs/inotify/max_queued_events": notifications.MOST_EVENTS,
    "sys/fs/inotify/max_user_instances": notifications.MOST_INSTANCES,
    "sys/fs/inotify/max_user_watches": notifications.MOST_WATCHES,
    "sys/fs/mqueue/msg_default": posix_queues.MOST_MESSAGES,
    "sys/fs/mqueue/msg_max": posix_queues.MOST_MESSAGES,
    "sys/fs/mqueue/msgsize_default": posix_queues.MOST_MESSAGE_BYTES,
    "sys/fs/mqueue/msgsize_max": posix_queues.MOST_MESSAGE_BYTES,
    "sys/fs/mqueue/queues_max": posix_queues.MOST_QUEUES,
    "sys/fs/nr_open": MAX_OPEN_FILES,
    "sys/fs/pipe-max-size": MOST_CAPACITY_BYTES,
    "sys/kernel/msgmax": message_queues.MOST_MESSAGE_BYTES,
    "sys/kernel/msgmnb": message_queues.MOST_QUEUE_BYTES,
    "sys/kernel/msgmni": message_queues.MOST_QUEUES,
    "sys/kernel/shmall": shared_segments.MOST_BYTES,
    "sys/kernel/shmmax": shared_segments.MOST_BYTES,
    "sys/kernel/shmmni": shared_segments.MOST_SEGMENTS,
    "sys/net/core/somaxconn": MOST_BACKLOG,
    "sys/vm/max_map_count": MAX_MAPPINGS,
}

SYSTEM_TEXTS: dict[str, Callable[[Kernel], str]] = {
    "cpuinfo": lambda kernel: CPUINFO[kernel.architecture.isa](
        kernel.architecture,
        kernel.processor,
        kernel.clock.frequency_at(kernel.clock.cycles()),
        kernel.cpus[0].system_registers.cpuid,
    ),
    "cgroups": cgroups,
    "cmdline": lambda kernel: "\n",
    "devices": lambda kernel: "Character devices:\n  1 mem\n  5 /dev/tty\n136 pts\n\nBlock devices:\n  8 sd\n",
    "filesystems": lambda kernel: (
        "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tcgroup2\nnodev\tbpf\nnodev\tdevtmpfs\n\text4\n"
    ),
    "loadavg": loadavg,
    "meminfo": meminfo,
    "modules": lambda kernel: "",
    "stat": machine_stat,
    "swaps": lambda kernel: "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
    "uptime": uptime,
    "version": lambda kernel: f"{SYSTEM_NAME} version {RELEASE} (perfemu@{HOST_NAME}) (perfemu) {VERSION}\n",
    "sys/kernel/yama/ptrace_scope": lambda kernel: f"{PTRACE_SCOPE}\n",
    "sys/kernel/sem": lambda kernel: "\t".join(map(str, SEMAPHORE_LIMITS)) + "\n",
    "sysvipc/msg": lambda kernel: kernel.ipc.queues.text(),
    "sysvipc/sem": lambda kernel: kernel.ipc.semaphores.text(),
    "sysvipc/shm": lambda kernel: kernel.ipc.segments.text(),
    "sys/kernel/hostname": lambda kernel: f"{HOST_NAME}\n",
    "sys/kernel/kptr_restrict": lambda kernel: "0\n",
    "sys/kernel/nmi_watchdog": lambda kernel: "0\n",
    "sys/kernel/osrelease": lambda kernel: f"{RELEASE}\n",
    "sys/kernel/ostype": lambda kernel: f"{SYSTEM_NAME}\n",
    "sys/kernel/overflowuid": lambda kernel: "65534\n",
    "sys/kernel/pid_max": lambda kernel: "4194304\n",
    "sys/kernel/random/boot_id": lambda kernel: f"{BOOT_ID}\n",
    "sys/kernel/random/entropy_avail": lambda kernel: "256\n",
    "sys/kernel/random/uuid": _uuid,
    "sys/kernel/randomize_va_space": lambda kernel: "0\n",
    "sys/kernel/threads-max": lambda kernel: "62384\n",
    "sys/kernel/version": lambda kernel: f"{VERSION}\n",
    "sys/vm/mmap_min_addr": lambda kernel: f"{kernel.architecture.layout.mmap_bottom}\n",
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

    __slots__ = ("_directories", "_kernel")

    def __init__(self, volume: Volume, kernel: Kernel) -> None:
        super().__init__(volume)
        self._kernel = kernel
        self._directories = TaskDirectories(volume, with_tasks=True)

    def lookup(self, name: str) -> Node | None:
        node = super().lookup(name)
        if node is not None or not name.isdecimal():
            return node
        task = self._kernel.tasks.get(int(name))
        return None if task is None else self._directories.of(task)

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
    for path, number in SYSTEM_NUMBERS.items():
        root.add_text(path, f"{number}\n")
    root.add("self", TextLink(volume, lambda: str(kernel.calling().pid)))
    root.add("thread-self", TextLink(volume, lambda: _thread_self(kernel.calling())))
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
