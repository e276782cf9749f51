"""Socket addresses: AF_UNIX (unix(7)), AF_INET (ip(7)), AF_INET6 (ipv6(7)), as bytes in user memory and as values.

Hosts of both Internet families are numbers of one space: 127.0.0.1 is ::ffff:127.0.0.1, as sockets of IPv6 show it.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

from emulator.linux.errors import EADDRNOTAVAIL, EAFNOSUPPORT, EINVAL, ENETUNREACH, LinuxError

AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 0, 1, 2, 10, 16  # linux/socket.h
FAMILIES = {AF_UNIX: "AF_UNIX", AF_INET: "AF_INET", AF_INET6: "AF_INET6", AF_NETLINK: "AF_NETLINK", 17: "AF_PACKET"}
MOST_UNIX_BYTES = 110  # struct sockaddr_un: a family of 2 bytes and a path
INET_BYTES = 16  # struct sockaddr_in
INET6_BYTES = 28  # struct sockaddr_in6
NETLINK_BYTES = 12  # struct sockaddr_nl
LEAST_INET6_BYTES = 24  # without the scope: SIN6_LEN_RFC2133
V4_MAPPED = 0xFFFF << 32  # ::ffff:0.0.0.0
ANY_HOST = V4_MAPPED  # 0.0.0.0
LOOPBACK_HOST = V4_MAPPED | 0x7F00_0001
ANY_HOST6 = 0  # ::
LOOPBACK_HOST6 = 1  # ::1


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A path, an abstract name (which begins with NUL), or empty: a socket without a name."""

    name: bytes = b""

    @property
    def path(self) -> str | None:
        return None if not self.name or self.name.startswith(b"\0") else os.fsdecode(self.name)

    def pack(self, family: int) -> bytes:
        return AF_UNIX.to_bytes(2, "little") + self.name + (b"\0" if self.path is not None else b"")

    def __str__(self) -> str:
        return self.path or self.name.decode("latin-1").replace("\0", "@") or "no name"


@dataclass(frozen=True, slots=True)
class InetAddress:
    """A host and a port, as numbers."""

    host: int = ANY_HOST
    port: int = 0

    @property
    def is_v4(self) -> bool:
        return self.host >> 32 == 0xFFFF

    @property
    def is_any(self) -> bool:
        return self.host in (ANY_HOST, ANY_HOST6)

    @property
    def is_local(self) -> bool:
        """Whether it is of this machine, which has no network but the loopback one, 127.0.0.0/8 and ::1."""
        return self.host >> 24 == 0xFFFF7F or self.host == LOOPBACK_HOST6

    def covers(self, host: int, *, only_v6: bool) -> bool:
        """Whether who is bound to it has `host`. An IPv6 socket that is bound to :: has all of IPv4 besides."""
        if self.host == ANY_HOST6:
            return host >> 32 != 0xFFFF or not only_v6
        return self.host == host or (self.host == ANY_HOST and host >> 32 == 0xFFFF)

    def pack(self, family: int) -> bytes:
        """As a socket of `family` shows it."""
        head = family.to_bytes(2, "little")
        if family == AF_INET:
            return head + struct.pack(">HI8x", self.port, self.host & 0xFFFF_FFFF)
        return head + struct.pack(">HI", self.port, 0) + self.host.to_bytes(16, "big") + bytes(4)

    def __str__(self) -> str:
        if self.is_v4:
            return f"{IPv4Address(self.host & 0xFFFF_FFFF)}:{self.port}"
        return f"[{IPv6Address(self.host)}]:{self.port}"


@dataclass(frozen=True, slots=True)
class NetlinkAddress:
    """A port of netlink's, 0 for the kernel, and multicast groups."""

    port: int = 0
    groups: int = 0

    def pack(self, family: int) -> bytes:
        return struct.pack("<HHII", family, 0, self.port, self.groups)

    def __str__(self) -> str:
        return f"netlink port {self.port}"


Address: TypeAlias = UnixAddress | InetAddress | NetlinkAddress


def unnamed(family: int) -> Address:
    """What a socket without a name is called."""
    if family == AF_UNIX:
        return UnixAddress()
    if family == AF_NETLINK:
        return NetlinkAddress()
    return InetAddress(ANY_HOST if family == AF_INET else ANY_HOST6)


def parse(family: int, data: bytes) -> Address:
    """An address that a socket of `family` is given. An AF_UNIX one of two bytes has no name."""
    if len(data) < 2:
        raise LinuxError(EINVAL, f"an address of {len(data)} bytes")
    given = int.from_bytes(data[:2], "little")
    if family == AF_UNIX:
        if given != AF_UNIX or len(data) > MOST_UNIX_BYTES:
            raise LinuxError(EINVAL, f"an AF_UNIX address of {len(data)} bytes with family {given}")
        name = data[2:]
        return UnixAddress(name if name.startswith(b"\0") else name.split(b"\0")[0])
    if family == AF_INET6:
        return _parse_inet6(given, data)
    if family == AF_NETLINK:
        return _parse_netlink(given, data)
    if len(data) < INET_BYTES:
        raise LinuxError(EINVAL, f"an AF_INET address of {len(data)} bytes; it has {INET_BYTES}")
    port, host = struct.unpack(">HI", data[2:8])
    if given != family and not (given == AF_UNSPEC and host == 0):
        raise LinuxError(EAFNOSUPPORT, f"an address of family {given} for a socket of AF_INET")
    return InetAddress(V4_MAPPED | host, port)


def _parse_netlink(given: int, data: bytes) -> NetlinkAddress:
    if len(data) < NETLINK_BYTES or given != AF_NETLINK:
        raise LinuxError(EINVAL, f"an AF_NETLINK address of {len(data)} bytes with family {given}")
    port, groups = struct.unpack_from("<II", data, 4)
    return NetlinkAddress(port, groups)


def _parse_inet6(given: int, data: bytes) -> InetAddress:
    if given != AF_INET6:
        short = len(data) < LEAST_INET6_BYTES
        raise LinuxError(EINVAL if short else EAFNOSUPPORT, f"an address of family {given} for a socket of AF_INET6")
    if len(data) < LEAST_INET6_BYTES:
        raise LinuxError(EINVAL, f"an AF_INET6 address of {len(data)} bytes; it has {INET6_BYTES}")
    (port,) = struct.unpack(">H", data[2:4])
    return InetAddress(int.from_bytes(data[8:24], "big"), port)


def loopback_of(address: InetAddress) -> int:
    """The loopback host of the same family."""
    return LOOPBACK_HOST if address.is_v4 else LOOPBACK_HOST6


def destination(address: InetAddress) -> InetAddress:
    """Where what is sent there goes: 0.0.0.0 and :: are this machine. ENETUNREACH for what is not."""
    if address.is_any:
        return InetAddress(loopback_of(address), address.port)
    if not address.is_local:
        raise LinuxError(ENETUNREACH, f"{address}: the machine has no network but its own 127.0.0.0/8 and ::1")
    return address


def check_own(address: InetAddress) -> None:
    """EADDRNOTAVAIL for an address that this machine does not have."""
    if not address.is_any and not address.is_local:
        raise LinuxError(EADDRNOTAVAIL, f"{address} is not of this machine, which has 127.0.0.0/8 and ::1")
