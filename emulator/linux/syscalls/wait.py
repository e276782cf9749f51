"""Waiting for children: wait4(2), waitid(2). kernel/exit.c"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from emulator.linux.errors import EAGAIN, ECHILD, EINVAL, ESRCH, LinuxError
from emulator.linux.fs.file import O_NONBLOCK
from emulator.linux.fs.process_files import process_of
from emulator.linux.process.task import Task
from emulator.linux.process.tracee import Tracee
from emulator.linux.process.usage import Usage
from emulator.linux.ptrace.links import forget, is_traced_by_stranger
from emulator.linux.sched.waiting import Sleeping, wait_until
from emulator.linux.signals.signal import (
    CLD_CONTINUED,
    CLD_EXITED,
    CLD_KILLED,
    CLD_STOPPED,
    CLD_TRAPPED,
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

Wanted = Callable[[Task], bool]
"""Of a child's main thread, or of a thread that the caller traces."""


@dataclass(frozen=True, slots=True)
class Event:
    """What there is to tell of a child, or of a thread that is traced."""

    task: Task
    code: int  # CLD_*
    status: int  # wait status word
    used: Usage

    @property
    def value(self) -> int:
        """si_status: the exit status, or the signal."""
        if self.code == CLD_EXITED:
            return self.status >> 8
        if self.code == CLD_TRAPPED:
            return self.status >> 8
        if self.code == CLD_STOPPED:
            return self.status >> 8 & 0xFF
        return SIGCONT if self.code == CLD_CONTINUED else self.status & 0x7F


def _used(task: Task) -> Usage:
    process = task.process
    return process.usage() + process.waited_usage


def _end(task: Task, status: int) -> Event:
    return Event(task, CLD_KILLED if status & 0x7F else CLD_EXITED, status, _used(task))


def _event(task: Task, options: int, *, hidden: bool) -> Event | None:
    """What a child, by its main thread, has to tell of which `options` speak. `hidden`: a tracer hears of its end."""
    child = task.process
    status = child.exit_status
    if status is not None:
        return _end(task, status) if options & WEXITED and not hidden else None
    if options & WSTOPPED and child.stop_told is not None:
        return Event(task, CLD_STOPPED, child.stop_told << 8 | STOPPED_STATUS, _used(task))
    if options & WCONTINUED and child.continue_told:
        return Event(task, CLD_CONTINUED, CONTINUED_STATUS, _used(task))
    return None


def _event_of_tracee(task: Task, tracee: Tracee, options: int) -> Event | None:
    """... a thread that is traced. Its stops are told whether or not anybody asks."""
    ended = task.process.exit_status if task is task.process.leader else tracee.ended
    if ended is not None:
        return _end(task, ended) if options & WEXITED else None
    stop = tracee.stop
    if stop is not None and not stop.told and not tracee.listens:
        return Event(task, CLD_TRAPPED, stop.code << 8 | STOPPED_STATUS, _used(task))
    if options & WCONTINUED and task is task.process.leader and task.process.continue_told:
        return Event(task, CLD_CONTINUED, CONTINUED_STATUS, _used(task))
    return None


def _may_have_more_to_tell(task: Task, tracee: Tracee | None, options: int) -> bool:
    """Whether it is worth waiting for (wo->notask_error): not for who has ended, where nobody asks for ends."""
    if task is not task.process.leader:
        return tracee is None or tracee.ended is None or bool(options & WEXITED)
    if task.process.exit_status is not None:
        return bool(options & WEXITED)
    # a main thread that has ended before the others has no more stops
    return task.exit_code is None or tracee is None or bool(options & (WEXITED | WCONTINUED))


def _consume(event: Event) -> None:
    """It has been told: not again."""
    task, process = event.task, event.task.process
    if event.code == CLD_TRAPPED:
        assert task.tracee is not None, "only who is traced traps"
        assert task.tracee.stop is not None, "it is stopped"
        task.tracee.stop.told = True
    elif event.code == CLD_STOPPED:
        process.stop_told = None
    elif event.code == CLD_CONTINUED:
        process.continue_told = False
    else:
        stranger = is_traced_by_stranger(process)
        if task.tracer is not None:
            forget(task)
        if task is process.leader and not stranger:
            task.kernel.lifecycle.reap(process)


def _children(task: Task, options: int) -> Iterator[tuple[Task, Tracee | None]]:
    """Main threads of children, then whom the caller's threads trace; these alone with how that is."""
    for child in task.process.children.values():
        leader = child.leader
        assert leader is not None, "every process has a main thread"
        traced_here = leader.tracer is not None and leader.tracer.process is task.process
        if not traced_here and (options & WALL or (child.exit_signal != SIGCHLD) == bool(options & WCLONE)):
            yield leader, None
    for thread in (task,) if options & WNOTHREAD else task.process.threads:
        for traced in thread.tracees.values():
            yield traced, traced.tracee


def _wait(task: Task, wanted: Wanted, number: int, options: int, what: str) -> Sleeping[Event | None]:
    """The first child of those that has something to tell; None if none has, and WNOHANG. ECHILD if there are none.

    `number` is that of the process or the group that is waited for, 0 for any child.
    """
    task.kernel.tell_waits(task, number)

    def find() -> Event | None:
        there = False
        for child, tracee in _children(task, options):
            if not wanted(child):
                continue
            hidden = tracee is None and child.tracer is not None
            there = there or hidden or _may_have_more_to_tell(child, tracee, options)
            if tracee is None:
                event = _event(child, options, hidden=hidden)
            else:
                event = _event_of_tracee(child, tracee, options)
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
        _consume(event)
    return event


def _of_group(group: int) -> Wanted:
    return lambda child: child.pgid == group


def _of_pid(pid: int) -> Wanted:
    return lambda child: child.tid == pid


def _anybody(child: Task) -> bool:
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
    number = task.pgid if upid == 0 else 0 if upid == -1 else abs(upid)
    event = yield from _wait(task, _wanted_by_wait4(task, upid), number, options | WEXITED, "wait4")
    if event is None:
        return 0
    if stat_addr:
        stat_addr.write(U32(event.status))
    if ru:
        ru.write(Rusage.of(event.used))
    return event.task.tid


def _wanted_by_waitid(task: Task, kind: int, number: int) -> tuple[Wanted, int]:
    """... and whose number that is, as `_wait` has it."""
    if kind == P_ALL:
        return _anybody, 0
    if kind == P_PIDFD:
        if number < 0:
            raise LinuxError(EINVAL, f"waitid for pidfd {number}")
        process = process_of(task.files.get(number))
        return lambda child: child is process.leader, process.pid
    if kind not in (P_PID, P_PGID) or number < (1 if kind == P_PID else 0):
        raise LinuxError(EINVAL, f"waitid for {kind}, {number}")
    if kind == P_PGID:
        number = number or task.pgid
    return (_of_pid if kind == P_PID else _of_group)(number), number


@syscall(aarch64=95, x86_64=247)
def waitid(task: Task, which: int, upid: int, infop: Address, options: UInt, ru: Out[Rusage]) -> Sleeping[int]:
    if options & ~WAITID_OPTIONS or not options & (WEXITED | WSTOPPED | WCONTINUED):
        raise LinuxError(EINVAL, f"waitid options {options:#x}")
    wanted, number = _wanted_by_waitid(task, which, upid)
    only_look = which == P_PIDFD and bool(task.files.get(upid).flags & O_NONBLOCK) and not options & WNOHANG
    event = yield from _wait(task, wanted, number, options | (WNOHANG if only_look else 0), "waitid")
    if event is None and only_look:
        raise LinuxError(EAGAIN, f"the process of pidfd {upid} has nothing to tell")
    if event is not None and ru:
        ru.write(Rusage.of(event.used))
    if infop:
        told = bytes(SIGINFO_BYTES)
        if event is not None:
            uid = event.task.credentials.uid
            told = SignalInfo(SIGCHLD, event.code, pid=event.task.tid, uid=uid, value=event.value).pack()
        task.mm.write(infop, told[:SIGINFO_BYTES])
    return 0
