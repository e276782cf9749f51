"""SocketNames: which sockets of a machine have which abstract names and ports. Paths are the file tree's."""

from __future__ import annotations

from typing import Protocol

from emulator.linux.errors import EADDRINUSE, EADDRNOTAVAIL, LinuxError
from emulator.linux.net.socket_addresses import Address, InetAddress, NetlinkAddress, UnixAddress

FIRST_PORT, LAST_PORT = 32_768, 60_999  # net.ipv4.ip_local_port_range
MOST_NETLINK_PORT = 0xFFFF_F000  # -4096, from where Linux looks for one that is free
AUTOBIND_NAMES = 1 << 20  # unix(7): NUL and five hexadecimal digits


class Named(Protocol):
    """A socket (a ``Socket``), as its name's owner."""

    @property
    def kind(self) -> int: ...
    @property
    def shares_address(self) -> bool:
        """SO_REUSEADDR, and it does not listen: another one with that option may have its address."""

    @property
    def shares_port(self) -> bool:
        """SO_REUSEPORT"""

    @property
    def only_v6(self) -> bool:
        """IPV6_V6ONLY: bound to ::, it has nothing of IPv4."""

    def rank(self, to: InetAddress, sender: InetAddress | None) -> int:
        """How well what `sender` sends to `to` fits it; 0: not at all."""


class SocketNames:
    """The names of one machine. What Linux draws at random counts up here."""

    def __init__(self) -> None:
        self._abstract: dict[bytes, Named] = {}
        self._ports: dict[tuple[int, int], dict[Named, InetAddress]] = {}  # by kind of socket and port
        self._netlink: dict[int, Named] = {}  # by port
        self._last_port = FIRST_PORT - 1
        self._last_name = 0

    # ---- abstract names

    def bind_abstract(self, name: bytes, socket: Named) -> None:
        if name in self._abstract:
            raise LinuxError(EADDRINUSE, str(UnixAddress(name)))
        self._abstract[name] = socket

    def new_abstract(self) -> bytes:
        """A name for who asks for any."""
        for _ in range(AUTOBIND_NAMES):
            self._last_name = (self._last_name + 1) % AUTOBIND_NAMES
            name = b"\0%05x" % self._last_name
            if name not in self._abstract:
                return name
        raise LinuxError(EADDRINUSE, "all abstract names that a kernel gives are in use")

    def abstract(self, name: bytes) -> Named | None:
        return self._abstract.get(name)

    # ---- ports

    def bind_port(self, address: InetAddress, socket: Named) -> InetAddress:
        """Its address from now on: with port 0 a free one."""
        if not address.port:
            address = InetAddress(address.host, self._free_port(socket.kind))
        elif not self._may_have(address, socket):
            raise LinuxError(EADDRINUSE, str(address))
        self._ports.setdefault((socket.kind, address.port), {})[socket] = address
        return address

    def _free_port(self, kind: int) -> int:
        for _ in range(FIRST_PORT, LAST_PORT + 1):
            self._last_port = self._last_port + 1 if self._last_port < LAST_PORT else FIRST_PORT
            if (kind, self._last_port) not in self._ports:
                return self._last_port
        raise LinuxError(EADDRNOTAVAIL, "all ports are in use")

    def _may_have(self, address: InetAddress, socket: Named) -> bool:
        return all(
            (other.shares_address and socket.shares_address)
            or (other.shares_port and socket.shares_port)
            or not (
                address.covers(bound.host, only_v6=socket.only_v6) or bound.covers(address.host, only_v6=other.only_v6)
            )
            for other, bound in self._ports.get((socket.kind, address.port), {}).items()
        )

    def at_port(self, kind: int, to: InetAddress, sender: InetAddress | None) -> Named | None:
        """Who gets what `sender` sends to `to`: the one that fits best, the first of those."""
        sockets = self._ports.get((kind, to.port), {})
        best = max(sockets, key=lambda socket: socket.rank(to, sender), default=None)
        return best if best is not None and best.rank(to, sender) else None

    # ---- netlink

    def bind_netlink(self, port: int, pid: int, socket: Named) -> int | None:
        """Its port; without a wish the process's number or, if that is taken, the highest free one. None: taken."""
        if not port:
            port = pid
            candidates = iter(range(MOST_NETLINK_PORT, 0, -1))
            while port in self._netlink:
                port = next(candidates)
        elif port in self._netlink:
            return None
        self._netlink[port] = socket
        return port

    # ---- all

    def release(self, socket: Named, address: Address) -> None:
        """The socket is closed."""
        if isinstance(address, NetlinkAddress):
            self._netlink.pop(address.port, None)
            return
        if isinstance(address, InetAddress):
            key = (socket.kind, address.port)
            sockets = self._ports.get(key, {})
            sockets.pop(socket, None)
            if not sockets:
                self._ports.pop(key, None)
        elif self._abstract.get(address.name) is socket:
            del self._abstract[address.name]
