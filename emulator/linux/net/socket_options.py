"""Socket options: one row each for getsockopt and setsockopt (socket(7), tcp(7), ip(7)).

Most only keep what is set: there is no wire on which they could matter. What is not here is ENOPROTOOPT, by name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from emulator.linux.errors import EDOM, EINVAL, ENOPROTOOPT, EOPNOTSUPP, LinuxError
from emulator.linux.net.socket_addresses import AF_INET, AF_INET6, AF_UNIX
from emulator.linux.net.socket_messages import CAPACITY_BYTES
from emulator.linux.net.sockets import (
    IPPROTO_IPV6,
    IPV6_V6ONLY,
    SO_REUSEADDR,
    SO_REUSEPORT,
    SO_SNDBUF,
    SOCK_DGRAM,
    SOCK_STREAM,
    SOL_SOCKET,
    Socket,
)
from emulator.linux.net.stream_sockets import State, StreamSocket
from emulator.linux.structures import NANOSECONDS

# asm-generic/socket.h
SO_TYPE, SO_ERROR, SO_DONTROUTE, SO_BROADCAST, SO_RCVBUF = 3, 4, 5, 6, 8
SO_KEEPALIVE, SO_NO_CHECK, SO_PRIORITY, SO_LINGER = 9, 11, 12, 13
SO_PASSCRED, SO_PEERCRED, SO_RCVLOWAT, SO_SNDLOWAT, SO_RCVTIMEO, SO_SNDTIMEO = 16, 17, 18, 19, 20, 21
SO_ACCEPTCONN, SO_PROTOCOL, SO_DOMAIN = 30, 38, 39
IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP = 0, 6, 17
SEGMENT_BYTES = 65_483  # TCP_MAXSEG on the loopback device: its MTU of 65,536 less headers and the timestamp option
LEAST_CAPACITY_BYTES = 2304  # SOCK_MIN_RCVBUF, net/core/sock.c
MOST_BUFFER_BYTES = 212_992  # net.core.rmem_max, wmem_max: what is asked for is cut to it, and then doubled

Get = Callable[[Socket], bytes]
Set = Callable[[Socket, bytes], None]


@dataclass(frozen=True, slots=True)
class Option:
    """How an option is read, and set; None: it cannot be set."""

    name: str
    get: Get
    set: Set | None


Row = tuple[tuple[int, int], Option]  # level and option


def _number(data: bytes) -> int:
    if len(data) < 4:
        raise LinuxError(EINVAL, f"an option of {len(data)} bytes; it has 4")
    return int.from_bytes(data[:4], "little", signed=True)


def _pack(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)


def _kept(level: int, option: int, name: str, default: int = 0, *, flag: bool = False) -> Row:
    """An option whose number is kept and shown. A `flag` is 0 or 1."""
    key = (level, option)

    def store(socket: Socket, data: bytes) -> None:
        value = _number(data)
        socket.options[key] = int(value != 0) if flag else value

    return key, Option(name, lambda socket: _pack(socket.options.get(key, default)), store)


def _shown(level: int, option: int, name: str, get: Callable[[Socket], int]) -> Row:
    """A number that cannot be set."""
    return (level, option), Option(name, lambda socket: _pack(get(socket)), None)


def _take_error(socket: Socket) -> int:
    code, socket.error = socket.error, 0
    return code


def _peer_credentials(socket: Socket) -> bytes:
    peer = socket.peer_credentials
    return struct.pack("<III", peer.pid, peer.uid, peer.gid)


def _set_linger(socket: Socket, data: bytes) -> None:
    if len(data) < 8:
        raise LinuxError(EINVAL, f"struct linger of {len(data)} bytes")
    on, seconds = struct.unpack("<ii", data[:8])
    socket.options[SOL_SOCKET, SO_LINGER] = seconds + 1 if on else 0


def _linger(socket: Socket) -> bytes:
    seconds = socket.options.get((SOL_SOCKET, SO_LINGER), 0)
    return struct.pack("<ii", seconds != 0, max(0, seconds - 1))


def _timeout(data: bytes) -> int | None:
    if len(data) < 16:
        raise LinuxError(EINVAL, f"struct timeval of {len(data)} bytes")
    seconds, microseconds = struct.unpack("<qq", data[:16])
    if not 0 <= microseconds < 1_000_000:
        raise LinuxError(EDOM, f"{microseconds} microseconds")
    return seconds * NANOSECONDS + microseconds * 1000 if seconds >= 0 and (seconds or microseconds) else None


def _pack_timeout(timeout_ns: int | None) -> bytes:
    return struct.pack("<qq", *divmod((timeout_ns or 0) // 1000, 1_000_000))


def _set_read_timeout(socket: Socket, data: bytes) -> None:
    socket.read_timeout_ns = _timeout(data)


def _set_write_timeout(socket: Socket, data: bytes) -> None:
    socket.write_timeout_ns = _timeout(data)


def _buffer_bytes(data: bytes) -> int:
    asked = min(_number(data) & 0xFFFF_FFFF, MOST_BUFFER_BYTES)
    return max(2 * asked, LEAST_CAPACITY_BYTES)


def _set_capacity(socket: Socket, data: bytes) -> None:
    socket.inbox.capacity = _buffer_bytes(data)


def _set_send_buffer(socket: Socket, data: bytes) -> None:
    socket.options[SOL_SOCKET, SO_SNDBUF] = _buffer_bytes(data)


def _set_only_v6(socket: Socket, data: bytes) -> None:
    value = _number(data)
    if socket.is_bound:
        raise LinuxError(EINVAL, f"{socket.path} has the name {socket.name}")
    socket.options[IPPROTO_IPV6, IPV6_V6ONLY] = int(value != 0)


def _protocol(socket: Socket) -> int:
    if socket.family == AF_UNIX:
        return 0
    return {SOCK_STREAM: IPPROTO_TCP, SOCK_DGRAM: IPPROTO_UDP}[socket.kind]


def _listens(socket: Socket) -> int:
    return int(isinstance(socket, StreamSocket) and socket.state is State.LISTENING)


OPTIONS: dict[tuple[int, int], Option] = dict(
    [
        _kept(SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR", flag=True),
        _kept(SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT", flag=True),
        _kept(SOL_SOCKET, SO_DONTROUTE, "SO_DONTROUTE", flag=True),
        _kept(SOL_SOCKET, SO_BROADCAST, "SO_BROADCAST", flag=True),
        _kept(SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE", flag=True),
        _kept(SOL_SOCKET, SO_NO_CHECK, "SO_NO_CHECK", flag=True),
        _kept(SOL_SOCKET, SO_PRIORITY, "SO_PRIORITY"),
        _kept(SOL_SOCKET, SO_PASSCRED, "SO_PASSCRED", flag=True),
        _shown(SOL_SOCKET, SO_TYPE, "SO_TYPE", lambda socket: socket.kind),
        _shown(SOL_SOCKET, SO_ERROR, "SO_ERROR", _take_error),
        _shown(SOL_SOCKET, SO_ACCEPTCONN, "SO_ACCEPTCONN", _listens),
        _shown(SOL_SOCKET, SO_PROTOCOL, "SO_PROTOCOL", _protocol),
        _shown(SOL_SOCKET, SO_DOMAIN, "SO_DOMAIN", lambda socket: socket.family),
        _shown(SOL_SOCKET, SO_RCVLOWAT, "SO_RCVLOWAT", lambda socket: 1),
        _shown(SOL_SOCKET, SO_SNDLOWAT, "SO_SNDLOWAT", lambda socket: 1),
        ((SOL_SOCKET, SO_PEERCRED), Option("SO_PEERCRED", _peer_credentials, None)),
        ((SOL_SOCKET, SO_LINGER), Option("SO_LINGER", _linger, _set_linger)),
        ((SOL_SOCKET, SO_RCVBUF), Option("SO_RCVBUF", lambda s: _pack(s.inbox.capacity), _set_capacity)),
        (
            (SOL_SOCKET, SO_SNDBUF),
            Option(
                "SO_SNDBUF", lambda s: _pack(s.options.get((SOL_SOCKET, SO_SNDBUF), CAPACITY_BYTES)), _set_send_buffer
            ),
        ),
        (
            (SOL_SOCKET, SO_RCVTIMEO),
            Option("SO_RCVTIMEO", lambda socket: _pack_timeout(socket.read_timeout_ns), _set_read_timeout),
        ),
        (
            (SOL_SOCKET, SO_SNDTIMEO),
            Option("SO_SNDTIMEO", lambda socket: _pack_timeout(socket.write_timeout_ns), _set_write_timeout),
        ),
        _kept(IPPROTO_TCP, 1, "TCP_NODELAY", flag=True),
        (
            (IPPROTO_TCP, 2),
            Option("TCP_MAXSEG", lambda socket: _pack(SEGMENT_BYTES if _is_connected(socket) else 536), None),
        ),
        _kept(IPPROTO_TCP, 3, "TCP_CORK", flag=True),
        _kept(IPPROTO_TCP, 4, "TCP_KEEPIDLE", 7200),
        _kept(IPPROTO_TCP, 5, "TCP_KEEPINTVL", 75),
        _kept(IPPROTO_TCP, 6, "TCP_KEEPCNT", 9),
        _kept(IPPROTO_TCP, 7, "TCP_SYNCNT", 6),
        _kept(IPPROTO_TCP, 8, "TCP_LINGER2", 60),
        _kept(IPPROTO_TCP, 9, "TCP_DEFER_ACCEPT"),
        _kept(IPPROTO_TCP, 10, "TCP_WINDOW_CLAMP"),
        _kept(IPPROTO_TCP, 12, "TCP_QUICKACK", 1, flag=True),
        _kept(IPPROTO_TCP, 18, "TCP_USER_TIMEOUT"),
        _kept(IPPROTO_TCP, 23, "TCP_FASTOPEN"),
        _kept(IPPROTO_IP, 1, "IP_TOS"),
        _kept(IPPROTO_IP, 2, "IP_TTL", 64),
        _kept(IPPROTO_IP, 11, "IP_RECVERR", flag=True),
        _kept(IPPROTO_IPV6, 16, "IPV6_UNICAST_HOPS", 64),
        _kept(IPPROTO_IPV6, 25, "IPV6_RECVERR", flag=True),
        ((IPPROTO_IPV6, IPV6_V6ONLY), Option("IPV6_V6ONLY", lambda socket: _pack(socket.only_v6), _set_only_v6)),
        _kept(IPPROTO_IPV6, 67, "IPV6_TCLASS"),
        _kept(IPPROTO_IPV6, 70, "IPV6_AUTOFLOWLABEL", 1, flag=True),
    ]
)


LEVELS = (SOL_SOCKET, IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_IPV6)
FAMILIES_OF = {  # a level, and whose options these are
    IPPROTO_IP: (AF_INET,),
    IPPROTO_IPV6: (AF_INET6,),
    IPPROTO_TCP: (AF_INET, AF_INET6),
    IPPROTO_UDP: (AF_INET, AF_INET6),
}


def _is_connected(socket: Socket) -> bool:
    return isinstance(socket, StreamSocket) and socket.state is State.CONNECTED


def _option(socket: Socket, level: int, option: int) -> Option:
    row = OPTIONS.get((level, option))
    if row is None or (level != SOL_SOCKET and socket.family not in FAMILIES_OF[level]):
        raise LinuxError(ENOPROTOOPT, f"socket option {level}:{option}")
    return row


def is_known(level: int, option: int) -> bool:
    return (level, option) in OPTIONS


def get(socket: Socket, level: int, option: int) -> bytes:
    if socket.family == AF_INET and level == IPPROTO_IPV6:  # ip_getsockopt(), net/ipv4/ip_sockglue.c
        raise LinuxError(EOPNOTSUPP, f"socket option {level}:{option} of a socket of AF_INET")
    return _option(socket, level, option).get(socket)


def store(socket: Socket, level: int, option: int, data: bytes) -> None:
    row = _option(socket, level, option)
    if row.set is None:
        raise LinuxError(ENOPROTOOPT, f"{row.name} cannot be set")
    row.set(socket, data)
