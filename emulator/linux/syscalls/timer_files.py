"""Timers as files: timerfd."""

from __future__ import annotations

from emulator.linux.clock_ids import (
    CLOCK_BOOTTIME,
    CLOCK_BOOTTIME_ALARM,
    CLOCK_MONOTONIC,
    CLOCK_REALTIME,
    CLOCK_REALTIME_ALARM,
)
from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.fs.file import O_CLOEXEC, O_NONBLOCK
from emulator.linux.fs.timer_files import TimerFile
from emulator.linux.process.task import Task
from emulator.linux.sched.hrtimers import TIMERFD_TMRPROC, HrTimerMode
from emulator.linux.structures import Itimerspec
from emulator.linux.syscalls.table import In, Out, UInt, syscall
from emulator.linux.syscalls.time import CLOCKS

TIMER_CLOCKS = (CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME_ALARM, CLOCK_BOOTTIME_ALARM)
TFD_TIMER_ABSTIME = 1
TFD_TIMER_CANCEL_ON_SET = 2  # never happens: nobody sets the clock


@syscall(aarch64=85, x86_64=283)
def timerfd_create(task: Task, clockid: int, flags: UInt) -> int:
    if flags & ~(O_CLOEXEC | O_NONBLOCK) or clockid not in TIMER_CLOCKS:
        raise LinuxError(EINVAL, f"a timerfd of clock {clockid} with flags {flags:#x}")
    kernel = task.kernel
    hrtimer = kernel.hrtimers.create(TIMERFD_TMRPROC, clockid)
    file = TimerFile(task.clock, clockid, lambda: kernel.timers, flags & O_NONBLOCK, hrtimer)
    return task.files.install(file, bool(flags & O_CLOEXEC))


def _timer(task: Task, descriptor: int) -> TimerFile:
    file = task.files.get(descriptor)
    if not isinstance(file, TimerFile):
        raise LinuxError(EINVAL, f"descriptor {descriptor} is no timerfd")
    return file


@syscall(aarch64=86, x86_64=286)
def timerfd_settime(task: Task, ufd: int, flags: int, utmr: In[Itimerspec], otmr: Out[Itimerspec]) -> int:
    if flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET):
        raise LinuxError(EINVAL, f"timerfd flags {flags:#x}")
    file = _timer(task, ufd)
    before = Itimerspec(file.interval_ns, file.remaining_ns())
    due_ns = None
    if utmr.value_ns:
        start_ns = CLOCKS[file.clock_id](task) if flags & TFD_TIMER_ABSTIME else 0
        due_ns = task.clock.elapsed_ns() + utmr.value_ns - start_ns
    file.set(due_ns, utmr.interval_ns, HrTimerMode.ABS if flags & TFD_TIMER_ABSTIME else HrTimerMode.REL)
    if otmr:
        otmr.write(before)
    return 0


@syscall(aarch64=87, x86_64=287)
def timerfd_gettime(task: Task, ufd: int, otmr: Out[Itimerspec]) -> int:
    file = _timer(task, ufd)
    file.go_on()
    otmr.write(Itimerspec(file.interval_ns, file.remaining_ns()))
    return 0
