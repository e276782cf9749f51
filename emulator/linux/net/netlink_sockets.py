"""Netlink sockets: AF_NETLINK of the NETLINK_ROUTE family, for whoever asks which interfaces and addresses there are.

There is one interface, lo, with 127.0.0.1 and ::1. It can be dumped, as getifaddrs(3) and ip(8) do; nothing changes.
rtnetlink(7), net/netlink/af_netlink.c
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from emulator.linux.errors import EADDRINUSE, ECONNREFUSED, EOPNOTSUPP, EPERM, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import POLLIN, POLLOUT
from emulator.linux.fs.nodes import Superblock
from emulator.linux.net.socket_addresses import AF_INET, AF_INET6, Address, NetlinkAddress
from emulator.linux.net.socket_messages import Credentials, Message, Received
from emulator.linux.net.socket_names import SocketNames
from emulator.linux.net.sockets import Socket

# uapi/linux/netlink.h
HEADER = struct.Struct("<IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
NLM_F_REQUEST, NLM_F_MULTI, NLM_F_ACK, NLM_F_DUMP = 1, 2, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
# uapi/linux/rtnetlink.h
RTM_NEWLINK, RTM_GETLINK, RTM_NEWADDR, RTM_GETADDR, RTM_GETROUTE, RTM_GETNEIGH = 16, 18, 20, 22, 26, 30
LOOPBACK_INDEX = 1
ARPHRD_LOOPBACK = 772
LOOPBACK_FLAGS = 0x10049  # IFF_UP | IFF_LOOPBACK | IFF_RUNNING | IFF_LOWER_UP
MTU_BYTES, QUEUE_LENGTH = 65_536, 1000
RT_SCOPE_HOST = 254
IFA_F_PERMANENT = 0x80
FOREVER = 0xFFFF_FFFF


def _attribute(kind: int, value: bytes) -> bytes:
    """struct rtattr and its value, padded to 4 bytes."""
    return struct.pack("<HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


# uapi/linux/if_link.h: IFLA_ADDRESS BROADCAST IFNAME MTU QDISC TXQLEN OPERSTATE LINKMODE
LINK = struct.pack("<BxHiII", 0, ARPHRD_LOOPBACK, LOOPBACK_INDEX, LOOPBACK_FLAGS, 0) + b"".join(
    _attribute(kind, value)
    for kind, value in (
        (3, b"lo\0"),
        (13, _u32(QUEUE_LENGTH)),
        (16, b"\0"),
        (17, b"\0"),
        (4, _u32(MTU_BYTES)),
        (1, bytes(6)),
        (2, bytes(6)),
        (6, b"noqueue\0"),
    )
)


def _address(family: int, prefix: int, attributes: tuple[tuple[int, bytes], ...]) -> bytes:
    """struct ifaddrmsg and what follows. uapi/linux/if_addr.h: IFA_ADDRESS LOCAL LABEL CACHEINFO FLAGS"""
    head = struct.pack("<BBBBI", family, prefix, IFA_F_PERMANENT, RT_SCOPE_HOST, LOOPBACK_INDEX)
    always = ((8, _u32(IFA_F_PERMANENT)), (6, struct.pack("<4I", FOREVER, FOREVER, 0, 0)))
    return head + b"".join(_attribute(kind, value) for kind, value in attributes + always)


LOOPBACK_V4, LOOPBACK_V6 = bytes((127, 0, 0, 1)), bytes(15) + b"\1"
ADDRESSES = {
    AF_INET: _address(AF_INET, 8, ((1, LOOPBACK_V4), (2, LOOPBACK_V4), (3, b"lo\0"))),
    AF_INET6: _address(AF_INET6, 128, ((1, LOOPBACK_V6),)),
}


def _addresses(family: int) -> list[tuple[int, bytes]]:
    return [(RTM_NEWADDR, body) for of, body in ADDRESSES.items() if family in (0, of)]


# What can be dumped: request -> family -> (type, contents) of each message
DUMPS: dict[int, Callable[[int], list[tuple[int, bytes]]]] = {
    RTM_GETLINK: lambda family: [(RTM_NEWLINK, LINK)],
    RTM_GETADDR: _addresses,
    RTM_GETROUTE: lambda family: [],  # the machine's own addresses need none
    RTM_GETNEIGH: lambda family: [],
}


def _message(kind: int, flags: int, sequence: int, port: int, contents: bytes) -> bytes:
    message = HEADER.pack(HEADER.size + len(contents), kind, flags, sequence, port) + contents
    return message + bytes(-len(message) % 4)


def _requests(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """(type, flags, sequence, contents) of each message."""
    at = 0
    while at + HEADER.size <= len(data):
        length, kind, flags, sequence, _ = HEADER.unpack_from(data, at)
        if not HEADER.size <= length <= len(data) - at:
            return
        yield kind, flags, sequence, data[at + HEADER.size : at + length]
        at += -(-length // 4) * 4


class NetlinkSocket(Socket):
    """One that asks the kernel and reads its answers."""

    def __init__(
        self, names: SocketNames, superblock: Superblock, family: int, kind: int, flags: int, credentials: Credentials
    ) -> None:
        super().__init__(names, superblock, family, kind, flags, credentials)
        self._connected = False

    def bind(self, address: Address) -> None:
        """A port of its own: the process's number, and for its further sockets numbers from above."""
        assert isinstance(address, NetlinkAddress), "parsed for this family"
        if address.groups:
            raise LinuxError(EPERM, f"multicast groups {address.groups:#x}: nothing changes that could be told")
        if self.is_bound and address.port in (0, self._port):
            return
        port = self.names.bind_netlink(address.port, self.credentials.pid, self)
        if port is None:
            raise LinuxError(EADDRINUSE, f"netlink port {address.port}")
        self.name = NetlinkAddress(port)

    @property
    def _port(self) -> int:
        assert isinstance(self.name, NetlinkAddress), "of this family"
        return self.name.port

    @property
    def peer_name(self) -> Address:
        return NetlinkAddress()  # the kernel

    def connect(self, address: Address, target: Socket | None) -> None:
        self._check_kernel(address)

    def disconnect(self) -> None:
        pass

    def _check_kernel(self, address: Address | None) -> None:
        if isinstance(address, NetlinkAddress) and (address.port or address.groups):
            raise LinuxError(ECONNREFUSED, f"{address}: only the kernel is asked")

    def send(self, message: Message, address: Address | None = None, target: Socket | None = None) -> int:
        self._check_kernel(address)
        if not self.is_bound:
            self.bind(NetlinkAddress())
        if message.unreadable:
            message.keep(0)
        for kind, flags, sequence, contents in _requests(message.data):
            if flags & NLM_F_REQUEST:
                for part in self._answers(kind, flags, sequence, contents):
                    self.inbox.put(Message(part, Credentials(0, 0, 0), sender=NetlinkAddress()))
        self.changed.wake()
        return len(message.data)

    def _answers(self, kind: int, flags: int, sequence: int, contents: bytes) -> list[bytes]:
        """The datagrams that answer one request."""
        dump = DUMPS.get(kind) if flags & NLM_F_DUMP == NLM_F_DUMP else None
        if dump is None:
            refused = struct.pack("<i", -EOPNOTSUPP) + HEADER.pack(
                HEADER.size + len(contents), kind, flags, sequence, self._port
            )
            return [_message(NLMSG_ERROR, 0, sequence, self._port, refused + contents)]
        family = contents[0] if contents else 0
        parts = [_message(of, NLM_F_MULTI, sequence, self._port, body) for of, body in dump(family)]
        end = _message(NLMSG_DONE, NLM_F_MULTI, sequence, self._port, struct.pack("<i", 0))
        return [b"".join(parts), end] if parts else [end]

    def receive(self, destination: Destination, *, peek: bool = False) -> Received:
        if not self.inbox:
            raise self.no_message()
        return self.inbox.take(destination, peek=peek)

    def shutdown(self, how: int) -> None:
        raise LinuxError(EOPNOTSUPP, f"{self.path} cannot be shut")

    def poll(self) -> int:
        return POLLOUT | (POLLIN if self.inbox else 0)
