"""Time: clocks, sleep, timers. Every clock advances with guest cycles and idle time, none with the host."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

from emulator.linux.clock_ids import (
    CLOCK_BOOTTIME,
    CLOCK_BOOTTIME_ALARM,
    CLOCK_MONOTONIC,
    CLOCK_MONOTONIC_COARSE,
    CLOCK_MONOTONIC_RAW,
    CLOCK_PROCESS_CPUTIME_ID,
    CLOCK_REALTIME,
    CLOCK_REALTIME_ALARM,
    CLOCK_REALTIME_COARSE,
    CLOCK_TAI,
    CLOCK_THREAD_CPUTIME_ID,
)
from emulator.linux.errors import EAGAIN, EINTR, EINVAL, EOPNOTSUPP, EPERM, ERESTARTNOHAND, LinuxError
from emulator.linux.process.limits import RLIMIT_SIGPENDING
from emulator.linux.process.posix_timers import DELAYTIMER_MAX, PosixTimer
from emulator.linux.process.task import Process, Task
from emulator.linux.sched.hrtimers import POSIX_TIMER_FN, HrTimer, HrTimerMode
from emulator.linux.sched.interval_timers import ITIMER_PROF, ITIMER_REAL, ITIMER_VIRTUAL, IntervalTimer
from emulator.linux.sched.waiting import Sleeping, sleep_until
from emulator.linux.signals.signal import (
    NSIG,
    SI_KERNEL,
    SI_TIMER,
    SIGALRM,
    SIGEV_NONE,
    SIGEV_SIGNAL,
    SIGEV_THREAD,
    SIGEV_THREAD_ID,
    SIGPROF,
    SIGVTALRM,
    SignalInfo,
)
from emulator.linux.signals.signal_sending import pending_of_timer
from emulator.linux.structures import (
    NANOSECONDS,
    TICK_NS,
    TICKS_PER_SECOND,
    U32,
    U64,
    Itimerspec,
    Itimerval,
    Timespec,
    Timeval,
)
from emulator.linux.syscalls.table import Address, In, OptionalIn, Out, Support, UInt, syscall

# uapi/linux/time.h
CPUCLOCK_KIND, CPUCLOCK_USER, CPUCLOCK_FD, CPUCLOCK_PER_THREAD = 3, 1, 3, 4  # of negative clocks
TIMER_ABSTIME = 1


def _coarse(ns: int) -> int:
    return ns - ns % TICK_NS


CLOCKS: dict[int, Callable[[Task], int]] = {
    CLOCK_REALTIME: lambda task: task.clock.realtime_ns(),
    CLOCK_MONOTONIC: lambda task: task.clock.monotonic_ns(),
    CLOCK_PROCESS_CPUTIME_ID: lambda task: task.process.cpu_ns(),
    CLOCK_THREAD_CPUTIME_ID: lambda task: task.cpu_ns(),
    CLOCK_MONOTONIC_RAW: lambda task: task.clock.monotonic_ns(),
    CLOCK_REALTIME_COARSE: lambda task: _coarse(task.clock.realtime_ns()),
    CLOCK_MONOTONIC_COARSE: lambda task: _coarse(task.clock.monotonic_ns()),
    CLOCK_BOOTTIME: lambda task: task.clock.monotonic_ns(),
    CLOCK_REALTIME_ALARM: lambda task: task.clock.realtime_ns(),
    CLOCK_BOOTTIME_ALARM: lambda task: task.clock.monotonic_ns(),
    CLOCK_TAI: lambda task: task.clock.realtime_ns(),
}
WALL_CLOCKS = frozenset(CLOCKS) - {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID}
CPU_CLOCKS = (CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID)
FINE_CLOCKS = {CLOCK_REALTIME_COARSE: CLOCK_REALTIME, CLOCK_MONOTONIC_COARSE: CLOCK_MONOTONIC}
SETTABLE_CLOCKS = (CLOCK_REALTIME,)
SLEEPING_CLOCKS = (
    CLOCK_REALTIME,
    CLOCK_MONOTONIC,
    CLOCK_BOOTTIME,
    CLOCK_REALTIME_ALARM,
    CLOCK_BOOTTIME_ALARM,
    CLOCK_TAI,
)


def _now(task: Task, clock: int) -> int:
    """Nanoseconds of a clock; negative numbers are the CPU clocks of a process or thread (clock_getcpuclockid(3))."""
    read = CLOCKS.get(clock)
    if read is not None:
        return read(task)
    return _cpu_clock(task, clock)[0]()


def _cpu_clock(task: Task, clock: int) -> tuple[Callable[[], int], Task | None]:
    """What reads a CPU clock, and the thread if it is of one (kernel/time/posix-cpu-timers.c)."""
    if clock == CLOCK_PROCESS_CPUTIME_ID:
        return task.process.cpu_ns, None
    if clock == CLOCK_THREAD_CPUTIME_ID:
        return task.cpu_ns, task
    kind = clock & CPUCLOCK_KIND
    if clock >= 0 or kind == CPUCLOCK_FD:
        raise LinuxError(EINVAL, f"clock {clock} is not one of {sorted(CLOCKS)}")
    number = ~clock >> 3
    target = task.kernel.tasks.get(number) if number else task
    of_thread = bool(clock & CPUCLOCK_PER_THREAD)
    if target is None or (of_thread and target.process is not task.process):
        raise LinuxError(EINVAL, f"clock {clock}: there is no {number}")
    if of_thread:
        return target.user_ns if kind == CPUCLOCK_USER else target.cpu_ns, target
    return target.process.user_ns if kind == CPUCLOCK_USER else target.process.cpu_ns, None


@syscall(aarch64=113, x86_64=228)
def clock_gettime(task: Task, which_clock: int, tp: Out[Timespec]) -> int:
    if which_clock in WALL_CLOCKS:
        now = FINE_CLOCKS.get(which_clock, which_clock)
        ns = _now(task, now) + task.clock.ahead_ns()
        tp.write(Timespec.from_ns(ns if now == which_clock else _coarse(ns)))
    else:
        tp.write(Timespec.from_ns(_now(task, which_clock)))
    return 0


@syscall(aarch64=114, x86_64=229)
def clock_getres(task: Task, which_clock: int, tp: Out[Timespec]) -> int:
    _now(task, which_clock)
    if tp:
        tp.write(Timespec(0, TICK_NS if which_clock in FINE_CLOCKS else 1))
    return 0


@syscall(aarch64=112, x86_64=227, support=Support.REFUSED, note="the machine's time is pinned: EPERM")
def clock_settime(task: Task, which_clock: int, tp: In[Timespec]) -> int:
    if which_clock not in SETTABLE_CLOCKS:
        raise LinuxError(EINVAL, f"clock {which_clock} cannot be set")
    tp.ns()
    raise LinuxError(EPERM, "the machine's time is pinned")


@syscall(aarch64=169, x86_64=96)
def gettimeofday(task: Task, tv: Out[Timeval], tz: Address) -> int:
    if tv:
        tv.write(Timeval.from_ns(task.clock.ahead_ns() + task.clock.realtime_ns()))
    if tz:
        task.mm.write(tz, bytes(8))  # UTC
    return 0


@syscall(aarch64=170, x86_64=164, support=Support.REFUSED, note="the machine's time is pinned: EPERM")
def settimeofday(task: Task, tv: Address, tz: Address) -> int:
    raise LinuxError(EPERM, "the machine's time is pinned")


@syscall(x86_64=201)
def time(task: Task, tloc: Out[U64]) -> int:
    seconds = (task.clock.ahead_ns() + task.clock.realtime_ns()) // NANOSECONDS
    if tloc:
        tloc.write(U64(seconds))
    return seconds


# ---- sleep


@syscall(aarch64=101, x86_64=35)
def nanosleep(task: Task, rqtp: In[Timespec], rmtp: Out[Timespec]) -> Sleeping[int]:
    wake_ns = task.clock.elapsed_ns() + rqtp.ns()
    return _sleep(task, wake_ns, rmtp, task.sleeper(CLOCK_MONOTONIC, HrTimerMode.REL))


@syscall(aarch64=115, x86_64=230)
def clock_nanosleep(task: Task, which_clock: int, flags: int, rqtp: In[Timespec], rmtp: Out[Timespec]) -> Sleeping[int]:
    if which_clock not in SLEEPING_CLOCKS:
        code = EOPNOTSUPP if which_clock in CLOCKS and which_clock != CLOCK_THREAD_CPUTIME_ID else EINVAL
        raise LinuxError(code, f"clock {which_clock} is not one that can be slept on")
    now = task.clock.elapsed_ns()
    if flags & TIMER_ABSTIME:
        wake = now + rqtp.ns() - _now(task, which_clock)
        timer = task.sleeper(which_clock, HrTimerMode.ABS)
        if not (yield from sleep_until(wake, f"{task.comm}'s clock_nanosleep", timer)):
            raise LinuxError(ERESTARTNOHAND, "a signal came first")
        return 0
    wake = now + rqtp.ns()
    return (yield from _sleep(task, wake, rmtp, task.sleeper(which_clock, HrTimerMode.REL)))


def _sleep(task: Task, wake_ns: int, remaining: Out[Timespec], timer: HrTimer) -> Sleeping[int]:
    if (yield from sleep_until(wake_ns, f"{task.comm}'s nanosleep", timer)):
        return 0
    if remaining:
        remaining.write(Timespec.from_ns(max(wake_ns - task.clock.elapsed_ns(), 0)))
    raise LinuxError(EINTR, "a signal came first")


@syscall(x86_64=34)
def pause(task: Task) -> Sleeping[int]:
    yield from sleep_until(None, f"{task.comm}'s pause")
    raise LinuxError(ERESTARTNOHAND, "a signal came")


# ---- interval timers

ITIMER_SIGNALS = {ITIMER_REAL: SIGALRM, ITIMER_VIRTUAL: SIGVTALRM, ITIMER_PROF: SIGPROF}


def _interval_timer(task: Task, which: int) -> IntervalTimer:
    if which not in ITIMER_SIGNALS:
        raise LinuxError(EINVAL, f"interval timer {which} is not one of {sorted(ITIMER_SIGNALS)}")
    timer = task.interval_timers.get(which)
    if timer is None:
        process = task.process
        cpu_ns = {ITIMER_REAL: None, ITIMER_VIRTUAL: process.user_ns, ITIMER_PROF: process.cpu_ns}[which]
        hrtimer = task.kernel.hrtimers.real_timer(process.pid) if cpu_ns is None else None
        timer = task.interval_timers[which] = IntervalTimer(
            task.kernel.timers, task.clock, lambda: _expire(process, which), cpu_ns, hrtimer=hrtimer
        )
        if cpu_ns is not None:
            process.measure(timer)
    return timer


def _expire(process: Process, which: int) -> bool:
    """That of elapsed time rests until its signal is dequeued."""
    if process.threads:
        process.threads[0].kernel.tell_itimer_expired(process, which)
    _signal(process, SignalInfo(ITIMER_SIGNALS[which], SI_KERNEL))
    return which != ITIMER_REAL


def _signal(process: Process, info: SignalInfo) -> None:
    if process.threads:
        process.threads[0].kernel.signal_process(process, info)


@syscall(aarch64=102, x86_64=36)
def getitimer(task: Task, which: int, value: Out[Itimerval]) -> int:
    timer = _interval_timer(task, which)
    value.write(Itimerval(timer.interval_ns, timer.remaining_ns()))
    return 0


@syscall(aarch64=103, x86_64=38)
def setitimer(task: Task, which: int, value: OptionalIn[Itimerval], ovalue: Out[Itimerval]) -> int:
    timer = _interval_timer(task, which)
    if ovalue:
        ovalue.write(Itimerval(timer.interval_ns, timer.remaining_ns()))
    value_ns, interval_ns = (value.value_ns, value.interval_ns) if value else (0, 0)
    timer.set(value_ns, interval_ns)
    task.kernel.tell_itimer(task, which, value_ns, interval_ns)
    return 0


@syscall(x86_64=37)
def alarm(task: Task, seconds: UInt) -> int:
    timer = _interval_timer(task, ITIMER_REAL)
    left = timer.remaining_ns()
    timer.set(seconds * NANOSECONDS, 0)
    task.kernel.tell_itimer(task, ITIMER_REAL, seconds * NANOSECONDS, 0)
    return max(round(left / NANOSECONDS), 1) if left else 0


# ---- POSIX timers

SIGEVENT_SIZE = 64


@syscall(aarch64=107, x86_64=222)
def timer_create(task: Task, which_clock: int, timer_event_spec: Address, created_timer_id: Out[U32]) -> int:
    _now(task, which_clock)
    if len(task.posix_timers) >= task.limits.soft(RLIMIT_SIGPENDING):
        raise LinuxError(EAGAIN, f"{len(task.posix_timers)} timers: RLIMIT_SIGPENDING is reached")
    number = task.posix_timers.new_id()
    value, signal, notify, thread_id = number, SIGALRM, SIGEV_SIGNAL, 0
    if timer_event_spec:
        data = task.mm.read(timer_event_spec, SIGEVENT_SIZE)
        value = int.from_bytes(data[0:8], "little")
        signal = int.from_bytes(data[8:12], "little")
        notify = int.from_bytes(data[12:16], "little")
        thread_id = int.from_bytes(data[16:20], "little")
    if notify not in (SIGEV_SIGNAL, SIGEV_NONE, SIGEV_THREAD, SIGEV_THREAD_ID) or not (
        notify == SIGEV_NONE or 1 <= signal <= NSIG
    ):
        raise LinuxError(EINVAL, f"notification {notify} by signal {signal}")
    process, thread = task.process, None
    if notify == SIGEV_THREAD_ID:
        thread = task.kernel.tasks.get(thread_id)
        if thread is None or thread.process is not process:
            raise LinuxError(EINVAL, f"thread {thread_id} is none of this process")
    info = SignalInfo(signal, SI_TIMER, value=value, timer_id=number)

    def fire() -> bool:
        """If the signal is ignored, nobody will dequeue it."""
        if notify == SIGEV_NONE:
            return False
        pending = pending_of_timer(process, number)
        if pending is not None:  # it has been set anew meanwhile
            queue, sent = pending
            queue.replace(sent, replace(sent, overrun=min(sent.overrun + 1, DELAYTIMER_MAX)))
            return False
        if thread is None:
            _signal(process, info)
        else:
            thread.kernel.send_signal(thread, info)
        return pending_of_timer(process, number) is None

    cpu_ns, measured = _cpu_clock(task, which_clock) if which_clock in CPU_CLOCKS or which_clock < 0 else (None, None)
    hrtimer = None if cpu_ns is not None else task.kernel.hrtimers.create(POSIX_TIMER_FN, which_clock)
    started = None if notify == SIGEV_NONE else hrtimer  # the others are looked at when somebody asks
    timer = IntervalTimer(task.kernel.timers, task.clock, fire, cpu_ns, measured, started)
    task.posix_timers.add(number, which_clock, timer, hrtimer)
    if cpu_ns is not None:
        process.measure(timer)
    created_timer_id.write(U32(number))
    return 0


def _posix_timer(task: Task, number: int) -> PosixTimer:
    timer = task.posix_timers.get(number)
    if timer is None:
        raise LinuxError(EINVAL, f"timer {number} does not exist")
    return timer


@syscall(aarch64=110, x86_64=223)
def timer_settime(
    task: Task, timer_id: int, flags: int, new_setting: In[Itimerspec], old_setting: Out[Itimerspec]
) -> int:
    posix_timer = _posix_timer(task, timer_id)
    timer = posix_timer.timer
    before = Itimerspec(timer.interval_ns, timer.until_next_ns())
    posix_timer.overruns = 0
    value_ns, interval_ns = new_setting.value_ns, new_setting.interval_ns
    timer.cancel()
    if value_ns:
        if posix_timer.hrtimer is not None and posix_timer.hrtimer.function == POSIX_TIMER_FN:  # no alarm
            posix_timer.hrtimer.set_mode(HrTimerMode.ABS if flags & TIMER_ABSTIME else HrTimerMode.REL)
        if flags & TIMER_ABSTIME:
            value_ns -= _now(task, posix_timer.clock)
        timer.set_absolute(timer.now_ns() + value_ns, interval_ns)
    if old_setting:
        old_setting.write(before)
    return 0


@syscall(aarch64=108, x86_64=224)
def timer_gettime(task: Task, timer_id: int, setting: Out[Itimerspec]) -> int:
    timer = _posix_timer(task, timer_id).timer
    setting.write(Itimerspec(timer.interval_ns, timer.until_next_ns()))
    return 0


@syscall(aarch64=109, x86_64=225)
def timer_getoverrun(task: Task, timer_id: int) -> int:
    """Of the last signal that was delivered."""
    return _posix_timer(task, timer_id).overruns


@syscall(aarch64=111, x86_64=226)
def timer_delete(task: Task, timer_id: int) -> int:
    _posix_timer(task, timer_id)
    task.process.delete_timer(timer_id)
    return 0


@syscall(aarch64=153, x86_64=100)
def times(task: Task, tbuf: Address) -> int:
    tick_ns = NANOSECONDS // TICKS_PER_SECOND
    if tbuf:
        own, children = task.process.usage(), task.process.waited_usage
        spent = own.user_ns, own.system_ns, children.user_ns, children.system_ns
        task.mm.write(tbuf, struct.pack("<4Q", *(ns // tick_ns for ns in spent)))
    return task.clock.monotonic_ns() // tick_ns
