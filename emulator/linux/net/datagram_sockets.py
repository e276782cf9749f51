"""Datagram sockets: single messages, of AF_UNIX, which wait for room, and of UDP, which are lost without it."""

from __future__ import annotations

from emulator.linux.errors import (
    EAGAIN,
    ECONNREFUSED,
    ECONNRESET,
    EMSGSIZE,
    ENOTCONN,
    EPERM,
    EPIPE,
    EPROTOTYPE,
    LinuxError,
)
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP
from emulator.linux.fs.nodes import Superblock
from emulator.linux.net.socket_addresses import Address, InetAddress, destination, loopback_of, unnamed
from emulator.linux.net.socket_messages import Credentials, Message, Received
from emulator.linux.net.socket_names import SocketNames
from emulator.linux.net.sockets import SHUT_RD, SHUT_RDWR, SHUT_WR, Socket, is_local
from emulator.linux.sched.waiting import WaitQueue

MOST_LOCAL_MESSAGES = 10  # net.unix.max_dgram_qlen: with more, the next one waits
MOST_UDP_BYTES = 65_507


class DatagramSocket(Socket):
    """One that sends and receives messages."""

    def __init__(
        self, names: SocketNames, superblock: Superblock, family: int, kind: int, flags: int, credentials: Credentials
    ) -> None:
        super().__init__(names, superblock, family, kind, flags, credentials)
        self.peer: DatagramSocket | None = None  # AF_UNIX: connected to a socket
        self._connected: Address | None = None  # UDP: to an address

    def rank(self, to: InetAddress, sender: InetAddress | None) -> int:
        if self._connected is not None:
            return 5 if self._connected == sender else 0
        return super().rank(to, sender)

    def connect(self, address: Address, target: Socket | None) -> None:
        if isinstance(address, InetAddress):
            address = destination(address)
            if not self.is_bound:
                self.bind(InetAddress(loopback_of(address)))
            self._connected = address
            return
        if target is None:
            raise LinuxError(ECONNREFUSED, f"nobody has the address {address}")
        if not isinstance(target, DatagramSocket):
            raise LinuxError(EPROTOTYPE, f"{address} is of another type")
        if target is not self.peer:
            self.disconnect()
        self.pair_with(target)

    def pair_with(self, other: DatagramSocket) -> None:
        self.peer = other
        self._connected = other.name

    def disconnect(self) -> None:
        """What had come is lost, and a peer that stays connected is told so (unix_dgram_disconnected())."""
        peer, self.peer, self._connected = self.peer, None, None
        if peer is None or not self.inbox:
            return
        for file in self.inbox.clear():
            file.release()
        self.changed.wake()
        if peer.is_open and peer.peer is self:
            peer.error = ECONNRESET
            peer.changed.wake()

    @property
    def peer_name(self) -> Address:
        if self._connected is None:
            raise LinuxError(ENOTCONN, f"{self.path} is not connected")
        return self.peer.name if self.peer is not None else self._connected

    @property
    def peer_credentials(self) -> Credentials:
        return self.peer.credentials if self.peer is not None else Credentials()

    @property
    def is_full(self) -> bool:
        return len(self.inbox) > MOST_LOCAL_MESSAGES or self.inbox.room <= 0

    def is_full_for(self, sender: DatagramSocket) -> bool:
        """Of messages between two that are connected to each other, only the bytes are limited."""
        return self.inbox.room <= 0 if self.peer is sender else self.is_full

    def send(self, message: Message, address: Address | None = None, target: Socket | None = None) -> int:
        if address is None:
            self.check_send(message.size)
        else:
            self._check_message(message.size)
        if message.unreadable:
            message.keep(0)
        return self._send_local(message, address, target) if is_local(self) else self._send_udp(message, address)

    def check_send(self, size: int) -> None:
        """... to whom it is connected: AF_UNIX looks for a receiver when it has the bytes."""
        if self._connected is None and not is_local(self):
            raise self.no_destination()
        self._check_message(size)

    def _check_message(self, size: int) -> None:
        if size > (most := self.most_sent if is_local(self) else MOST_UDP_BYTES):
            raise LinuxError(EMSGSIZE, f"a message of {size} bytes; at most {most}")
        self.raise_error()
        if self.write_shut:
            raise LinuxError(EPIPE, f"{self.path} is shut for writing")

    def _send_local(self, message: Message, address: Address | None, target: Socket | None) -> int:
        if address is None and self._connected is None:
            raise LinuxError(ENOTCONN, f"{self.path} is not connected")
        receiver = self.peer if address is None else target
        if receiver is None or not receiver.is_open:
            refused = LinuxError(ECONNREFUSED, f"nobody has the address {address or self._connected}")
            if address is None:
                self.disconnect()
            raise refused
        if not isinstance(receiver, DatagramSocket):
            raise LinuxError(EPROTOTYPE, f"{receiver.name} is of another type")
        if receiver.peer is not None and receiver.peer is not self:
            raise LinuxError(EPERM, f"{receiver.name} listens to another one")
        if receiver.read_shut:
            raise LinuxError(EPIPE, f"{receiver.name} is shut for reading")
        if receiver.is_full_for(self):
            raise LinuxError(EAGAIN, f"{receiver.name} has {len(receiver.inbox)} messages to read")
        message.sender = self.name if self.is_bound else None
        receiver.inbox.put(message)
        receiver.changed.wake()
        return len(message.data)

    def _send_udp(self, message: Message, address: Address | None) -> int:
        to = self._connected if address is None else address
        assert isinstance(to, InetAddress), "parsed for this family"
        to = destination(to)
        if not self.is_bound:
            self.bind(self.name)
        name = self.name
        assert isinstance(name, InetAddress), "of this family"
        message.sender = InetAddress(to.host, name.port) if name.is_any else name
        receiver = self.names.at_port(self.kind, to, message.sender)
        if isinstance(receiver, DatagramSocket):
            if receiver.inbox.room > 0 and not receiver.read_shut:
                receiver.inbox.put(message)
                receiver.changed.wake()
        elif self._connected == to:
            self.error = ECONNREFUSED  # the ICMP message that the port is unreachable
            self.changed.wake()
        return len(message.data)

    def receive(self, destination: Destination, *, peek: bool = False) -> Received:
        self.raise_error()
        if not self.inbox:
            if self.read_shut:
                return Received()
            raise self.no_message()
        was_full = self.is_full
        try:
            return self.inbox.take(destination, peek=peek)
        finally:
            if was_full and not peek:
                self.changed.wake()

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        """Its own, and that of the peer, who may make room."""
        return (self.changed,) if self.peer is None else (self.changed, self.peer.changed)

    def shutdown(self, how: int) -> None:
        self.read_shut |= how in (SHUT_RD, SHUT_RDWR)
        self.write_shut |= how in (SHUT_WR, SHUT_RDWR)
        self.changed.wake()
        if self._connected is None and not is_local(self):
            raise LinuxError(ENOTCONN, f"{self.path} is not connected, but shut")

    def close(self) -> None:
        super().close()
        self.changed.wake()

    def poll(self) -> int:
        bits = POLLERR if self.error else 0
        if self.inbox or self.read_shut or self.error:
            bits |= POLLIN
        if self.read_shut:
            bits |= POLLRDHUP | (POLLHUP if self.write_shut else 0)
        if self.peer is None or not self.peer.is_open or not self.peer.is_full_for(self):
            bits |= POLLOUT
        return bits


def pair(one: DatagramSocket, other: DatagramSocket) -> None:
    """socketpair(2)"""
    one.pair_with(other)
    other.pair_with(one)
    assert one.name == other.name == unnamed(one.family), "pairs have no names"
