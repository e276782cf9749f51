"""Pipes, poll, select, epoll and eventfd in a machine with one task: time passes only by waiting."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest

from emulator.linux.errors import EAGAIN, EEXIST, EINVAL, ELOOP, ENOENT, EPERM, EPIPE, ERESTARTNOHAND, ERESTARTSYS
from emulator.linux.signals.signal import SIGPIPE

BUFFER = 0x4000
O_NONBLOCK = 0o4000
POLLIN, POLLOUT, POLLERR, POLLHUP, POLLNVAL = 1, 4, 8, 16, 32


@pytest.fixture
def pipe(program) -> tuple[int, int]:
    """(reading, writing) descriptor"""
    assert program("pipe2", BUFFER, 0) == 0
    return struct.unpack("<ii", program.memory.read(BUFFER, 8))


def test_bytes_come_out_in_order(program, pipe):
    reading, writing = pipe
    assert program("write", writing, program.data(b"abc"), 3) == 3
    assert program("ioctl", reading, 0x541B, BUFFER + 64) == 0  # FIONREAD
    assert program.memory.read(BUFFER + 64, 4) == b"\3\0\0\0"
    assert program("read", reading, BUFFER, 2) == 2
    assert program("read", reading, BUFFER + 2, 9) == 1
    assert program.memory.read(BUFFER, 3) == b"abc"


def test_the_end_of_a_pipe_is_when_nobody_can_write(program, pipe):
    reading, writing = pipe
    program("close", writing)
    assert program("read", reading, BUFFER, 1) == 0


def test_a_pipe_without_writers_is_opened_again_at_once(program, pipe):
    reading, writing = pipe
    program("write", writing, program.data(b"abc"), 3)
    program("close", writing)
    task = program.guest.task
    again = task.files.get(reading).pipe.open_file(task, 0, "")  # as of /proc/self/fd/N
    assert not again.waits_for_other_end()
    assert again.poll() == POLLIN | POLLHUP


def test_a_write_that_nobody_can_read_is_sigpipe(program, pipe):
    reading, writing = pipe
    program("close", reading)
    assert program("write", writing, BUFFER, 1) == -EPIPE
    assert [info.signal for info in program.guest.task.kernel.signals] == [SIGPIPE]


def test_whether_anybody_reads_is_asked_before_the_buffer_is_looked_at(program, pipe):
    """As Linux 6.18 does; of no bytes nothing is asked."""
    reading, writing = pipe
    program("close", reading)
    nowhere = 1 << 40
    assert program("write", writing, nowhere, 0) == 0
    assert program.guest.task.kernel.signals == []
    assert program("write", writing, nowhere, 5) == -EPIPE
    assert [info.signal for info in program.guest.task.kernel.signals] == [SIGPIPE]


def test_an_empty_pipe(program, pipe):
    reading, _ = pipe
    assert program("read", reading, BUFFER, 1) == -ERESTARTSYS  # the kernel has ended the task, as its message says
    assert program.guest.messages == ["a read of pipe:[1000] waits for what nobody can bring"]
    program("fcntl", reading, 4, O_NONBLOCK)
    assert program("read", reading, BUFFER, 1) == -EAGAIN


def test_a_full_pipe(program, pipe):
    _, writing = pipe
    program("fcntl", writing, 4, O_NONBLOCK)
    assert program("write", writing, 0x1000, 60_000) == 60_000
    assert program("write", writing, 0x1000, 4097) == 4097  # more than PIPE_BUF may be cut: 5536 bytes are free
    assert program("write", writing, 0x1000, 4096) == -EAGAIN  # PIPE_BUF bytes go whole or not at all
    assert program("write", writing, 0x1000, 5000) == 65_536 - 64_097


def poll(program, *wanted: tuple[int, int], timeout_ms: int = 0) -> tuple[int, list[int]]:
    address = program.data(b"".join(struct.pack("<ihh", fd, events, 0) for fd, events in wanted))
    timeout = program.data(struct.pack("<qq", timeout_ms // 1000, timeout_ms % 1000 * 1_000_000), 0x6000)
    result = program("ppoll", address, len(wanted), 0 if timeout_ms < 0 else timeout, 0, 8)
    return result, [
        struct.unpack_from("<h", program.memory.read(address + 8 * i + 6, 2))[0] for i in range(len(wanted))
    ]


def test_poll_tells_what_is_ready(program, pipe):
    reading, writing = pipe
    assert poll(program, (reading, POLLIN), (writing, POLLOUT), (-1, POLLIN), (77, POLLIN)) == (2, [0, 4, 0, POLLNVAL])
    program("write", writing, BUFFER, 1)
    program("close", writing)
    assert poll(program, (reading, POLLIN)) == (1, [POLLIN | POLLHUP])


def test_a_timeout_passes_guest_time_only(program, pipe):
    reading, _ = pipe
    clock = program.guest.task.clock
    assert poll(program, (reading, POLLIN), timeout_ms=1500) == (0, [0])
    assert clock.elapsed_ns() == 1_500_000_000
    assert struct.unpack("<qq", program.memory.read(0x6000, 16)) == (0, 0)  # nothing is left of it
    assert poll(program, timeout_ms=250)[0] == 0
    assert clock.elapsed_ns() == 1_750_000_000


def test_poll_for_ever_for_what_cannot_come(program, pipe):
    reading, _ = pipe
    assert poll(program, (reading, POLLIN), timeout_ms=-1)[0] == -ERESTARTNOHAND
    assert program.guest.messages == ["poll waits for what nobody can bring"]


def test_select(program, pipe):
    reading, writing = pipe
    program("write", writing, BUFFER, 1)
    sets = program.data(struct.pack("<QQ", 1 << reading, 1 << writing))
    assert program("pselect6", writing + 1, sets, sets + 8, 0, 0, 0) == 2
    assert struct.unpack("<QQ", program.memory.read(sets, 16)) == (1 << reading, 1 << writing)
    program("read", reading, BUFFER + 64, 1)
    zero = program.data(bytes(16), 0x6000)
    assert program("pselect6", writing + 1, sets, sets + 8, 0, zero, 0) == 1
    assert struct.unpack("<QQ", program.memory.read(sets, 16)) == (0, 1 << writing)
    program.data(struct.pack("<Q", 1 << 60), sets)
    assert program("pselect6", 61, sets, 0, 0, zero, 0) == -9  # EBADF


EPOLLIN, EPOLLET, EPOLLONESHOT = 1, 1 << 31, 1 << 30


def wait(program, instance: int, limit: int = 8) -> list[tuple[int, int]]:
    count = program("epoll_pwait", instance, BUFFER, limit, 0, 0, 8)
    return [struct.unpack("<I4xQ", program.memory.read(BUFFER + 16 * i, 16)) for i in range(count)]


def watch(program, instance: int, descriptor: int, events: int, operation: int = 1, data: int = 7) -> int:
    return program(
        "epoll_ctl", instance, operation, descriptor, program.data(struct.pack("<I4xQ", events, data), 0x6000)
    )


@pytest.mark.parametrize(("events", "told"), [(EPOLLIN, 2), (EPOLLIN | EPOLLET, 1), (EPOLLIN | EPOLLONESHOT, 1)])
def test_epoll_levels_edges_and_single_shots(program, pipe, events, told):
    reading, writing = pipe
    instance = program("epoll_create1", 0)
    assert watch(program, instance, reading, events) == 0
    assert wait(program, instance) == []
    program("write", writing, BUFFER, 1)
    answers = wait(program, instance) + wait(program, instance)
    assert answers == [(EPOLLIN, 7)] * told


def test_epoll_lists_are_kept_in_order(program, pipe, guest):
    reading, writing = pipe
    instance = program("epoll_create1", 0)
    regular = guest.open("file", 0o102)
    assert watch(program, instance, regular, EPOLLIN) == -EPERM
    assert watch(program, instance, instance, EPOLLIN) == -EINVAL
    assert watch(program, instance, reading, EPOLLIN) == 0
    assert watch(program, instance, reading, EPOLLIN) == -EEXIST
    assert watch(program, instance, writing, POLLOUT, operation=3) == -ENOENT
    assert watch(program, instance, writing, POLLOUT, data=9) == 0
    assert wait(program, instance) == [(POLLOUT, 9)]
    assert watch(program, instance, writing, POLLOUT, operation=2) == 0
    assert wait(program, instance) == []


def test_epoll_forgets_what_is_closed(program, pipe):
    reading, writing = pipe
    instance = program("epoll_create1", 0)
    watch(program, instance, reading, EPOLLIN)
    program("close", reading)
    program("close", writing)
    assert wait(program, instance) == []


@pytest.mark.parametrize("upward", [True, False])
def test_epoll_instances_watch_each_other_four_deep(program, upward):
    """As measured on Linux: the fifth is one too many, from whichever end it begins."""
    instances = [program("epoll_create1", 0) for _ in range(7)]
    pairs = list(pairwise(instances))
    results = [watch(program, *(pair if upward else pair[::-1]), EPOLLIN) for pair in pairs]
    assert results == [0, 0, 0, 0, -ELOOP, 0]
    assert watch(program, *(pairs[0][::-1] if upward else pairs[0]), EPOLLIN) == -ELOOP  # in a circle
    event = program("eventfd2", 1, 0)
    ends = instances[:5] if upward else instances[4::-1]
    assert watch(program, ends[-1], event, EPOLLIN) == 0
    assert wait(program, ends[0]) == [(EPOLLIN, 7)]  # through all of them
    program("close", ends[2])
    assert wait(program, ends[0]) == []


def test_epoll_instances_are_not_a_maze(program):
    """Every one of a level watches all of the next: the ways through them multiply, and come to an end."""
    levels = [[program("epoll_create1", 0) for _ in range(11)] for _ in range(5)]
    results = [
        watch(program, above, below, EPOLLIN) for one, other in pairwise(levels) for above in one for below in other
    ]
    assert set(results) == {0, -EINVAL}
    assert results.index(-EINVAL) >= 3 * 11 * 11


@pytest.mark.parametrize(("flags", "reads"), [(O_NONBLOCK, [5]), (O_NONBLOCK | 1, [1, 1, 1, 1, 1])])
def test_eventfd_counts_and_is_a_semaphore_on_demand(program, flags, reads):
    fd = program("eventfd2", 2, flags)
    assert program("write", fd, program.data(struct.pack("<Q", 3)), 8) == 8
    values = []
    while program("read", fd, BUFFER, 8) == 8:
        values.append(struct.unpack("<Q", program.memory.read(BUFFER, 8))[0])
    assert values == reads
    assert program("read", fd, BUFFER, 8) == -EAGAIN
    assert program("read", fd, BUFFER, 4) == -EINVAL
