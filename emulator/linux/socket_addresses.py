"""Socket addresses: of AF_UNIX (unix(7)) and AF_INET (ip(7)), as bytes in user memory and as values."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TypeAlias

from emulator.linux.errors import EADDRNOTAVAIL, EAFNOSUPPORT, EINVAL, ENETUNREACH, LinuxError

AF_UNSPEC, AF_UNIX, AF_INET = 0, 1, 2  # linux/socket.h
FAMILIES = {AF_UNIX: "AF_UNIX", AF_INET: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET"}
MOST_UNIX_BYTES = 110  # struct sockaddr_un: a family of 2 bytes and a path
INET_BYTES = 16  # struct sockaddr_in
ANY_HOST = 0  # 0.0.0.0
LOOPBACK_HOST = 0x7F00_0001


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A path, an abstract name (which begins with NUL), or empty: a socket without a name."""

    name: bytes = b""

    @property
    def path(self) -> str | None:
        return None if not self.name or self.name.startswith(b"\0") else os.fsdecode(self.name)

    def pack(self) -> bytes:
        return AF_UNIX.to_bytes(2, "little") + self.name + (b"\0" if self.path is not None else b"")

    def __str__(self) -> str:
        return self.path or self.name.decode("latin-1").replace("\0", "@") or "no name"


@dataclass(frozen=True, slots=True)
class InetAddress:
    """An IPv4 host and a port, as numbers."""

    host: int = ANY_HOST
    port: int = 0

    @property
    def is_local(self) -> bool:
        """Whether it is of this machine, which has no network but the loopback one, 127.0.0.0/8."""
        return self.host >> 24 == 127

    def pack(self) -> bytes:
        return AF_INET.to_bytes(2, "little") + struct.pack(">HI8x", self.port, self.host)

    def __str__(self) -> str:
        return ".".join(str(octet) for octet in self.host.to_bytes(4, "big")) + f":{self.port}"


Address: TypeAlias = UnixAddress | InetAddress


def unnamed(family: int) -> Address:
    """What a socket without a name is called."""
    return UnixAddress() if family == AF_UNIX else InetAddress()


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
    if len(data) < INET_BYTES:
        raise LinuxError(EINVAL, f"an AF_INET address of {len(data)} bytes; it has {INET_BYTES}")
    port, host = struct.unpack(">HI", data[2:8])
    if given != family and not (given == AF_UNSPEC and host == ANY_HOST):
        raise LinuxError(EAFNOSUPPORT, f"an address of family {given} for a socket of AF_INET")
    return InetAddress(host, port)


def destination(address: InetAddress) -> InetAddress:
    """Where what is sent there goes: 0.0.0.0 is this machine. ENETUNREACH for what is not."""
    if address.host == ANY_HOST:
        return InetAddress(LOOPBACK_HOST, address.port)
    if not address.is_local:
        raise LinuxError(ENETUNREACH, f"{address}: the machine has no network but its own loopback one")
    return address


def check_own(address: InetAddress) -> None:
    """EADDRNOTAVAIL for an address that this machine does not have."""
    if address.host != ANY_HOST and not address.is_local:
        raise LinuxError(EADDRNOTAVAIL, f"{address} is not of this machine, which has 127.0.0.0/8")
