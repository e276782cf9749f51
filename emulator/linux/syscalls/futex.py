"""futex(2): by command, a row each."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from emulator.linux.clock_ids import CLOCK_MONOTONIC, CLOCK_REALTIME
from emulator.linux.errors import EAGAIN, EINVAL, ENOSYS, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.sched.futexes import ALL_BITS, Futexes, Key
from emulator.linux.sched.hrtimers import HrTimer, HrTimerMode
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.structures import Timespec
from emulator.linux.syscalls.table import Address, OptionalIn, Support, UInt, syscall
from emulator.linux.twos_complement import INT, signed

# uapi/linux/futex.h
FUTEX_WAIT, FUTEX_WAKE, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP = 0, 1, 3, 4, 5
FUTEX_LOCK_PI, FUTEX_UNLOCK_PI, FUTEX_TRYLOCK_PI = 6, 7, 8
FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET, FUTEX_LOCK_PI2 = 9, 10, 13
FUTEX_PRIVATE, FUTEX_CLOCK_REALTIME = 128, 256
FUTEX_COMMAND = 0x7F
FUTEX_OP_SHIFT = 8  # in the operation: the argument is a bit's number
FUTEX_OPERATIONS: tuple[Callable[[int, int], int], ...] = (  # FUTEX_OP_SET, ADD, OR, ANDN, XOR
    lambda old, argument: argument,
    lambda old, argument: old + argument,
    lambda old, argument: old | argument,
    lambda old, argument: old & ~argument,
    lambda old, argument: old ^ argument,
)
FUTEX_COMPARISONS: tuple[Callable[[int, int], bool], ...] = (  # FUTEX_OP_CMP_EQ, NE, LT, LE, GT, GE
    lambda old, argument: old == argument,
    lambda old, argument: old != argument,
    lambda old, argument: old < argument,
    lambda old, argument: old <= argument,
    lambda old, argument: old > argument,
    lambda old, argument: old >= argument,
)


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call."""

    task: Task
    address: int
    operation: int
    value: int
    fourth: int  # the timeout's address, or a number
    other: int  # address
    last: int

    @property
    def private(self) -> bool:
        return bool(self.operation & FUTEX_PRIVATE)

    @property
    def futexes(self) -> Futexes:
        return self.task.kernel.futexes

    def key(self) -> Key:
        return Futexes.key(self.task.mm, self.address, self.private)

    def other_key(self) -> Key:
        return Futexes.key(self.task.mm, self.other, self.private)

    def until_ns(self, *, absolute: bool, realtime: bool) -> int | None:
        """When the wait ends, on the machine's clock."""
        if not self.fourth:
            return None
        ns = Timespec.unpack(self.task.mm.read(self.fourth, Timespec.SIZE)).ns()
        clock = self.task.clock
        if not absolute:
            return clock.elapsed_ns() + ns
        return clock.elapsed_at(ns, realtime=realtime)

    def timer(self, *, realtime: bool, slack_ns: int | None = None) -> HrTimer | None:
        """Of that wait, whether or not it comes to one: futex_setup_timer()."""
        if not self.fourth:
            return None
        return self.task.sleeper(CLOCK_REALTIME if realtime else CLOCK_MONOTONIC, HrTimerMode.ABS, slack_ns)


Answer = int | Sleeping[int]


def _wait(request: Request, bitset: int, absolute: bool) -> Answer:
    if not bitset:
        raise LinuxError(EINVAL, "a futex wait for no bit")
    realtime = bool(request.operation & FUTEX_CLOCK_REALTIME)
    until_ns = request.until_ns(absolute=absolute, realtime=realtime)
    timer = request.timer(realtime=realtime)
    key = request.key()
    return request.futexes.wait(request.task, key, request.value, request.address, bitset, until_ns, timer)


def _wake(request: Request, bitset: int) -> Answer:
    if not bitset:
        raise LinuxError(EINVAL, "a futex wake of no bit")
    return request.futexes.wake(request.key(), signed(request.value, INT), bitset)


def _requeue(request: Request) -> Answer:
    most_woken, most_moved = signed(request.value, INT), signed(request.fourth, INT)
    if most_woken < 0 or most_moved < 0:
        raise LinuxError(EINVAL, f"a futex requeue of {most_woken} and {most_moved}")
    key, target = request.key(), request.other_key()
    compared = request.operation & FUTEX_COMMAND == FUTEX_CMP_REQUEUE
    if compared and request.task.mm.read_u32(request.address) != request.last:
        raise LinuxError(EAGAIN, "the futex has changed")
    return request.futexes.requeue(key, target, most_woken, most_moved)


def _wake_op(request: Request) -> Answer:
    """Change the word at `other`, and wake who waits there too, if it was such. futex_atomic_op_inuser."""
    key, other_key, encoded, mm = request.key(), request.other_key(), request.last, request.task.mm
    operation, comparison = encoded >> 28, encoded >> 24 & 0xF
    argument, compared = signed(encoded >> 12, 12), signed(encoded, 12)
    if operation & FUTEX_OP_SHIFT:
        operation, argument = operation & ~FUTEX_OP_SHIFT, 1 << (argument & 31)
    if operation >= len(FUTEX_OPERATIONS):
        raise LinuxError(ENOSYS, f"FUTEX_WAKE_OP {operation}")
    old = mm.read_u32(request.other)
    mm.write(request.other, (FUTEX_OPERATIONS[operation](old, argument) & 0xFFFF_FFFF).to_bytes(4, "little"))
    if comparison >= len(FUTEX_COMPARISONS):
        raise LinuxError(ENOSYS, f"FUTEX_WAKE_OP with comparison {comparison}")
    woken = request.futexes.wake(key, signed(request.value, INT))
    if FUTEX_COMPARISONS[comparison](signed(old, INT), compared):
        woken += request.futexes.wake(other_key, signed(request.fourth, INT))
    return woken


def _lock(request: Request) -> Answer:
    """LOCK_PI's deadline is of CLOCK_REALTIME, LOCK_PI2's of the clock that the operation says."""
    command = request.operation & FUTEX_COMMAND
    wait = command != FUTEX_TRYLOCK_PI
    realtime = command == FUTEX_LOCK_PI or bool(request.operation & FUTEX_CLOCK_REALTIME)
    until_ns = request.until_ns(absolute=True, realtime=realtime) if wait else None
    timer = request.timer(realtime=realtime, slack_ns=0) if wait else None
    exists = request.task.kernel.tasks.__contains__
    return request.futexes.lock(request.task, request.key(), request.address, until_ns, exists, timer, wait=wait)


COMMANDS: dict[int, Callable[[Request], Answer]] = {
    FUTEX_WAIT: lambda request: _wait(request, ALL_BITS, absolute=False),
    FUTEX_WAIT_BITSET: lambda request: _wait(request, request.last, absolute=True),
    FUTEX_WAKE: lambda request: _wake(request, ALL_BITS),
    FUTEX_WAKE_BITSET: lambda request: _wake(request, request.last),
    FUTEX_REQUEUE: _requeue,
    FUTEX_CMP_REQUEUE: _requeue,
    FUTEX_WAKE_OP: _wake_op,
    FUTEX_LOCK_PI: _lock,
    FUTEX_LOCK_PI2: _lock,
    FUTEX_TRYLOCK_PI: _lock,
    FUTEX_UNLOCK_PI: lambda request: request.futexes.unlock(request.task, request.key(), request.address),
}
# Of those the ones in which FUTEX_CLOCK_REALTIME means something
TIMED = (FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI2)


FUTEX2_SIZE, FUTEX2_32 = 3, 2  # of a word, in its flags; the other sizes are not in Linux either
MOST_WORDS = 128  # FUTEX_WAITV_MAX
WAITV = struct.Struct("<QQII")  # struct futex_waitv: value, address, flags, reserved


@syscall(aarch64=449, x86_64=449)
def futex_waitv(
    task: Task, waiters: Address, nr_futexes: UInt, flags: UInt, timeout: OptionalIn[Timespec], clockid: int
) -> Sleeping[int]:
    """futex_waitv(2): wait for several words. The timeout is absolute."""
    if flags or not 1 <= nr_futexes <= MOST_WORDS or not waiters:
        raise LinuxError(EINVAL, f"futex_waitv of {nr_futexes} words, flags {flags:#x}")
    until_ns = timer = None
    if timeout is not None:
        if clockid not in (CLOCK_REALTIME, CLOCK_MONOTONIC):
            raise LinuxError(EINVAL, f"futex_waitv on clock {clockid}")
        until_ns = task.clock.elapsed_at(timeout.ns(), realtime=clockid == CLOCK_REALTIME)
        timer = task.sleeper(clockid, HrTimerMode.ABS)
    words = []
    for value, address, own_flags, reserved in WAITV.iter_unpack(task.mm.read(waiters, nr_futexes * WAITV.size)):
        if own_flags & ~(FUTEX2_SIZE | FUTEX_PRIVATE) or own_flags & FUTEX2_SIZE != FUTEX2_32 or reserved:
            raise LinuxError(EINVAL, f"a futex of flags {own_flags:#x}")
        if value >> 32:
            raise LinuxError(EINVAL, f"{value:#x} is more than 32 bits")
        words.append((Futexes.key(task.mm, address, bool(own_flags & FUTEX_PRIVATE)), value, address))
    return task.kernel.futexes.wait_any(task, words, until_ns, timer)


@syscall(
    aarch64=98,
    x86_64=202,
    support=Support.PARTIAL,
    note="owners inherit no priority; no requeueing to words that tell their owner",
)
def futex(
    task: Task, uaddr: Address, op: int, val: UInt, utime: Address, uaddr2: Address, val3: UInt
) -> int | Sleeping[int]:
    command = op & FUTEX_COMMAND
    call = COMMANDS.get(command)
    if call is None:
        task.kernel.name_once(f"futex operation {command} is not modelled: ENOSYS")
        raise LinuxError(ENOSYS, f"futex operation {command}")
    if op & FUTEX_CLOCK_REALTIME and command not in TIMED:
        raise LinuxError(ENOSYS, f"futex operation {command} on CLOCK_REALTIME")
    return call(Request(task, uaddr, op, val, utime, uaddr2, val3))
