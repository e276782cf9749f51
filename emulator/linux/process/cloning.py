"""Cloning: what a new thread or process shares with its maker, and what it gets a copy of. clone(2), kernel/fork.c."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from emulator._native import RegisterState
from emulator.linux.errors import EINVAL, EPERM, LinuxError
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.task import CloneRequest, FileContext, Process, Task
from emulator.linux.signals.signal import NSIG, SignalState

# uapi/linux/sched.h
CSIGNAL = 0xFF  # of clone's flags: the signal at the child's end
CLONE_VM = 0x0000_0100
CLONE_FS = 0x0000_0200
CLONE_FILES = 0x0000_0400
CLONE_SIGHAND = 0x0000_0800
CLONE_PIDFD = 0x0000_1000
CLONE_PTRACE = 0x0000_2000
CLONE_VFORK = 0x0000_4000
CLONE_PARENT = 0x0000_8000
CLONE_THREAD = 0x0001_0000
CLONE_NEWNS = 0x0002_0000
CLONE_SYSVSEM = 0x0004_0000
CLONE_SETTLS = 0x0008_0000
CLONE_PARENT_SETTID = 0x0010_0000
CLONE_CHILD_CLEARTID = 0x0020_0000
CLONE_DETACHED = 0x0040_0000
CLONE_UNTRACED = 0x0080_0000
CLONE_CHILD_SETTID = 0x0100_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
CLONE_CLEAR_SIGHAND = 0x1_0000_0000
CLONE_INTO_CGROUP = 0x2_0000_0000
NAMESPACES = (
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
)  # fmt: skip
# flags that need others: kernel/fork.c, copy_process
NEEDS = {CLONE_THREAD: CLONE_SIGHAND, CLONE_SIGHAND: CLONE_VM}
EXCLUDES = {CLONE_CLEAR_SIGHAND: CLONE_SIGHAND, CLONE_PIDFD: CLONE_DETACHED | CLONE_THREAD}


def check(task: Task, request: CloneRequest) -> None:
    """EINVAL for what contradicts itself, EPERM for namespaces, EOPNOTSUPP for where its control group cannot be."""
    flags = request.flags
    if any(flags & flag and not flags & needed for flag, needed in NEEDS.items()):
        raise LinuxError(EINVAL, f"clone flags {flags:#x}: threads share their handlers, and those share the memory")
    if any(flags & flag and flags & other for flag, other in EXCLUDES.items()):
        raise LinuxError(EINVAL, f"clone flags {flags:#x} contradict each other")
    if not 0 <= request.exit_signal <= NSIG:
        raise LinuxError(EINVAL, f"signal {request.exit_signal}")
    if flags & NAMESPACES:
        task.kernel.name_once(f"clone with flags {flags:#x}: there are no namespaces: EPERM")
        raise LinuxError(EPERM, f"namespaces of clone flags {flags:#x}")
    if request.cgroup is not None:
        request.cgroup.check_joining(task, not flags & CLONE_THREAD)


def new_task(parent: Task, request: CloneRequest, tid: int, mm: MemoryMap) -> Task:
    """The new one, in its process, whose memory is `mm`; it has no registers yet, and nobody has heard of it."""
    flags = request.flags
    files = parent.files if flags & CLONE_FILES else parent.files.copy()  # ENOMEM, before anything has been made
    child = Task(
        tid=tid,
        process=parent.process if flags & CLONE_THREAD else _new_process(parent, request, tid),
        comm=parent.comm,
        mm=mm,
        files=files,
        fs=parent.fs if flags & CLONE_FS else FileContext(parent.fs.system, parent.fs.cwd, parent.fs.umask),
        kernel=parent.kernel,
        cpu=parent.cpu,
        cgroup=request.cgroup or parent.cgroup,
        start_time_ns=parent.kernel.clock.elapsed_ns(),
        signals=_new_signals(parent, flags),
        credentials=parent.credentials,
        dumpable=parent.dumpable,
        no_new_privileges=parent.no_new_privileges,
        seccomp=parent.seccomp,
        trapped_instructions=parent.trapped_instructions,
        timer_slack_ns=parent.timer_slack_ns,
        personality=parent.personality,
        affinity=parent.affinity,
        policy=parent.policy,
        priority=parent.priority,
        nice=parent.nice,
        io_priority=parent.io_priority,
    )
    if parent.rseq is not None and not flags & CLONE_VM:  # a thread registers its own
        child.rseq = replace(parent.rseq)
    if flags & CLONE_FILES:
        child.files.retain()
    if flags & CLONE_CLEAR_SIGHAND:
        child.signals.reset_for_exec()
    if flags & CLONE_CHILD_CLEARTID:
        child.clear_child_tid = request.child_tid
    if not flags & CLONE_THREAD:
        child.process.leader = child
    return child


def _new_signals(parent: Task, flags: int) -> SignalState:
    if flags & CLONE_THREAD:
        return parent.signals.of_thread()
    return parent.signals.forked(shares_actions=bool(flags & CLONE_SIGHAND))


def _new_process(parent: Task, request: CloneRequest, pid: int) -> Process:
    maker = parent.process
    process = Process(pid, maker, maker=parent, pgid=maker.pgid, sid=maker.sid, exit_signal=request.exit_signal)
    if request.flags & CLONE_PARENT:  # a sibling of its maker
        process.parent, process.orphan_ppid, process.exit_signal = maker.parent, maker.orphan_ppid, maker.exit_signal
        process.maker = maker.maker
    process.limits = maker.limits.copy()
    process.executable = maker.executable
    if process.parent is not None:
        process.parent.children[pid] = process
    return process


def child_registers(parent: Task, request: CloneRequest) -> RegisterState:
    """The parent's with the result 0, and a stack and thread pointer of its own if it is given."""
    core, architecture = parent.cpu.core, parent.architecture
    own = core.save_state()
    architecture.set_syscall_result(core, 0)
    if request.stack_pointer:
        core.write_register(architecture.sp, request.stack_pointer)
    if request.flags & CLONE_SETTLS:
        core.write_register(architecture.thread_pointer, request.tls)
    core.fork_calls(bool(request.flags & CLONE_VM), bool(request.stack_pointer))
    registers = core.save_state()
    core.restore_state(own)
    return registers


def write_tids(parent: MemoryMap, child: MemoryMap, request: CloneRequest, tid: int) -> None:
    """As in Linux, nobody hears of an address that cannot be written."""
    for flag, mm, address in (
        (CLONE_PARENT_SETTID, parent, request.parent_tid),
        (CLONE_CHILD_SETTID, child, request.child_tid),
    ):
        if request.flags & flag:
            with suppress(LinuxError):
                mm.write(address, tid.to_bytes(4, "little"))
