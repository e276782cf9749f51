"""Sockets in a machine with one task: connections, pairs, datagrams, messages with files, how each of them ends."""

from __future__ import annotations

import struct

import pytest

from emulator.linux.errors import (
    EADDRINUSE,
    EADDRNOTAVAIL,
    EAFNOSUPPORT,
    EAGAIN,
    ECONNREFUSED,
    ECONNRESET,
    EINPROGRESS,
    EINVAL,
    EISCONN,
    EMSGSIZE,
    ENETUNREACH,
    ENOPROTOOPT,
    ENOTCONN,
    ENOTSOCK,
    EPIPE,
    ERESTARTSYS,
)
from emulator.linux.net.socket_messages import FILE_BYTES
from emulator.linux.signals.signal import SIGPIPE

BUFFER, ADDRESS, SIZE = 0x4000, 0x6000, 0x6100
UNIX, INET = 1, 2
STREAM, DGRAM, SEQPACKET, NONBLOCK = 1, 2, 5, 0o4000
SOL_SOCKET, SO_REUSEADDR, SO_ERROR, SO_PEERCRED, SO_RCVBUF = 1, 2, 4, 17, 8
POLLIN, POLLOUT, POLLERR, POLLHUP, POLLRDHUP = 1, 4, 8, 16, 0x2000
MSG_PEEK, MSG_TRUNC, MSG_DONTWAIT, MSG_NOSIGNAL = 2, 0x20, 0x40, 0x4000


def inet(port: int, host: str = "127.0.0.1") -> bytes:
    return struct.pack("<H", INET) + struct.pack(">H", port) + bytes(int(part) for part in host.split(".")) + bytes(8)


def unix(name: bytes) -> bytes:
    return struct.pack("<H", UNIX) + name


def with_address(program, call: str, descriptor: int, address: bytes) -> int:
    return program(call, descriptor, program.data(address, ADDRESS), len(address))


def name_of(program, descriptor: int, call: str = "getsockname") -> bytes:
    program.data(struct.pack("<I", 128), SIZE)
    assert program(call, descriptor, ADDRESS, SIZE) == 0
    return program.memory.read(ADDRESS, struct.unpack("<I", program.memory.read(SIZE, 4))[0])


def port_of(program, descriptor: int) -> int:
    return int.from_bytes(name_of(program, descriptor)[2:4], "big")


def listening(program, address: bytes | None = None, backlog: int = 4) -> int:
    descriptor = program("socket", UNIX if address is not None and address[0] == UNIX else INET, STREAM | NONBLOCK, 0)
    if address is not None:
        assert with_address(program, "bind", descriptor, address) == 0
    assert program("listen", descriptor, backlog) == 0
    return descriptor


def connected(program, family: int = INET) -> tuple[int, int]:
    """(client, server)"""
    address = unix(b"\0server") if family == UNIX else inet(8080)
    listener = listening(program, address)
    client = program("socket", family, STREAM, 0)
    assert with_address(program, "connect", client, address) == 0
    server = program("accept4", listener, 0, 0, 0)
    program("close", listener)
    return client, server


def pair(program, kind: int = STREAM) -> tuple[int, int]:
    assert program("socketpair", UNIX, kind, 0, BUFFER) == 0
    return struct.unpack("<ii", program.memory.read(BUFFER, 8))


def send(program, descriptor: int, data: bytes, flags: int = MSG_NOSIGNAL | MSG_DONTWAIT) -> int:
    return program("sendto", descriptor, program.data(data), len(data), flags, 0, 0)


def receive(program, descriptor: int, size: int = 4096, flags: int = MSG_DONTWAIT) -> bytes | int:
    count = program("recvfrom", descriptor, BUFFER, size, flags, 0, 0)
    return count if count < 0 else program.memory.read(BUFFER, min(count, size))


def poll(program, descriptor: int, wanted: int = POLLIN | POLLOUT | POLLRDHUP) -> int:
    address = program.data(struct.pack("<ihh", descriptor, wanted, 0))
    program("ppoll", address, 1, program.data(bytes(16), 0x6200), 0, 8)
    return struct.unpack("<H", program.memory.read(address + 6, 2))[0]


def option(program, descriptor: int, number: int, size: int = 4) -> bytes:
    program.data(struct.pack("<I", size), SIZE)
    assert program("getsockopt", descriptor, SOL_SOCKET, number, BUFFER, SIZE) == 0
    return program.memory.read(BUFFER, size)


@pytest.mark.parametrize("family", [UNIX, INET])
def test_a_connection_carries_bytes_both_ways_and_ends(program, family):
    client, server = connected(program, family)
    assert send(program, client, b"ab") == 2
    assert program("write", client, program.data(b"c"), 1) == 1
    assert receive(program, server, 2, MSG_PEEK) == b"ab"
    assert receive(program, server) == b"abc"
    assert receive(program, server) == -EAGAIN
    assert send(program, server, b"yes") == 3
    assert program("shutdown", client, 1) == 0
    assert receive(program, server) == b""  # the end
    assert poll(program, server) == POLLIN | POLLOUT | POLLRDHUP
    assert receive(program, client) == b"yes"  # one half is still open
    assert send(program, client, b"x") == -EPIPE
    program("close", client)
    assert send(program, server, b"x") == (-EPIPE if family == UNIX else 1)  # TCP: answered with a reset
    assert send(program, server, b"x") == -EPIPE


def test_a_write_that_nobody_will_read_is_sigpipe(program):
    one, other = pair(program)
    program("close", other)
    assert program("write", one, BUFFER, 1) == -EPIPE
    assert send(program, one, b"x") == -EPIPE  # MSG_NOSIGNAL
    assert [info.signal for info in program.guest.task.kernel.signals] == [SIGPIPE]
    assert poll(program, one) == POLLIN | POLLOUT | POLLRDHUP | POLLHUP


@pytest.mark.parametrize("family", [UNIX, INET])
def test_a_close_with_unread_bytes_resets_the_connection(program, family):
    client, server = connected(program, family)
    send(program, client, b"unread")
    program("close", server)
    assert poll(program, client) & POLLERR
    assert receive(program, client) == -ECONNRESET
    assert receive(program, client) == b""


def test_names_of_both_ends(program):
    client, server = connected(program)
    assert name_of(program, server) == inet(8080) == name_of(program, client, "getpeername")
    assert name_of(program, client) == name_of(program, server, "getpeername")
    assert port_of(program, client) == 32_768  # the first that is given, on every machine
    one, other = pair(program)
    assert name_of(program, one) == name_of(program, other, "getpeername") == unix(b"")
    program.data(struct.pack("<I", 4), SIZE)
    assert program("getsockname", server, ADDRESS, SIZE) == 0  # cut, with the length in full
    assert program.memory.read(SIZE, 4) == struct.pack("<I", 16)


def test_who_does_not_find_anybody(program):
    client = program("socket", INET, STREAM, 0)
    assert with_address(program, "connect", client, inet(1)) == -ECONNREFUSED
    assert with_address(program, "connect", client, inet(80, "192.0.2.1")) == -ENETUNREACH
    network = "the machine has no network but its own 127.0.0.0/8 and ::1 (ENETUNREACH)"
    assert program.guest.messages == [f"192.0.2.1:80: {network}"]
    assert with_address(program, "bind", client, inet(80, "192.0.2.1")) == -EADDRNOTAVAIL
    assert program("getpeername", client, ADDRESS, program.data(b"\x10\0\0\0", SIZE)) == -ENOTCONN
    assert program("socket", 17, STREAM, 0) == -EAFNOSUPPORT
    assert program("listen", program.guest.open("file", 0o102), 1) == -ENOTSOCK


def test_a_connect_that_does_not_wait_is_in_progress(program):
    listening(program, inet(8080))
    client = program("socket", INET, STREAM | NONBLOCK, 0)
    assert with_address(program, "connect", client, inet(8080)) == -EINPROGRESS
    assert poll(program, client) == POLLOUT
    assert with_address(program, "connect", client, inet(8080)) == 0
    assert with_address(program, "connect", client, inet(8080)) == -EISCONN
    other = program("socket", INET, STREAM | NONBLOCK, 0)
    assert with_address(program, "connect", other, inet(1)) == -EINPROGRESS
    assert poll(program, other) & (POLLERR | POLLHUP) == POLLERR | POLLHUP
    assert option(program, other, SO_ERROR) == struct.pack("<i", ECONNREFUSED)
    assert option(program, other, SO_ERROR) == bytes(4)  # told once


def test_an_address_has_one_listener(program):
    first = listening(program, inet(8080))
    second = program("socket", INET, STREAM, 0)
    program("setsockopt", second, SOL_SOCKET, SO_REUSEADDR, program.data(struct.pack("<i", 1)), 4)
    assert with_address(program, "bind", second, inet(8080)) == -EADDRINUSE
    assert with_address(program, "bind", second, inet(8080, "127.0.0.2")) == 0  # another address
    program("close", first)
    assert with_address(program, "bind", program("socket", INET, STREAM, 0), inet(8080)) == 0


def test_local_sockets_have_paths_and_abstract_names(program):
    path = unix(str(program.guest.cwd / "s").encode() + b"\0")
    listener = listening(program, path)
    assert program.guest.names(program.guest.cwd) == ["s"]
    assert program.guest.stat("s").mode == 0o140755
    assert not list(program.guest.cwd.iterdir())  # the host has nothing
    assert name_of(program, listener) == path
    assert with_address(program, "bind", program("socket", UNIX, STREAM, 0), path) == -EADDRINUSE
    assert with_address(program, "connect", program("socket", UNIX, STREAM, 0), path) == 0
    program("close", listener)
    assert with_address(program, "connect", program("socket", UNIX, STREAM, 0), path) == -ECONNREFUSED
    program.guest.tree.remove(program.guest.start(), "s")
    assert program.guest.names(program.guest.cwd) == []
    unnamed = program("socket", UNIX, STREAM, 0)
    assert with_address(program, "bind", unnamed, unix(b"")) == 0
    assert name_of(program, unnamed) == unix(b"\x0000001")


def test_a_backlog_that_is_full(program):
    listener = listening(program, unix(b"\0server"), backlog=0)
    clients = [program("socket", UNIX, STREAM | NONBLOCK, 0) for _ in range(2)]
    assert with_address(program, "connect", clients[0], unix(b"\0server")) == 0
    assert with_address(program, "connect", clients[1], unix(b"\0server")) == -EAGAIN
    assert program("accept4", listener, 0, 0, 0) > 0
    assert with_address(program, "connect", clients[1], unix(b"\0server")) == 0
    program("close", listener)
    assert receive(program, clients[1]) == -ECONNRESET  # never accepted
    assert program("accept4", clients[0], 0, 0, 0) == -EINVAL


def test_a_full_stream_takes_what_it_has_room_for(program):
    one, other = pair(program, STREAM | NONBLOCK)
    program("setsockopt", other, SOL_SOCKET, SO_RCVBUF, program.data(struct.pack("<i", 4096)), 4)
    assert option(program, other, SO_RCVBUF) == struct.pack("<i", 8192)  # doubled, as Linux does
    sent = program("write", one, 0x1000, 20_000)
    assert 0 < sent <= 8192
    while (more := program("write", one, 0x1000, 20_000)) > 0:
        sent += more
    assert more == -EAGAIN
    assert poll(program, one) == 0
    assert len(receive(program, other, 20_000)) == sent
    assert poll(program, one) == POLLOUT


@pytest.mark.parametrize("kind", [DGRAM, SEQPACKET])
def test_messages_keep_their_borders(program, kind):
    one, other = pair(program, kind)
    for text in (b"first", b"", b"third"):
        assert send(program, one, text) == len(text)
    assert receive(program, other, 2, MSG_TRUNC | MSG_DONTWAIT) == b"fi"  # the rest is dropped
    assert receive(program, other) == b""
    assert receive(program, other) == b"third"
    assert receive(program, other) == -EAGAIN
    assert program("write", one, 0x1000, 60_000) == 60_000
    assert program("recvfrom", other, BUFFER, 1, MSG_TRUNC, 0, 0) == 60_000


def test_udp_tells_the_sender_and_drops_what_nobody_wants(program):
    server, client = program("socket", INET, DGRAM, 0), program("socket", INET, DGRAM, 0)
    assert with_address(program, "bind", server, inet(53)) == 0
    to = program.data(inet(53), ADDRESS)
    assert program("sendto", client, program.data(b"query"), 5, 0, to, 16) == 5
    program.data(struct.pack("<I", 16), SIZE)
    assert program("recvfrom", server, BUFFER, 100, 0, ADDRESS, SIZE) == 5
    assert program.memory.read(ADDRESS, 16) == inet(port_of(program, client))
    assert program("sendto", client, BUFFER, 5, 0, program.data(inet(54), ADDRESS), 16) == 5
    assert receive(program, client) == -EAGAIN
    assert with_address(program, "connect", client, inet(54)) == 0
    assert send(program, client, b"x") == 1
    assert receive(program, client) == -ECONNREFUSED
    assert program("sendto", client, 0x1000, 65_508, 0, 0, 0) == -EMSGSIZE  # 65,535 less the headers of IP and UDP


def message(program, text: bytes, control: bytes, room: int = 64) -> int:
    """struct msghdr at ADDRESS"""
    program.data(text.ljust(room, b"\0"), 0x5000)
    program.data(control, 0x5800)
    program.data(struct.pack("<QQ", 0x5000, len(text) or room), 0x5400)
    header = struct.pack("<QI4xQQQQi4x", 0, 0, 0x5400, 1, 0x5800 if control else 0, len(control), 0)
    return program.data(header, ADDRESS)


def test_open_files_travel_in_messages(program):
    one, other = pair(program)
    file = program.guest.open("file", 0o102)
    control = struct.pack("<Qiii", 20, SOL_SOCKET, 1, file) + bytes(4)  # SCM_RIGHTS
    assert program("sendmsg", one, message(program, b"take", control), 0) == 4
    opened = program.guest.task.files.get(file)
    program("close", file)
    assert opened.is_open  # the message holds it
    assert program("recvmsg", other, message(program, b"", bytes(24)), 0) == 4
    length, level, kind, descriptor = struct.unpack("<Qiii", program.memory.read(0x5800, 20))
    assert (length, level, kind) == (20, SOL_SOCKET, 1)
    assert program.guest.task.files.get(descriptor) is opened
    program("close", descriptor)
    assert not opened.is_open


def test_files_that_nobody_receives_are_closed(program):
    one, other = pair(program)
    file = program.guest.open("file", 0o102)
    opened = program.guest.task.files.get(file)
    control = struct.pack("<Qiii", 20, SOL_SOCKET, 1, file) + bytes(4)
    program("sendmsg", one, message(program, b"a", control), 0)
    program("sendmsg", one, message(program, b"b", control), 0)
    program("close", file)
    assert receive(program, other) == b"a"  # recv takes no files: they are gone, and end a read
    assert opened.is_open
    program("close", other)
    assert not opened.is_open


def test_options(program):
    one, _ = pair(program)
    assert option(program, one, SO_PEERCRED, 12) == struct.pack("<III", 1000, 0, 0)
    assert program("getsockopt", one, SOL_SOCKET, 999, BUFFER, program.data(b"\4\0\0\0", SIZE)) == -ENOPROTOOPT
    assert program("getsockopt", one, 6, 1, BUFFER, SIZE) == -ENOPROTOOPT  # TCP_NODELAY
    assert program.guest.messages == ["socket option 1:999 is not modelled (ENOPROTOOPT)"]
    assert program("ioctl", one, 0x541B, BUFFER) == 0  # FIONREAD
    assert program.memory.read(BUFFER, 4) == bytes(4)


def test_an_edge_is_told_again_when_more_comes_before_the_next_wait(program):
    one, other = pair(program)
    instance = program("epoll_create1", 0)
    event = program.data(struct.pack("<I4xQ", POLLIN | 1 << 31, 7), ADDRESS)
    program("epoll_ctl", instance, 1, other, event)

    def wait() -> int:
        return program("epoll_pwait", instance, BUFFER, 4, 0, 0, 8)

    send(program, one, b"1")
    assert (wait(), wait()) == (1, 0)
    receive(program, other)
    send(program, one, b"2")  # readable then as now: still an edge
    assert (wait(), wait()) == (1, 0)


def test_memory_is_given_back(program):
    budget = program.guest.tree.superblock.budget
    before = budget.used_bytes
    one, other = pair(program)
    send(program, one, bytes(1000))
    assert budget.used_bytes > before + 1000
    receive(program, other, 10)
    program("close", other)
    assert budget.used_bytes == before


def test_a_message_waits_for_its_place_not_for_bytes(program):
    one, other = pair(program, DGRAM)
    for _ in range(12):  # as on Linux 6.18: two that are connected to each other count bytes alone
        assert send(program, one, b"x") == 1
        assert send(program, other, b"x") == 1
    one, other = pair(program, DGRAM)
    assert program("connect", other, program.data(bytes(2)), 2) == 0  # AF_UNSPEC: `other` has no peer
    for number in range(11):  # net.unix.max_dgram_qlen is 10
        assert send(program, one, bytes([number])) == 1
    assert send(program, one, b"x") == -EAGAIN
    assert program("sendto", one, BUFFER, 1, 0, 0, 0) == -ERESTARTSYS  # nobody reads: the kernel ends the task
    assert receive(program, other) == b"\0"
    assert send(program, one, b"x") == 1


def test_a_full_event_counter_is_waited_for_once(program):
    counter = program("eventfd2", 0, 0)
    number = program.data(struct.pack("<QQ", (1 << 64) - 2, 1))
    assert program("write", counter, number, 16) == 8
    assert program("write", counter, number, 8) == -ERESTARTSYS


def test_sockets_that_hold_one_another_are_closed_one_after_the_other(program):
    """Each pair is in a message to the next that nobody reads: nothing of ours recurses as deep as they are nested."""
    program.guest.task.files.limit = 10
    one, other = pair(program, DGRAM)
    sent = message(program, b"x", struct.pack("<Qiiii", 24, SOL_SOCKET, 1, one, other))
    for _ in range(3000):
        program.data(struct.pack("<Qiiii", 24, SOL_SOCKET, 1, one, other), 0x5800)
        following = pair(program, DGRAM)
        assert program("sendmsg", following[0], sent, 0) == 1
        program("close", one)
        program("close", other)
        one, other = following
    budget = program.guest.task.fs.system.superblock.budget
    assert budget.used_bytes >= 3000 * 2 * FILE_BYTES
    program("close", one)
    program("close", other)
    assert budget.used_bytes == 0
