"""Sockets: what all kinds have in common, and the inode of one. There is no network beyond the machine's loopback.

What would have to wait is EAGAIN, as for pipes; waiting is the system call's. A transfer takes no time but the calls'.
"""

from __future__ import annotations

import stat as file_mode

from emulator.linux.errors import EAGAIN, EDESTADDRREQ, EINVAL, EOPNOTSUPP, LinuxError
from emulator.linux.fs.attributes import Attributes
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_RDWR, Caller, File
from emulator.linux.fs.memory_files import MemoryNode
from emulator.linux.fs.nodes import PIPE_DEVICE, Node, Superblock
from emulator.linux.fs.open_files import NodeFile
from emulator.linux.fs.paths import Dentry
from emulator.linux.net.socket_addresses import AF_UNIX, Address, InetAddress, UnixAddress, check_own, unnamed
from emulator.linux.net.socket_messages import CAPACITY_BYTES, Credentials, Inbox, Message, Received
from emulator.linux.net.socket_names import SocketNames
from emulator.linux.tty.terminal_requests import FIONREAD, TIOCOUTQ

SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET = 1, 2, 5  # linux/net.h
SOL_SOCKET = 1
SO_REUSEADDR, SO_SNDBUF, SO_REUSEPORT = 2, 7, 15  # asm-generic/socket.h
IPPROTO_IPV6, IPV6_V6ONLY = 41, 26  # linux/in6.h
SHUT_RD, SHUT_WR, SHUT_RDWR = 0, 1, 2


class SocketNode(Node):
    """A socket's inode."""

    __slots__ = ("_number", "superblock")

    def __init__(self, superblock: Superblock) -> None:
        self.superblock = superblock
        self._number = superblock.inodes.new()

    @property
    def file_type(self) -> int:
        return file_mode.S_IFSOCK

    def attributes(self) -> Attributes:
        owner = self.superblock.owner
        return Attributes(self._number, file_mode.S_IFSOCK | 0o777, uid=owner, gid=owner, device=PIPE_DEVICE)


class Socket(NodeFile):
    """An open socket."""

    def __init__(
        self, names: SocketNames, superblock: Superblock, family: int, kind: int, flags: int, credentials: Credentials
    ) -> None:
        node = SocketNode(superblock)
        super().__init__(O_RDWR | flags, f"socket:[{node.inode}]")
        self.dentry = Dentry(node, "", None)
        self.names = names
        self.superblock = superblock
        self.family = family
        self.kind = kind
        self.inbox = Inbox(superblock.budget, kind == SOCK_STREAM)
        self.unread_files: list[File] = []  # when it has been closed: what had been sent to it
        self.name: Address = unnamed(family)
        self.credentials = credentials  # of who made it
        self.options: dict[tuple[int, int], int] = {}  # by level and option: what setsockopt has set
        self.error = 0  # SO_ERROR: the next call's
        self.read_shut = False
        self.write_shut = False

    # ---- names

    @property
    def is_bound(self) -> bool:
        return self.name != unnamed(self.family)

    @property
    def shares_address(self) -> bool:
        return bool(self.options.get((SOL_SOCKET, SO_REUSEADDR)))

    @property
    def shares_port(self) -> bool:
        return bool(self.options.get((SOL_SOCKET, SO_REUSEPORT)))

    @property
    def only_v6(self) -> bool:
        return bool(self.options.get((IPPROTO_IPV6, IPV6_V6ONLY)))

    def rank(self, to: InetAddress, sender: InetAddress | None) -> int:
        name = self.name
        assert isinstance(name, InetAddress), "only those have ports"
        if name.host == to.host:
            return 3
        return (2 if name.is_v4 == to.is_v4 else 1) if name.covers(to.host, only_v6=self.only_v6) else 0

    def bind(self, address: Address) -> None:
        """bind(2) but for paths, which the file tree knows: `bound_to_path`."""
        if self.is_bound:
            raise LinuxError(EINVAL, f"{self.path} has the name {self.name}")
        if isinstance(address, InetAddress):
            check_own(address)
            if address.is_v4 and self.only_v6:
                raise LinuxError(EINVAL, f"{address} for a socket of IPv6 only")
            self.name = self.names.bind_port(address, self)
            return
        assert isinstance(address, UnixAddress), "the other families bind themselves"
        name = address.name or self.names.new_abstract()
        self.names.bind_abstract(name, self)
        self.name = UnixAddress(name)

    def bound_to_path(self, address: UnixAddress) -> None:
        self.name = address

    @property
    def peer_name(self) -> Address:
        """ENOTCONN without a peer."""
        raise NotImplementedError

    @property
    def peer_credentials(self) -> Credentials:
        """SO_PEERCRED"""
        return Credentials()

    # ---- what a kind of socket does

    def connect(self, address: Address, target: Socket | None) -> None:
        """To whom: `target` has that address, if anybody has. EAGAIN where it has to wait."""
        raise NotImplementedError

    def disconnect(self) -> None:
        """connect(2) to AF_UNSPEC."""
        raise LinuxError(EINVAL, f"{self.path} stays connected")

    def listen(self, backlog: int) -> None:
        raise LinuxError(EOPNOTSUPP, f"{self.path} cannot listen")

    def accept(self, flags: int) -> Socket:
        raise LinuxError(EOPNOTSUPP, f"{self.path} cannot accept")

    def send(self, message: Message, address: Address | None = None, target: Socket | None = None) -> int:
        """How many bytes went; EAGAIN if none could. `target` has `address`, or nobody has."""
        raise NotImplementedError

    def check_send(self, size: int) -> None:
        """What is wrong with a message of `size` bytes whatever they are: found before they are looked at."""

    def part_of_send(self, readable: int) -> int:
        """How much of a message is sent of which only the first `readable` bytes can be read."""
        return 0

    @property
    def most_sent(self) -> int:
        """Bytes in one message of AF_UNIX (unix_dgram_sendmsg(), net/unix/af_unix.c)."""
        return self.options.get((SOL_SOCKET, SO_SNDBUF), CAPACITY_BYTES) - 32

    def receive(self, destination: Destination, *, peek: bool = False) -> Received:
        """What there is room for; nothing at the end. Whoever receives files holds them. EAGAIN if nothing is there."""
        raise NotImplementedError

    def shutdown(self, how: int) -> None:
        raise NotImplementedError

    # ---- as a file

    def read(self, task: Caller, destination: Destination) -> int:
        if not destination.left:
            return 0
        received = self.receive(destination)
        received.release_files()
        return received.count

    def write(self, task: Caller, data: bytes) -> int:
        return self.send(Message(data, self.credentials_of(task)))

    def part_of_write(self, size: int, readable: int) -> int:
        self.check_send(size)
        return self.part_of_send(readable)

    def credentials_of(self, task: Caller) -> Credentials:
        return Credentials(task.pid, task.credentials.uid, task.credentials.gid)

    def ioctl(self, task: Caller, request: int, argument: int) -> int:
        if request in (FIONREAD, TIOCOUTQ):
            count = self.inbox.waiting_bytes() if request == FIONREAD else self.unread_by_peer()
            task.mm.write(argument, count.to_bytes(4, "little"))
            return 0
        return super().ioctl(task, request, argument)

    def unread_by_peer(self) -> int:
        """Bytes sent that are not read; TCP's are acknowledged at once."""
        return 0

    def close(self) -> None:
        if self.is_bound:
            self.names.release(self, self.name)
        self.unread_files += self.inbox.clear()

    def let_go(self) -> list[File]:
        files, self.unread_files = self.unread_files, []
        return files

    def raise_error(self) -> None:
        """What happened since the last call is this one's failure."""
        if self.error:
            code, self.error = self.error, 0
            raise LinuxError(code, f"{self.path} ({self.name})")

    def no_message(self) -> LinuxError:
        return LinuxError(EAGAIN, f"{self.path} has nothing to read")

    def no_destination(self) -> LinuxError:
        return LinuxError(EDESTADDRREQ, f"{self.path} is not connected, and no address is given")


class SocketFile(MemoryNode):
    """A path that a local socket has. It stays when the socket is closed; then nobody answers."""

    __slots__ = ("socket",)

    def __init__(self, superblock: Superblock, permissions: int) -> None:
        super().__init__(superblock, file_mode.S_IFSOCK | permissions)
        self.socket: Socket | None = None

    def answers(self) -> Socket | None:
        """Who does."""
        return self.socket if self.socket is not None and self.socket.is_open else None


def is_local(socket: Socket) -> bool:
    return socket.family == AF_UNIX
