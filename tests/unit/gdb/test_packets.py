"""Packets of GDB's remote protocol, and what is none."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from perfemu.gdb.packets import MOST_WAITING_BYTES, PACKET_BYTES, Connection, Disconnected


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(10)
        yield Connection(ours), theirs


def test_a_packet_is_acknowledged(pair: tuple[Connection, socket.socket]) -> None:
    connection, theirs = pair
    theirs.send(b"+$g#67")  # 'g' is 0x67
    assert connection.receive() == b"g"
    assert theirs.recv(10) == b"+"
    connection.acknowledges = False
    theirs.send(b"$m0,4#00")  # whose checksum nobody looks at then
    assert connection.receive() == b"m0,4"


def test_a_wrong_checksum_is_asked_for_again(pair: tuple[Connection, socket.socket]) -> None:
    connection, theirs = pair
    theirs.send(b"$g#68$g#67")
    assert connection.receive() == b"g"
    assert theirs.recv(10) == b"-+"


def test_bytes_that_mean_something_are_escaped(pair: tuple[Connection, socket.socket]) -> None:
    connection, theirs = pair
    connection.acknowledges = False
    connection.send(b"}#$*a")
    body = b"}\x5d}\x03}\x04}\x0aa"
    assert theirs.recv(100) == b"$%b#%02x" % (body, sum(body) & 0xFF)
    theirs.send(b"$" + body + b"#00")
    assert connection.receive() == b"}#$*a"


def test_an_interruption_is_no_packet(pair: tuple[Connection, socket.socket]) -> None:
    connection, theirs = pair
    assert not connection.interrupted()
    theirs.send(b"+\x03")
    assert connection.interrupted()
    assert not connection.interrupted()
    theirs.send(b"\x03")
    assert connection.receive() is None


@pytest.mark.parametrize("sent", [b"", b"$" + b"a" * (PACKET_BYTES + 100), b"no packet" * 1000])
def test_who_leaves_or_speaks_something_else_is_disconnected(
    sent: bytes, pair: tuple[Connection, socket.socket]
) -> None:
    connection, theirs = pair
    theirs.sendall(sent)
    theirs.close()
    with pytest.raises(Disconnected):
        connection.receive()


def test_a_flood_while_nobody_listens_ends_the_connection(pair: tuple[Connection, socket.socket]) -> None:
    connection, theirs = pair
    theirs.settimeout(None)
    theirs.setblocking(False)
    for _ in range(MOST_WAITING_BYTES // 4096):
        theirs.send(b"$" * 4096)
        assert not connection.interrupted()
    theirs.send(b"$")
    with pytest.raises(Disconnected):
        connection.interrupted()
