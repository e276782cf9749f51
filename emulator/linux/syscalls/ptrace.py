"""ptrace(2): who begins to trace whom, and which request goes to a task that is stopped."""

from __future__ import annotations

from emulator.linux.errors import EIO, EPERM, ESRCH, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.ptrace import abi
from emulator.linux.ptrace.links import link
from emulator.linux.ptrace.permission import check_access
from emulator.linux.ptrace.requests import REQUESTS, REQUESTS_OF_X86, check_options
from emulator.linux.ptrace.stops import let_go
from emulator.linux.signals.signal import SI_KERNEL, SIGKILL, SIGSTOP, SignalInfo
from emulator.linux.syscalls.table import Address, Long, Support, ULong, syscall

NOTE = "hardware breakpoints on x86-64 alone; no block steps; a REP is one step; filters are not read back"


def _trace_me(task: Task) -> int:
    """PTRACE_TRACEME: the thread that has made this process is its tracer from now on."""
    parent = task.process.parent
    if task.tracer is not None or parent is None or not parent.threads:
        raise LinuxError(EPERM, "it is traced already, or has no parent that could")
    maker = task.process.maker
    if maker is None or maker.exit_code is not None or maker.process is not parent:
        maker = parent.threads[0]
    link(maker, task, seized=False)
    return 0


def _attach(task: Task, target: Task, *, seized: bool, options: int) -> int:
    """ptrace_attach()"""
    if target.process is task.process:
        raise LinuxError(EPERM, "a process does not trace itself")
    check_access(task, target)
    if target.process.is_init:
        task.kernel.name_once("init cannot be traced: nothing of it executes: EPERM")
        raise LinuxError(EPERM, "nothing of init executes")
    if target.exit_code is not None or target.tracer is not None:
        raise LinuxError(EPERM, f"thread {target.tid} has ended, or is traced already")
    tracee = link(task, target, seized=seized, options=options)
    if not seized:
        task.kernel.send_signal(target, SignalInfo(SIGSTOP, SI_KERNEL))
    if target.process.stopped:
        tracee.group_stop = target.signals.stops = True
        task.kernel.dispatcher.go_on(target)
        task.kernel.dispatcher.interrupt(target)
    return 0


def _seize(task: Task, target: Task, address: int, options: int) -> int:
    if address:
        raise LinuxError(EIO, "PTRACE_SEIZE has no address")
    if options & ~abi.OPTIONS:
        raise LinuxError(EIO, f"options {options:#x}: want those of {abi.OPTIONS:#x}")
    check_options(task, options)
    return _attach(task, target, seized=True, options=options)


def _interrupt(target: Task) -> int:
    """PTRACE_INTERRUPT"""
    tracee = target.tracee
    if tracee is None or not tracee.seized:
        raise LinuxError(EIO, f"thread {target.tid} is not seized")
    tracee.interrupted = target.signals.stops = True
    if tracee.listens and tracee.stop is not None:
        let_go(target)
    target.kernel.dispatcher.interrupt(target)
    return 0


def _target(task: Task, pid: int) -> Task:
    found = task.kernel.tasks.get(pid)
    if found is None:
        raise LinuxError(ESRCH, f"thread {pid} does not exist")
    return found


@syscall(aarch64=117, x86_64=101, support=Support.PARTIAL, note=NOTE)
def ptrace(task: Task, request: Long, pid: Long, addr: Address, data: ULong) -> int:
    if request == abi.PTRACE_TRACEME:
        return _trace_me(task)
    target = _target(task, pid)
    if request == abi.PTRACE_ATTACH:
        return _attach(task, target, seized=False, options=0)
    if request == abi.PTRACE_SEIZE:
        return _seize(task, target, addr, data)
    tracee = target.tracee
    if target.tracer is not task or tracee is None or target.exit_code is not None:
        raise LinuxError(ESRCH, f"process {task.pid} does not trace thread {pid}")
    if request == abi.PTRACE_KILL:
        task.kernel.lifecycle.end_process(target.process, SIGKILL)
        return 0
    if request == abi.PTRACE_INTERRUPT:
        return _interrupt(target)
    if tracee.stop is None or tracee.listens:
        raise LinuxError(ESRCH, f"thread {pid} is not stopped")
    row = REQUESTS.get(request)
    if row is None and task.architecture.isa == "x86_64":
        row = REQUESTS_OF_X86.get(request)
    if row is None:
        task.kernel.name_once(f"ptrace request {request:#x} is not modelled: EIO")
        raise LinuxError(EIO, f"ptrace request {request:#x}")
    return row(task, target, tracee, addr, data)
