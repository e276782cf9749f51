"""Waiting for children: wait4(2), waitid(2). kernel/exit.c"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.linux.errors import EAGAIN, ECHILD, EINVAL, ESRCH, LinuxError
from emulator.linux.fs.file import O_NONBLOCK
from emulator.linux.fs.process_files import process_of
from emulator.linux.process.task import Process, Task, Usage
from emulator.linux.sched.waiting import Sleeping, wait_until
from emulator.linux.signals.signal import (
    CLD_CONTINUED,
    CLD_EXITED,
    CLD_KILLED,
    CLD_STOPPED,
    SIGCHLD,
    SIGCONT,
    SignalInfo,
)
from emulator.linux.structures import U32
from emulator.linux.syscalls.limits import Rusage
from emulator.linux.syscalls.table import Address, Out, UInt, syscall

# uapi/linux/wait.h
WNOHANG, WSTOPPED, WEXITED, WCONTINUED, WNOWAIT = 1, 2, 4, 8, 0x0100_0000  # WUNTRACED is WSTOPPED
WNOTHREAD, WALL, WCLONE = 0x2000_0000, 0x4000_0000, 0x8000_0000
WAIT4_OPTIONS = WNOHANG | WSTOPPED | WCONTINUED | WNOTHREAD | WALL | WCLONE
WAITID_OPTIONS = WAIT4_OPTIONS | WEXITED | WNOWAIT
P_ALL, P_PID, P_PGID, P_PIDFD = range(4)
CONTINUED_STATUS = 0xFFFF
STOPPED_STATUS = 0x7F  # in the low byte, with the signal above
SIGINFO_BYTES = 32  # of the 128, up to si_status and its padding: waitid writes no more

Wanted = Callable[[Process], bool]


@dataclass(frozen=True, slots=True)
class Event:
    """What there is to tell of a child."""

    child: Process
    code: int  # CLD_*
    status: int  # wait status word
    used: Usage

    @property
    def value(self) -> int:
        """si_status: the exit status, or the signal."""
        if self.code == CLD_EXITED:
            return self.status >> 8
        if self.code == CLD_STOPPED:
            return self.status >> 8 & 0xFF
        return SIGCONT if self.code == CLD_CONTINUED else self.status & 0x7F


def _event(child: Process, options: int) -> Event | None:
    """What this child has to tell of which `options` speak."""
    status = child.exit_status
    if status is not None:
        if not options & WEXITED:
            return None
        code = CLD_KILLED if status & 0x7F else CLD_EXITED
        return Event(child, code, status, child.ended_usage + child.waited_usage)
    if options & WSTOPPED and child.stop_told is not None:
        return Event(child, CLD_STOPPED, child.stop_told << 8 | STOPPED_STATUS, child.usage() + child.waited_usage)
    if options & WCONTINUED and child.continue_told:
        return Event(child, CLD_CONTINUED, CONTINUED_STATUS, child.usage() + child.waited_usage)
    return None


def _consume(task: Task, event: Event) -> None:
    """It has been told: not again."""
    if event.code == CLD_STOPPED:
        event.child.stop_told = None
    elif event.code == CLD_CONTINUED:
        event.child.continue_told = False
    else:
        task.kernel.lifecycle.reap(event.child)


def _wait(task: Task, wanted: Wanted, options: int, what: str) -> Sleeping[Event | None]:
    """The first child of those that has something to tell; None if none has, and WNOHANG. ECHILD if there are none."""

    def find() -> Event | None:
        there = False
        for child in task.process.children.values():
            if not wanted(child) or (not options & WALL and (child.exit_signal != SIGCHLD) != bool(options & WCLONE)):
                continue
            there = there or child.exit_status is None or bool(options & WEXITED)
            event = _event(child, options)
            if event is not None:
                return event
        if not there:
            raise LinuxError(ECHILD, "there is no such child")
        return None

    event = find()
    if event is None and not options & WNOHANG:
        yield from wait_until(task, lambda: find() is not None, lambda: (task.process.child_ended,), what)
        event = find()
    if event is not None and not options & WNOWAIT:
        _consume(task, event)
    return event


def _of_group(group: int) -> Wanted:
    return lambda child: child.pgid == group


def _of_pid(pid: int) -> Wanted:
    return lambda child: child.pid == pid


def _anybody(child: Process) -> bool:
    return True


def _wanted_by_wait4(task: Task, pid: int) -> Wanted:
    if pid > 0:
        return _of_pid(pid)
    return _anybody if pid == -1 else _of_group(-pid or task.pgid)


@syscall(aarch64=260, x86_64=61)
def wait4(task: Task, upid: int, stat_addr: Out[U32], options: UInt, ru: Out[Rusage]) -> Sleeping[int]:
    if options & ~WAIT4_OPTIONS:
        raise LinuxError(EINVAL, f"wait4 options {options:#x}")
    if upid == -(1 << 31):
        raise LinuxError(ESRCH, "no process group has that number")
    event = yield from _wait(task, _wanted_by_wait4(task, upid), options | WEXITED, "wait4")
    if event is None:
        return 0
    if stat_addr:
        stat_addr.write(U32(event.status))
    if ru:
        ru.write(Rusage.of(event.used))
    return event.child.pid


def _wanted_by_waitid(task: Task, kind: int, number: int) -> Wanted:
    if kind == P_ALL:
        return _anybody
    if kind == P_PIDFD:
        if number < 0:
            raise LinuxError(EINVAL, f"waitid for pidfd {number}")
        process = process_of(task.files.get(number))
        return lambda child: child is process
    if kind not in (P_PID, P_PGID) or number < (1 if kind == P_PID else 0):
        raise LinuxError(EINVAL, f"waitid for {kind}, {number}")
    return _of_pid(number) if kind == P_PID else _of_group(number or task.pgid)


@syscall(aarch64=95, x86_64=247)
def waitid(task: Task, which: int, upid: int, infop: Address, options: UInt, ru: Out[Rusage]) -> Sleeping[int]:
    if options & ~WAITID_OPTIONS or not options & (WEXITED | WSTOPPED | WCONTINUED):
        raise LinuxError(EINVAL, f"waitid options {options:#x}")
    wanted = _wanted_by_waitid(task, which, upid)
    only_look = which == P_PIDFD and bool(task.files.get(upid).flags & O_NONBLOCK) and not options & WNOHANG
    event = yield from _wait(task, wanted, options | (WNOHANG if only_look else 0), "waitid")
    if event is None and only_look:
        raise LinuxError(EAGAIN, f"the process of pidfd {upid} has nothing to tell")
    if event is not None and ru:
        ru.write(Rusage.of(event.used))
    if infop:
        told = bytes(SIGINFO_BYTES)
        if event is not None:
            uid = event.child.leader.credentials.uid if event.child.leader is not None else 0
            told = SignalInfo(SIGCHLD, event.code, pid=event.child.pid, uid=uid, value=event.value).pack()
        task.mm.write(infop, told[:SIGINFO_BYTES])
    return 0
