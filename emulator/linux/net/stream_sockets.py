"""Stream sockets: connections, of AF_UNIX (SOCK_STREAM, SOCK_SEQPACKET) and of TCP, which differ in how they end.

A listening socket keeps the servers' ends of those that have connected until they are accepted, so that a client may
write at once. Neither TIME_WAIT nor a handshake takes time.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from emulator.linux.errors import (
    EAGAIN,
    ECONNREFUSED,
    ECONNRESET,
    EINPROGRESS,
    EINVAL,
    EISCONN,
    EMSGSIZE,
    ENETUNREACH,
    ENOTCONN,
    EOPNOTSUPP,
    EPIPE,
    EPROTOTYPE,
    BrokenPipe,
    LinuxError,
)
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_NONBLOCK, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP
from emulator.linux.fs.nodes import Superblock
from emulator.linux.net.socket_addresses import Address, InetAddress, destination, loopback_of
from emulator.linux.net.socket_messages import BUFFER_BYTES, TCP_BUFFER_BYTES, Credentials, Message, Received
from emulator.linux.net.socket_names import SocketNames
from emulator.linux.net.sockets import SHUT_RD, SHUT_RDWR, SHUT_WR, SOCK_STREAM, Socket, is_local
from emulator.linux.sched.waiting import WaitQueue

MOST_BACKLOG = 4096  # net.core.somaxconn


class State(Enum):
    """Of a connection."""

    FRESH = "not connected"
    LISTENING = "listening"
    CONNECTED = "connected"


class StreamSocket(Socket):
    """One end of a connection, or who waits for such."""

    def __init__(
        self, names: SocketNames, superblock: Superblock, family: int, kind: int, flags: int, credentials: Credentials
    ) -> None:
        super().__init__(names, superblock, family, kind, flags, credentials)
        self.state = State.FRESH
        self.peer: StreamSocket | None = None  # None once it is closed, too
        self._peer_name: Address = self.name
        self._peer_credentials = Credentials()
        self.ended = False  # the peer writes no more
        self._backlog: deque[StreamSocket] = deque()
        self._most_waiting = 0
        self._answered = False  # TCP: a write has been answered with a reset
        self._in_progress = False  # TCP: connect has said EINPROGRESS
        self.accepted = WaitQueue()  # where clients wait that find too many others

    # ---- connecting

    @property
    def shares_address(self) -> bool:
        return super().shares_address and self.state is not State.LISTENING

    def rank(self, to: InetAddress, sender: InetAddress | None) -> int:
        return super().rank(to, sender) if self.state is State.LISTENING else 0

    def listen(self, backlog: int) -> None:
        if self.state is State.CONNECTED:
            raise LinuxError(EINVAL, f"{self.path} is connected")
        if not self.is_bound:
            if is_local(self):
                raise LinuxError(EINVAL, f"{self.path} has no name to listen at")
            self.bind(self.name)
        self.state = State.LISTENING
        self._most_waiting = min(backlog & 0xFFFF_FFFF, MOST_BACKLOG)
        self.changed.wake()

    @property
    def has_room_for_client(self) -> bool:
        return self.state is not State.LISTENING or len(self._backlog) <= self._most_waiting

    def connect(self, address: Address, target: Socket | None) -> None:
        if self.state is State.LISTENING:
            raise LinuxError(EINVAL if is_local(self) else EISCONN, f"{self.path} listens")
        if self.state is State.CONNECTED:
            if self._in_progress:
                self._in_progress = False
                return
            raise LinuxError(EISCONN, f"{self.path} is connected to {self._peer_name}")
        self.raise_error()
        if not is_local(self):
            assert isinstance(address, InetAddress), "parsed for this family"
            address = destination(address)
            if address.is_v4 and self.only_v6:
                raise LinuxError(ENETUNREACH, f"{address} for a socket of IPv6 only")
        if target is not None and target.kind != self.kind:
            raise LinuxError(EPROTOTYPE, f"{address} is of another type")
        later = bool(self.flags & O_NONBLOCK) and not is_local(self)
        if not isinstance(target, StreamSocket) or target.state is not State.LISTENING:
            if later:
                self.error = ECONNREFUSED
                self.changed.wake()
                raise LinuxError(EINPROGRESS, f"to {address}")
            raise LinuxError(ECONNREFUSED, f"nobody listens at {address}")
        if not target.has_room_for_client and not later:
            raise LinuxError(EAGAIN, f"{len(target._backlog)} wait at {address}")
        if not is_local(self) and not self.is_bound:
            assert isinstance(address, InetAddress), "parsed for this family"
            self.bind(InetAddress(loopback_of(address)))
        target._take_client(self, address)
        if later:
            self._in_progress = True
            raise LinuxError(EINPROGRESS, f"to {address}")

    def _take_client(self, client: StreamSocket, address: Address) -> None:
        server = StreamSocket(self.names, self.superblock, self.family, self.kind, 0, self.credentials)
        server.options.update(self.options)
        server.inbox.capacity = self.inbox.capacity
        server.name = self.name if is_local(self) else address
        if isinstance(client.name, InetAddress) and isinstance(address, InetAddress) and client.name.is_any:
            client.name = InetAddress(address.host, client.name.port)
        join(client, server)
        self._backlog.append(server)
        self.changed.wake()

    def accept(self, flags: int) -> Socket:
        if self.state is not State.LISTENING:
            raise LinuxError(EINVAL, f"{self.path} does not listen")
        if not self._backlog:
            raise LinuxError(EAGAIN, f"nobody connects to {self.name}")
        server = self._backlog.popleft()
        server.flags |= flags
        server.changed.wake()
        self.accepted.wake()
        return server

    @property
    def peer_name(self) -> Address:
        if self.state is not State.CONNECTED or (self.peer is None and not is_local(self) and self._answered):
            raise LinuxError(ENOTCONN, f"{self.path} is not connected")
        return self._peer_name

    @property
    def peer_credentials(self) -> Credentials:
        return self._peer_credentials

    # ---- transfer

    def send(self, message: Message, address: Address | None = None, target: Socket | None = None) -> int:
        """Packets go to the peer, whatever the address."""
        if address is not None and is_local(self) and self.kind == SOCK_STREAM:
            code = EISCONN if self.state is State.CONNECTED else EOPNOTSUPP
            raise LinuxError(code, f"{self.path}: an address is given")
        size = message.size
        self.check_send(size)
        peer = self.peer
        if not size and self.kind == SOCK_STREAM:
            return 0
        if peer is not None and peer.inbox.room <= 0:
            raise LinuxError(EAGAIN, f"{self.path}: the peer has {peer.inbox.size} bytes to read")
        if message.unreadable:
            message.keep(self.part_of_send(len(message.data)))
        if peer is None or (peer.read_shut and peer.write_shut):  # TCP, since `check_send`
            self._reset()
            return len(message.data)
        if self.kind == SOCK_STREAM:
            message.data = message.data[: peer.inbox.room]
        peer.inbox.put(message)
        peer.changed.wake()
        return len(message.data)

    def _reset(self) -> None:
        """TCP: what nobody reads is answered with a reset."""
        self._answered = True
        self.error = EPIPE
        self.changed.wake()
        if self.peer is not None:
            self.peer._answered = True
            self.peer.error = ECONNRESET
            self.peer.changed.wake()

    def check_send(self, size: int) -> None:
        if not is_local(self):
            self._check_tcp()
            return
        packets = self.kind != SOCK_STREAM
        if packets:
            self.raise_error()
        if self.state is not State.CONNECTED:
            raise LinuxError(ENOTCONN, f"{self.path} is {self.state.value}")
        if packets and size > self.most_sent:
            raise LinuxError(EMSGSIZE, f"a message of {size} bytes; at most {self.most_sent}")
        if self.write_shut or self.peer is None:
            why = f"{self.path}: nobody reads any more"
            raise LinuxError(EPIPE, why) if packets else BrokenPipe(why)

    def check_waited_write(self) -> None:
        """AF_UNIX: a reset, or that nobody reads; without a signal (sock_alloc_send_pskb(), net/core/sock.c)."""
        if is_local(self):
            self.raise_error()
            if self.write_shut or self.peer is None:
                raise LinuxError(EPIPE, f"{self.path}: nobody reads any more")

    def _check_tcp(self) -> None:
        if self.error == EPIPE:  # what is said next, too
            self.error = 0
        self.raise_error()
        if self.state is not State.CONNECTED:
            raise BrokenPipe(f"{self.path} is {self.state.value}")
        if self.write_shut or self._answered:
            raise BrokenPipe(f"{self.path} is shut for writing")

    def part_of_send(self, readable: int) -> int:
        """Whole buffers, of a stream."""
        buffer_bytes = BUFFER_BYTES if is_local(self) else TCP_BUFFER_BYTES
        return readable // buffer_bytes * buffer_bytes if self.kind == SOCK_STREAM else 0

    def receive(self, destination: Destination, *, peek: bool = False) -> Received:
        if self.state is not State.CONNECTED:
            self.raise_error()
            unconnected = EINVAL if is_local(self) and self.kind == SOCK_STREAM else ENOTCONN
            raise LinuxError(unconnected, f"{self.path} is {self.state.value}")
        if self.inbox:
            was_full = self.inbox.room <= 0
            try:
                return self.inbox.take(destination, peek=peek)
            finally:
                if was_full and self.peer is not None:
                    self.peer.changed.wake()
        if self.error != EPIPE:  # which is for writes: what came before the reset had an end
            self.raise_error()
        if self.ended or self.read_shut:
            return Received()
        raise self.no_message()

    def unread_by_peer(self) -> int:
        return self.peer.inbox.waiting_bytes() if self.peer is not None and is_local(self) else 0

    # ---- the end

    def shutdown(self, how: int) -> None:
        if self.state is State.LISTENING and not is_local(self):
            self.state = State.FRESH
            self.changed.wake()
            return
        if self.state is not State.CONNECTED and not (is_local(self) and self.state is State.FRESH):
            raise LinuxError(ENOTCONN, f"{self.path} is {self.state.value}")
        if how in (SHUT_RD, SHUT_RDWR):
            self.read_shut = True
            if self.peer is not None and is_local(self):
                self.peer.write_shut = True
        if how in (SHUT_WR, SHUT_RDWR):
            self.write_shut = True
            if self.peer is not None:
                self.peer.ended = True
        self.changed.wake()
        if self.peer is not None:
            self.peer.changed.wake()

    def close(self) -> None:
        for waiting in self._backlog:
            waiting._leave(reset=True)
            self.unread_files += waiting.inbox.clear()
        self._backlog.clear()
        self._leave(reset=bool(self.inbox))
        super().close()
        self.accepted.wake()

    def _leave(self, *, reset: bool) -> None:
        """The peer finds the end of what was sent, or, where something sent was not read, an error."""
        peer, self.peer = self.peer, None
        if peer is None:
            return
        peer.peer = None
        peer.ended = True
        if reset:
            peer.error = ECONNRESET
            peer._answered = not is_local(self)
        peer.changed.wake()

    def poll(self) -> int:
        if self.state is State.LISTENING:
            return POLLIN if self._backlog else 0
        bits = POLLERR if self.error else 0
        if self.state is State.FRESH:
            refused = POLLIN | POLLRDHUP if self.error else 0
            return bits | POLLOUT | POLLHUP | refused
        ended = self.ended or self.read_shut
        if self.inbox or ended or self.error:
            bits |= POLLIN
        if ended:
            bits |= POLLRDHUP
        gone = self.peer is None if is_local(self) else self._answered
        if gone or (ended and self.write_shut):
            bits |= POLLHUP
        if self.peer is None or self.write_shut or self.peer.inbox.room > 0:
            bits |= POLLOUT
        return bits


def join(one: StreamSocket, other: StreamSocket) -> None:
    """Make a connection of two ends."""
    for end, peer in ((one, other), (other, one)):
        end.state = State.CONNECTED
        end.peer = peer
        end.write_shut |= peer.read_shut and is_local(end)
        end._peer_name = peer.name
        end._peer_credentials = peer.credentials
        end.changed.wake()
