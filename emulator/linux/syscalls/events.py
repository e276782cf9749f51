"""Waiting for files: poll, select, epoll; and eventfd, whose file is there to be waited for."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from emulator.linux.clock_ids import CLOCK_MONOTONIC
from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.fs.destination import UserBuffer, check_range
from emulator.linux.fs.eventfd import EventCounter
from emulator.linux.fs.eventpoll import EventPoll
from emulator.linux.fs.file import (
    O_CLOEXEC,
    O_NONBLOCK,
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLNVAL,
    POLLOUT,
    POLLPRI,
    POLLRDNORM,
    POLLWRNORM,
    File,
    held,
)
from emulator.linux.process.task import Task
from emulator.linux.sched.hrtimers import HrTimer, HrTimerMode
from emulator.linux.sched.waiting import Sleeping, WaitQueue, wait_until
from emulator.linux.signals.signal import SIGSET_SIZE, UNBLOCKABLE
from emulator.linux.structures import NANOSECONDS
from emulator.linux.syscalls.table import Address, Size, UInt, syscall

POLLFD = struct.Struct("<ihh")
MOST_SLACK_NS = 100_000_000  # MAX_SLACK


def _poll_bits(task: Task, descriptor: int, wanted: int) -> int:
    """What holds of `wanted`, and POLLERR, POLLHUP, POLLNVAL. The NORM forms are the same here."""
    try:
        file = task.files.get(descriptor)
    except LinuxError:
        return POLLNVAL
    ready = file.poll()
    file.polled()
    ready |= (POLLRDNORM if ready & POLLIN else 0) | (POLLWRNORM if ready & POLLOUT else 0)
    return ready & (wanted | POLLERR | POLLHUP)


def _open_files(task: Task, descriptors: Iterable[int]) -> Iterator[File]:
    """Of these descriptors, those that are open."""
    for descriptor in descriptors:
        with suppress(LinuxError):
            yield task.files.get(descriptor)


def _queues(files: Iterable[File]) -> tuple[WaitQueue, ...]:
    """What to sleep on for them."""
    return tuple(queue for file in files for queue in file.wait_queues())


def _wait(
    task: Task,
    ready: Callable[[], bool],
    queues: Callable[[], tuple[WaitQueue, ...]],
    timeout_ns: int | None,
    mask: int | None,
    what: str,
) -> Sleeping[int]:
    """Wait under another signal mask, if there is one; the time that was left of the timeout."""
    clock, signals = task.clock, task.signals
    until_ns = None if timeout_ns is None else clock.elapsed_ns() + timeout_ns
    old = signals.blocked
    if mask is not None:
        signals.blocked = mask & ~UNBLOCKABLE

    def timer() -> HrTimer:
        return task.sleeper(CLOCK_MONOTONIC, HrTimerMode.ABS, _slack_ns(task, timeout_ns or 0))

    try:
        yield from wait_until(task, ready, queues, what, until_ns, restart=False, timer=timer if timeout_ns else None)
    except LinuxError:
        if mask is not None:
            signals.restore_mask = old  # the handler runs under the call's mask, and then the old one is back
        raise
    signals.blocked = old
    return 0 if until_ns is None else max(0, until_ns - clock.elapsed_ns())


def _slack_ns(task: Task, timeout_ns: int) -> int:
    """select_estimate_accuracy(): a thousandth of the timeout, of those who are nice a two-hundredth; 0.1 s at most."""
    least_ns = task.slack_ns
    return max(min(timeout_ns // (200 if task.nice > 0 else 1000), MOST_SLACK_NS), least_ns) if least_ns else 0


def _poll(task: Task, address: int, count: int, timeout_ns: int | None, mask: int | None) -> Sleeping[tuple[int, int]]:
    """How many are ready, and what is left of the timeout."""
    if count > task.files.limit:
        raise LinuxError(EINVAL, f"{count} descriptors; the limit is {task.files.limit}")
    watched = list(POLLFD.iter_unpack(task.mm.read(address, POLLFD.size * count))) if count else []
    answers: list[int] = []

    def look() -> bool:
        answers[:] = [0 if fd < 0 else _poll_bits(task, fd, events & 0xFFFF) for fd, events, _ in watched]
        return any(answers)

    files = list(_open_files(task, (fd for fd, _, _ in watched if fd >= 0)))
    with held(*files):  # as the poll table has them
        left_ns = yield from _wait(task, look, lambda: _queues(files), timeout_ns, mask, "poll")
    for index, answer in enumerate(answers):
        task.mm.write(address + POLLFD.size * index + 6, struct.pack("<H", answer))
    return sum(answer != 0 for answer in answers), left_ns


@syscall(x86_64=7)
def poll(task: Task, ufds: Address, nfds: UInt, timeout_msecs: int) -> Sleeping[int]:
    """poll(2)"""
    ready, _ = yield from _poll(task, ufds, nfds, timeout_msecs * 1_000_000 if timeout_msecs >= 0 else None, None)
    return ready


def _timeout_ns(task: Task, address: int, per_second: int) -> int | None:
    """struct timespec or timeval; a null pointer waits for ever."""
    if not address:
        return None
    seconds, rest = struct.unpack("<2q", task.mm.read(address, 16))
    if seconds < 0 or not 0 <= rest < per_second:
        raise LinuxError(EINVAL, f"a timeout of {seconds} s and {rest}/{per_second} s")
    return int(seconds * NANOSECONDS + rest * (NANOSECONDS // per_second))


def _write_timeout(task: Task, address: int, left_ns: int, per_second: int) -> None:
    if address:
        seconds, nanoseconds = divmod(left_ns, NANOSECONDS)
        task.mm.write(address, struct.pack("<2q", seconds, nanoseconds // (NANOSECONDS // per_second)))


def _mask(task: Task, address: int, size: int) -> int | None:
    if not address:
        return None
    if size != SIGSET_SIZE:
        raise LinuxError(EINVAL, f"a signal set of {size} bytes; it has {SIGSET_SIZE}")
    return int.from_bytes(task.mm.read(address, SIGSET_SIZE), "little")


@syscall(aarch64=73, x86_64=271)
def ppoll(task: Task, ufds: Address, nfds: UInt, tsp: Address, sigmask: Address, sigsetsize: Size) -> Sleeping[int]:
    """ppoll(2)"""
    timeout_ns = _timeout_ns(task, tsp, NANOSECONDS)
    ready, left_ns = yield from _poll(task, ufds, nfds, timeout_ns, _mask(task, sigmask, sigsetsize))
    _write_timeout(task, tsp, left_ns, NANOSECONDS)
    return ready


SELECT_BITS = (  # fs/select.c: what makes a descriptor ready in each of the three sets; NVAL if it is closed meanwhile
    POLLRDNORM | POLLIN | POLLHUP | POLLERR | POLLNVAL,
    POLLWRNORM | POLLOUT | POLLERR | POLLNVAL,
    POLLPRI | POLLNVAL,
)


def _members(bits: int) -> list[int]:
    """The descriptors of an fd_set."""
    octets = bits.to_bytes(-(-bits.bit_length() // 8), "little")
    return [8 * index + bit for index, octet in enumerate(octets) if octet for bit in range(8) if octet >> bit & 1]


def _select(
    task: Task, count: int, sets: tuple[int, int, int], timeout_ns: int | None, mask: int | None
) -> Sleeping[tuple[int, int]]:
    """How many bits are set in the answer, and what is left of the timeout."""
    if count < 0:
        raise LinuxError(EINVAL, f"{count} descriptors")
    count = min(count, task.files.limit)
    size = -(-count // 64) * 8
    asked = [int.from_bytes(task.mm.read(address, size), "little") if address and size else 0 for address in sets]
    asked = [bits & ((1 << count) - 1) for bits in asked]
    watched = [_members(bits) for bits in asked]
    files = [task.files.get(descriptor) for descriptor in sorted({each for members in watched for each in members})]
    answers = [0, 0, 0]

    def look() -> bool:
        for index, (members, wanted) in enumerate(zip(watched, SELECT_BITS, strict=True)):
            ready = [descriptor for descriptor in members if _poll_bits(task, descriptor, wanted) & wanted]
            answers[index] = sum(1 << descriptor for descriptor in ready)
        return any(answers)

    with held(*files):  # as the poll table has them
        left_ns = yield from _wait(task, look, lambda: _queues(files), timeout_ns, mask, "select")
    for address, answer in zip(sets, answers, strict=True):
        if address and size:
            task.mm.write(address, answer.to_bytes(size, "little"))
    return sum(answer.bit_count() for answer in answers), left_ns


@syscall(x86_64=23)
def select(task: Task, n: int, inp: Address, outp: Address, exp: Address, tvp: Address) -> Sleeping[int]:
    """select(2): struct timeval, which tells what was left"""
    timeout_ns = _timeout_ns(task, tvp, 1_000_000)
    ready, left_ns = yield from _select(task, n, (inp, outp, exp), timeout_ns, None)
    _write_timeout(task, tvp, left_ns, 1_000_000)
    return ready


@syscall(aarch64=72, x86_64=270)
def pselect6(
    task: Task, n: int, inp: Address, outp: Address, exp: Address, tsp: Address, sig: Address
) -> Sleeping[int]:
    """pselect6(2): the last argument points to the mask's address and size"""
    timeout_ns = _timeout_ns(task, tsp, NANOSECONDS)
    mask_address, mask_size = struct.unpack("<2Q", task.mm.read(sig, 16)) if sig else (0, 0)
    blocked = _mask(task, mask_address, mask_size)
    ready, left_ns = yield from _select(task, n, (inp, outp, exp), timeout_ns, blocked)
    _write_timeout(task, tsp, left_ns, NANOSECONDS)
    return ready


EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD = 1, 2, 3


def _event_layout(task: Task) -> struct.Struct:
    """struct epoll_event: packed on x86-64 only."""
    return struct.Struct("<IQ" if task.architecture.epoll_event_packed else "<I4xQ")


def _event_poll(task: Task, descriptor: int) -> EventPoll:
    file = task.files.get(descriptor)
    if not isinstance(file, EventPoll):
        raise LinuxError(EINVAL, f"descriptor {descriptor} is not an epoll instance")
    return file


@syscall(aarch64=20, x86_64=291)
def epoll_create1(task: Task, flags: UInt) -> int:
    """epoll_create1(2)"""
    if flags & ~O_CLOEXEC:
        raise LinuxError(EINVAL, f"epoll_create1 flags {flags:#x}")
    return task.files.install(EventPoll(), bool(flags & O_CLOEXEC))


@syscall(x86_64=213)
def epoll_create(task: Task, size: int) -> int:
    """epoll_create(2)"""
    if size <= 0:
        raise LinuxError(EINVAL, f"epoll_create of size {size}")
    return task.files.install(EventPoll())


@syscall(aarch64=21, x86_64=233)
def epoll_ctl(task: Task, epfd: int, op: int, fd: int, event: Address) -> int:
    """epoll_ctl(2)"""
    file = task.files.get(fd)
    watcher = _event_poll(task, epfd)
    if op == EPOLL_CTL_DEL:
        watcher.remove(fd, file)
        return 0
    if op not in (EPOLL_CTL_ADD, EPOLL_CTL_MOD):
        raise LinuxError(EINVAL, f"epoll_ctl operation {op} is not one of 1..3")
    layout = _event_layout(task)
    events, data = layout.unpack(task.mm.read(event, layout.size))
    if op == EPOLL_CTL_ADD:
        watcher.add(fd, file, events, data)
    else:
        watcher.modify(fd, file, events, data)
    return 0


def _epoll_wait(
    task: Task, instance: int, events: int, limit: int, timeout_ns: int | None, mask: int | None
) -> Sleeping[int]:
    if limit <= 0:
        raise LinuxError(EINVAL, f"room for {limit} events")
    layout = _event_layout(task)
    check_range(task.mm, events, limit * layout.size)
    watcher = _event_poll(task, instance)
    with held(watcher):
        yield from _wait(task, watcher.ready, watcher.wait_queues, timeout_ns, mask, "epoll_wait")
        return watcher.take(layout, UserBuffer(task.mm, events, limit * layout.size))


@syscall(x86_64=232)
def epoll_wait(task: Task, epfd: int, events: Address, maxevents: int, timeout: int) -> Sleeping[int]:
    """epoll_wait(2)"""
    return _epoll_wait(task, epfd, events, maxevents, timeout * 1_000_000 if timeout >= 0 else None, None)


@syscall(aarch64=22, x86_64=281)
def epoll_pwait(
    task: Task, epfd: int, events: Address, maxevents: int, timeout: int, sigmask: Address, sigsetsize: Size
) -> Sleeping[int]:
    """epoll_pwait(2)"""
    timeout_ns = timeout * 1_000_000 if timeout >= 0 else None
    return _epoll_wait(task, epfd, events, maxevents, timeout_ns, _mask(task, sigmask, sigsetsize))


@syscall(aarch64=441, x86_64=441)
def epoll_pwait2(
    task: Task, epfd: int, events: Address, maxevents: int, timeout: Address, sigmask: Address, sigsetsize: Size
) -> Sleeping[int]:
    """epoll_pwait2(2)"""
    timeout_ns = _timeout_ns(task, timeout, NANOSECONDS)
    return _epoll_wait(task, epfd, events, maxevents, timeout_ns, _mask(task, sigmask, sigsetsize))


EFD_SEMAPHORE = 1


@syscall(aarch64=19, x86_64=290)
def eventfd2(task: Task, count: UInt, flags: UInt) -> int:
    """eventfd2(2)"""
    if flags & ~(O_CLOEXEC | O_NONBLOCK | EFD_SEMAPHORE):
        raise LinuxError(EINVAL, f"eventfd flags {flags:#x}")
    file = EventCounter(count, flags & O_NONBLOCK, bool(flags & EFD_SEMAPHORE))
    return task.files.install(file, bool(flags & O_CLOEXEC))


@syscall(x86_64=284)
def eventfd(task: Task, count: UInt) -> int:
    """eventfd(2)"""
    return eventfd2(task, count, 0)
