"""Signals: what a task installs, blocks and sends."""

from __future__ import annotations

import struct

from emulator.linux.clock_ids import CLOCK_MONOTONIC
from emulator.linux.errors import EAGAIN, EFAULT, EINTR, EINVAL, ENOMEM, EPERM, ERESTARTNOHAND, ESRCH, LinuxError
from emulator.linux.fs.file import O_CLOEXEC, O_NONBLOCK
from emulator.linux.fs.signal_files import SignalFile
from emulator.linux.process.credentials import CAP_KILL
from emulator.linux.process.task import Process, Task
from emulator.linux.sched.hrtimers import HrTimerMode
from emulator.linux.sched.waiting import Sleeping, sleep_until
from emulator.linux.signals.dequeuing import dequeue
from emulator.linux.signals.signal import (
    NSIG,
    SI_TKILL,
    SI_USER,
    SIG_BLOCK,
    SIG_SETMASK,
    SIG_UNBLOCK,
    SIGCONT,
    SIGSET_SIZE,
    SS_AUTODISARM,
    SS_DISABLE,
    SS_ONSTACK,
    STACK_T,
    UNBLOCKABLE,
    AlternateStack,
    SignalAction,
    SignalInfo,
    bit,
)
from emulator.linux.signals.signal_delivery import return_from_handler, stack_flags
from emulator.linux.signals.signal_sending import forget_ignored
from emulator.linux.structures import U64, Timespec
from emulator.linux.syscalls.table import Address, OptionalIn, Out, Size, UInt, syscall

ACTION = struct.Struct("<QQQQ")  # struct kernel_sigaction: handler, flags, restorer, mask
SIGINFO_SIZE = 128


def _check_set_size(size: int) -> None:
    if size != SIGSET_SIZE:
        raise LinuxError(EINVAL, f"a signal set of {size} bytes; the kernel's has {SIGSET_SIZE}")


@syscall(aarch64=134, x86_64=13)
def rt_sigaction(task: Task, sig: int, act: Address, oact: Address, sigsetsize: Size) -> int:
    _check_set_size(sigsetsize)
    action = None
    if act:
        handler, flags, restorer, mask = ACTION.unpack(task.mm.read(act, ACTION.size))
        action = SignalAction(handler, flags & 0xFFFF_FFFF, restorer, mask & ~UNBLOCKABLE)
    if not 1 <= sig <= NSIG or (action is not None and bit(sig) & UNBLOCKABLE):
        raise LinuxError(EINVAL, f"signal {sig}")
    signals = task.signals
    before = signals.action(sig)
    if action is not None:
        signals.actions[sig] = action
        if signals.ignored(sig):
            forget_ignored(task.process, sig)
    if oact:
        task.mm.write(oact, ACTION.pack(before.handler, before.flags, before.restorer, before.mask))
    return 0


@syscall(aarch64=135, x86_64=14)
def rt_sigprocmask(task: Task, how: int, nset: OptionalIn[U64], oset: Out[U64], sigsetsize: Size) -> int:
    _check_set_size(sigsetsize)
    signals = task.signals
    before = signals.blocked
    if nset is not None:
        if how == SIG_BLOCK:
            signals.blocked |= nset.value
        elif how == SIG_UNBLOCK:
            signals.blocked &= ~nset.value
        elif how == SIG_SETMASK:
            signals.blocked = nset.value
        else:
            raise LinuxError(EINVAL, f"how {how} is not SIG_BLOCK, SIG_UNBLOCK or SIG_SETMASK")
        signals.blocked &= ~UNBLOCKABLE
    if oset:
        oset.write(U64(before))
    return 0


@syscall(aarch64=139, x86_64=15)
def rt_sigreturn(task: Task) -> None:
    return_from_handler(task)


@syscall(aarch64=136, x86_64=127)
def rt_sigpending(task: Task, uset: Address, sigsetsize: Size) -> int:
    if sigsetsize > SIGSET_SIZE:
        raise LinuxError(EINVAL, f"a signal set of {sigsetsize} bytes")
    pending = task.signals.pending_mask() & task.signals.blocked
    task.mm.write(uset, pending.to_bytes(SIGSET_SIZE, "little")[:sigsetsize])
    return 0


@syscall(aarch64=133, x86_64=130)
def rt_sigsuspend(task: Task, unewset: OptionalIn[U64], sigsetsize: Size) -> Sleeping[int]:
    _check_set_size(sigsetsize)
    if unewset is None:
        raise LinuxError(EFAULT, "no mask")
    signals = task.signals
    signals.restore_mask = signals.blocked
    signals.blocked = unewset.value & ~UNBLOCKABLE
    yield from sleep_until(None, f"{task.comm}'s rt_sigsuspend")
    raise LinuxError(ERESTARTNOHAND, "a signal came")


@syscall(aarch64=137, x86_64=128)
def rt_sigtimedwait(
    task: Task, uthese: OptionalIn[U64], uinfo: Address, uts: OptionalIn[Timespec], sigsetsize: Size
) -> Sleeping[int]:
    _check_set_size(sigsetsize)
    if uthese is None:
        raise LinuxError(EFAULT, "no set")
    signals = task.signals
    mask = uthese.value & ~UNBLOCKABLE
    until = None if uts is None else task.clock.elapsed_ns() + uts.ns()
    taken = dequeue(task, mask)
    if taken is None:
        signals.awaited = mask
        timer = None if until is None else task.sleeper(CLOCK_MONOTONIC, HrTimerMode.REL)
        came = not (yield from sleep_until(until, f"{task.comm}'s rt_sigtimedwait", timer))
        signals.awaited = 0
        taken = dequeue(task, mask)
        if taken is None:
            raise LinuxError(EINTR if came else EAGAIN, "no signal of the set came")
    if uinfo:
        task.mm.write(uinfo, taken.pack())
    return taken.signal


@syscall(aarch64=132, x86_64=131)
def sigaltstack(task: Task, uss: Address, uoss: Address) -> int:
    signals = task.signals
    stack_pointer = task.cpu.core.read_register(task.architecture.sp)
    before = signals.stack
    shown = STACK_T.pack(before.address, stack_flags(before, stack_pointer), before.size)
    if uss:
        address, flags, size = STACK_T.unpack(task.mm.read(uss, STACK_T.size))
        mode = flags & ~SS_AUTODISARM
        if not before.flags & SS_DISABLE and before.holds(stack_pointer):
            raise LinuxError(EPERM, "the alternate stack is in use")
        if mode not in (0, SS_ONSTACK, SS_DISABLE):
            raise LinuxError(EINVAL, f"flags {flags:#x}")
        if mode == SS_DISABLE:
            signals.stack = AlternateStack(0, flags, 0)
        elif size < task.architecture.minimum_alternate_stack:
            raise LinuxError(ENOMEM, f"an alternate stack of {size} bytes")
        else:
            signals.stack = AlternateStack(address, flags & SS_AUTODISARM, size)
    if uoss:
        task.mm.write(uoss, shown)
    return 0


def check_signal(signal: int) -> None:
    if not 0 <= signal <= NSIG:
        raise LinuxError(EINVAL, f"signal {signal} is not in 0..{NSIG}")


def may_signal(task: Task, process: Process, signal: int) -> bool:
    """kill_ok_by_cred(), and SIGCONT within a session. Real, effective and saved ids are one."""
    leader = process.leader
    return (
        process is task.process
        or leader is None
        or task.credentials.uid == leader.credentials.uid
        or task.credentials.has(CAP_KILL)
        or (signal == SIGCONT and process.sid == task.sid)
    )


def check_permission(task: Task, process: Process, signal: int) -> None:
    """check_kill_permission()"""
    if not may_signal(task, process, signal):
        raise LinuxError(EPERM, f"process {process.pid} is another user's")


def _user_info(task: Task, signal: int, code: int) -> SignalInfo:
    return SignalInfo(signal, code, pid=task.pid, uid=task.credentials.uid)


def _process(task: Task, pid: int) -> Process:
    """Also one that has ended, until its parent has waited for it."""
    found = task.kernel.tasks.get(pid)
    if found is None or found.pid != pid:
        raise LinuxError(ESRCH, f"process {pid} does not exist")
    return found.process


@syscall(aarch64=129, x86_64=62)
def kill(task: Task, pid: int, sig: int) -> int:
    """-1 means all others but init, 0 the own group, other negative numbers a group."""
    check_signal(sig)
    if pid > 0:
        if pid not in task.kernel.tasks and task.kernel.outside_hears(pid, sig):
            return 0
        targets = [_process(task, pid)]
        check_permission(task, targets[0], sig)
    else:
        others = [other.process for other in task.kernel.tasks.values() if other is other.process.leader]
        if pid == -1:
            targets = [process for process in others if process is not task.process and not process.is_init]
        else:
            group = -pid or task.pgid
            targets = [process for process in others if process.pgid == group]
        if not targets:
            raise LinuxError(ESRCH, f"kill of {pid}: there is nobody")
        if pid != -1 and not any(may_signal(task, process, sig) for process in targets):
            raise LinuxError(EPERM, f"kill of {pid}: all are other users'")
        targets = [process for process in targets if may_signal(task, process, sig)]
    if sig:
        info = _user_info(task, sig, SI_USER)
        for process in targets:
            task.kernel.signal_process(process, info)
    return 0


def _thread(task: Task, pid: int, tid: int) -> Task:
    """`pid` -1: of any process."""
    target = task.kernel.tasks.get(tid)
    if target is None or pid not in (-1, target.pid) or target.exit_code is not None:
        raise LinuxError(ESRCH, f"thread {tid} does not exist")
    return target


def queued(room: bool) -> None:
    """Whether a signal that queues found room."""
    if not room:
        raise LinuxError(EAGAIN, "too many signals are pending: RLIMIT_SIGPENDING is reached")


def _send_to_thread(task: Task, pid: int, tid: int, signal: int) -> int:
    if tid <= 0 or pid == 0 or pid < -1:
        raise LinuxError(EINVAL, f"thread {tid} of process {pid}")
    target = _thread(task, pid, tid)
    check_signal(signal)
    check_permission(task, target.process, signal)
    if signal:
        queued(task.kernel.send_signal(target, _user_info(task, signal, SI_TKILL)))
    return 0


@syscall(aarch64=130, x86_64=200)
def tkill(task: Task, pid: int, sig: int) -> int:
    return _send_to_thread(task, -1, pid, sig)


@syscall(aarch64=131, x86_64=234)
def tgkill(task: Task, tgid: int, pid: int, sig: int) -> int:
    if tgid <= 0:
        raise LinuxError(EINVAL, f"process {tgid}")
    return _send_to_thread(task, tgid, pid, sig)


def given_info(task: Task, pid: int, signal: int, address: int) -> SignalInfo:
    """What the caller filled in; only to itself it may look like the kernel's or like kill(2)'s."""
    data = bytearray(task.mm.read(address, SIGINFO_SIZE))
    data[0:4] = (signal & 0xFFFF_FFFF).to_bytes(4, "little")
    code = int.from_bytes(data[8:12], "little", signed=True)
    if (code >= 0 or code == SI_TKILL) and pid != task.pid:
        raise LinuxError(EPERM, f"a signal with code {code} to another process")
    return SignalInfo(signal, code, raw=bytes(data))


@syscall(aarch64=138, x86_64=129)
def rt_sigqueueinfo(task: Task, pid: int, sig: int, uinfo: Address) -> int:
    given = given_info(task, pid, sig, uinfo)
    process = _process(task, pid)
    check_signal(sig)
    check_permission(task, process, sig)
    if sig:
        queued(task.kernel.signal_process(process, given))
    return 0


@syscall(aarch64=240, x86_64=297)
def rt_tgsigqueueinfo(task: Task, tgid: int, pid: int, sig: int, uinfo: Address) -> int:
    if tgid <= 0 or pid <= 0:
        raise LinuxError(EINVAL, f"thread {pid} of process {tgid}")
    given = given_info(task, tgid, sig, uinfo)
    target = _thread(task, tgid, pid)
    check_signal(sig)
    check_permission(task, target.process, sig)
    if sig:
        queued(task.kernel.send_signal(target, given))
    return 0


# ---- signalfd


@syscall(aarch64=74, x86_64=289)
def signalfd4(task: Task, ufd: int, user_mask: OptionalIn[U64], sizemask: Size, flags: UInt) -> int:
    if flags & ~(O_CLOEXEC | O_NONBLOCK):
        raise LinuxError(EINVAL, f"signalfd flags {flags:#x}")
    return _signalfd(task, ufd, user_mask, sizemask, flags)


@syscall(x86_64=282)
def signalfd(task: Task, ufd: int, user_mask: OptionalIn[U64], sizemask: Size) -> int:
    return _signalfd(task, ufd, user_mask, sizemask, 0)


def _signalfd(task: Task, descriptor: int, mask: U64 | None, size: int, flags: int) -> int:
    _check_set_size(size)
    if mask is None:
        raise LinuxError(EFAULT, "no set")
    wanted = mask.value & ~UNBLOCKABLE
    if descriptor == -1:
        file = SignalFile(task.kernel.calling, flags & O_NONBLOCK, wanted)
        return task.files.install(file, bool(flags & O_CLOEXEC))
    existing = task.files.get(descriptor)
    if not isinstance(existing, SignalFile):
        raise LinuxError(EINVAL, f"descriptor {descriptor} is no signalfd")
    existing.change(wanted)
    return descriptor
