"""Netlink: what the kernel answers of interfaces and addresses, and what it refuses."""

from __future__ import annotations

import struct

import pytest

from emulator.linux.errors import EADDRINUSE, EAGAIN, ECONNREFUSED, EOPNOTSUPP, LinuxError
from emulator.linux.fs.destination import KernelBuffer
from emulator.linux.net.netlink_sockets import (
    HEADER,
    NLM_F_DUMP,
    NLM_F_REQUEST,
    NLMSG_DONE,
    NLMSG_ERROR,
    RTM_GETADDR,
    RTM_GETLINK,
    RTM_GETROUTE,
    RTM_NEWADDR,
    RTM_NEWLINK,
    NetlinkSocket,
)
from emulator.linux.net.socket_addresses import AF_INET, AF_INET6, AF_NETLINK, NetlinkAddress, parse
from emulator.linux.net.socket_messages import Credentials, Message

SET_LINK = 19  # RTM_SETLINK


@pytest.fixture
def new(guest):
    names = guest.tree.sockets
    return lambda: NetlinkSocket(names, guest.tree.superblock, AF_NETLINK, 3, 0, Credentials(1000, 0, 0))


def asked(socket, kind, family=0, flags=NLM_F_REQUEST | NLM_F_DUMP):
    """(type, sequence, port, contents) of all that is answered."""
    request = HEADER.pack(HEADER.size + 4, kind, flags, 7, 0) + bytes((family, 0, 0, 0))
    assert socket.send(Message(request)) == len(request)
    found = []
    while socket.inbox:
        buffer = KernelBuffer(1 << 16)
        assert socket.receive(buffer).sender == NetlinkAddress(0)  # glibc believes nobody else
        at = 0
        while at < len(buffer.data):
            length, kind, _, sequence, port = HEADER.unpack_from(buffer.data, at)
            found.append((kind, sequence, port, buffer.data[at + HEADER.size : at + length]))
            at += length
    return found


def test_dumps_end_with_done(new):
    socket = new()
    socket.bind(NetlinkAddress())
    assert socket.name == NetlinkAddress(1000)
    for kind, family, answers in (
        (RTM_GETLINK, 0, [RTM_NEWLINK]),
        (RTM_GETADDR, 0, [RTM_NEWADDR, RTM_NEWADDR]),
        (RTM_GETADDR, AF_INET, [RTM_NEWADDR]),
        (RTM_GETADDR, AF_INET6, [RTM_NEWADDR]),
        (RTM_GETADDR, 5, []),
        (RTM_GETROUTE, 0, []),
    ):
        got = asked(socket, kind, family)
        assert [each[0] for each in got] == [*answers, NLMSG_DONE]
        assert {each[1:3] for each in got} == {(7, 1000)}


def test_what_is_no_dump_is_refused(new):
    socket = new()
    for kind, flags in ((SET_LINK, NLM_F_REQUEST), (RTM_GETLINK, NLM_F_REQUEST), (99, NLM_F_REQUEST | NLM_F_DUMP)):
        ((answer, _, _, contents),) = asked(socket, kind, flags=flags)
        assert answer == NLMSG_ERROR
        assert struct.unpack_from("<i", contents) == (-EOPNOTSUPP,)


def test_each_socket_has_a_port_of_its_own(new):
    one, other = new(), new()
    one.bind(NetlinkAddress())
    other.bind(NetlinkAddress())
    assert (one.name, other.name) == (NetlinkAddress(1000), NetlinkAddress(0xFFFF_F000))
    with pytest.raises(LinuxError) as caught:
        new().bind(NetlinkAddress(1000))
    assert caught.value.code == EADDRINUSE
    one.close()
    new().bind(NetlinkAddress(1000))
    assert parse(AF_NETLINK, other.name.pack(AF_NETLINK)) == other.name


def test_nobody_but_the_kernel_answers(new):
    socket = new()
    asks_another = lambda: socket.send(Message(b"x"), NetlinkAddress(5))  # noqa: E731
    for wrong, code in ((asks_another, ECONNREFUSED), (lambda: socket.receive(KernelBuffer(10)), EAGAIN)):
        with pytest.raises(LinuxError) as caught:
            wrong()
        assert caught.value.code == code
