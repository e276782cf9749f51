"""Sockets: making, naming, connecting, options. The machine's processes talk to each other, and to nobody else."""

from __future__ import annotations

import stat as file_mode
import struct

from emulator.linux.errors import (
    EADDRINUSE,
    EAFNOSUPPORT,
    EAGAIN,
    ECONNREFUSED,
    EEXIST,
    EINVAL,
    ENETUNREACH,
    ENOTSOCK,
    EOPNOTSUPP,
    EPROTONOSUPPORT,
    ESOCKTNOSUPPORT,
    LinuxError,
)
from emulator.linux.fs.file import O_CLOEXEC, O_NONBLOCK, File, held
from emulator.linux.fs.permissions import WRITE
from emulator.linux.net import socket_options
from emulator.linux.net.datagram_sockets import DatagramSocket, pair
from emulator.linux.net.netlink_sockets import NetlinkSocket
from emulator.linux.net.socket_addresses import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    AF_UNSPEC,
    FAMILIES,
    NetlinkAddress,
    UnixAddress,
    destination,
    parse,
)
from emulator.linux.net.socket_addresses import Address as SocketAddress
from emulator.linux.net.socket_messages import Credentials
from emulator.linux.net.sockets import SHUT_RDWR, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM, Socket, SocketFile
from emulator.linux.net.stream_sockets import StreamSocket, join
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping, wait_until
from emulator.linux.syscalls.at import AT_FDCWD, find, new_mode, start, tree
from emulator.linux.syscalls.table import Address, Support, UInt, syscall

# family, type, protocol -> the kind of socket that it is
NETLINK_ROUTE = 0
SOCK_RAW = 3
KINDS: dict[tuple[int, int, int], type[StreamSocket] | type[DatagramSocket] | type[NetlinkSocket]] = {
    (AF_UNIX, SOCK_STREAM, 0): StreamSocket,
    (AF_UNIX, SOCK_SEQPACKET, 0): StreamSocket,
    (AF_UNIX, SOCK_DGRAM, 0): DatagramSocket,
    (AF_INET, SOCK_STREAM, 0): StreamSocket,
    (AF_INET, SOCK_STREAM, socket_options.IPPROTO_TCP): StreamSocket,
    (AF_INET, SOCK_DGRAM, 0): DatagramSocket,
    (AF_INET, SOCK_DGRAM, socket_options.IPPROTO_UDP): DatagramSocket,
    (AF_INET6, SOCK_STREAM, 0): StreamSocket,
    (AF_INET6, SOCK_STREAM, socket_options.IPPROTO_TCP): StreamSocket,
    (AF_INET6, SOCK_DGRAM, 0): DatagramSocket,
    (AF_INET6, SOCK_DGRAM, socket_options.IPPROTO_UDP): DatagramSocket,
    (AF_NETLINK, SOCK_RAW, NETLINK_ROUTE): NetlinkSocket,
    (AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE): NetlinkSocket,
}
SOCKET_TYPES = range(1, 7)  # linux/net.h: SOCK_STREAM .. SOCK_DCCP
MOST_ADDRESS_BYTES = 128  # struct sockaddr_storage
FEW_FAMILIES = "AF_UNIX, AF_INET, AF_INET6, AF_NETLINK's dumps of lo; others are EAFNOSUPPORT, named once"
LOOPBACK_ONLY = "within the machine: other hosts are ENETUNREACH, named once"
FLAGS = O_CLOEXEC | O_NONBLOCK  # SOCK_CLOEXEC, SOCK_NONBLOCK


def socket_at(task: Task, descriptor: int) -> Socket:
    file: File = task.files.get(descriptor)
    if not isinstance(file, Socket):
        raise LinuxError(ENOTSOCK, f"descriptor {descriptor} is not a socket")
    return file


def _new(task: Task, family: int, kind: int, protocol: int) -> StreamSocket | DatagramSocket | NetlinkSocket:
    if family not in (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK):
        name = FAMILIES.get(family, f"address family {family}")
        task.kernel.name_once(f"sockets of {name} are not modelled (EAFNOSUPPORT)")
        raise LinuxError(EAFNOSUPPORT, name)
    flags, kind = kind & FLAGS, kind & ~FLAGS
    if kind not in SOCKET_TYPES:
        raise LinuxError(EINVAL, f"socket type {kind:#x}")
    if family == AF_UNIX and protocol == AF_UNIX:
        protocol = 0
    made = KINDS.get((family, kind, protocol))
    if made is None:
        task.kernel.name_once(f"sockets of {FAMILIES[family]}, type {kind}, protocol {protocol} are not modelled")
        known = any(key[:2] == (family, kind) for key in KINDS)
        raise LinuxError(EPROTONOSUPPORT if known else ESOCKTNOSUPPORT, f"socket type {kind}, protocol {protocol}")
    files = tree(task)
    credentials = Credentials(task.pid, task.credentials.uid, task.credentials.gid)
    return made(files.sockets, files.superblock, family, kind, flags & O_NONBLOCK, credentials)


@syscall(aarch64=198, x86_64=41, support=Support.PARTIAL, note=FEW_FAMILIES)
def socket(task: Task, family: int, type_: UInt, protocol: int) -> int:
    """socket(2). SOCK_CLOEXEC and SOCK_NONBLOCK are O_CLOEXEC and O_NONBLOCK."""
    return task.files.install(_new(task, family, type_, protocol), bool(type_ & O_CLOEXEC))


@syscall(aarch64=199, x86_64=53)
def socketpair(task: Task, family: int, type_: UInt, protocol: int, usockvec: Address) -> int:
    """socketpair(2)"""
    one, other = _new(task, family, type_, protocol), _new(task, family, type_, protocol)
    if family != AF_UNIX:
        raise LinuxError(EOPNOTSUPP, f"pairs of {FAMILIES[family]}")
    if isinstance(one, StreamSocket) and isinstance(other, StreamSocket):
        join(one, other)
    elif isinstance(one, DatagramSocket) and isinstance(other, DatagramSocket):
        pair(one, other)
    cloexec = bool(type_ & O_CLOEXEC)
    first = task.files.install(one, cloexec)
    second = task.files.install(other, cloexec)
    task.mm.write(usockvec, struct.pack("<ii", first, second))
    return 0


# ---- addresses


def read_address(task: Task, socket: Socket, address: int, size: int) -> SocketAddress:
    if not 0 <= size <= MOST_ADDRESS_BYTES:
        raise LinuxError(EINVAL, f"an address of {size} bytes")
    return parse(socket.family, task.mm.read(address, size) if size else b"")


def write_address(task: Task, socket: Socket, value: SocketAddress | None, address: int, size_at: int) -> None:
    """As much as there is room for, and how long it is in full. None: no address at all."""
    packed = b"" if value is None else value.pack(socket.family)
    room = int.from_bytes(task.mm.read(size_at, 4), "little", signed=True)
    if room < 0:
        raise LinuxError(EINVAL, f"room for {room} bytes of an address")
    if packed[:room]:
        task.mm.write(address, packed[:room])
    task.mm.write(size_at, len(packed).to_bytes(4, "little"))


def target_of(task: Task, socket: Socket, address: SocketAddress) -> Socket | None:
    """Who has the address; None if nobody does. A path must exist."""
    names = tree(task).sockets
    if isinstance(address, UnixAddress):
        path = address.path
        if path is None:
            named = names.abstract(address.name)
            return named if isinstance(named, Socket) else None
        dentry = find(task, AT_FDCWD, path)
        if isinstance(dentry.node, SocketFile):
            tree(task).check(dentry, WRITE)  # unix(7)
            return dentry.node.answers()
        if file_mode.S_ISSOCK(dentry.node.file_type):
            task.kernel.name_once(f"{dentry.path}: a socket of the host is no part of this machine (ECONNREFUSED)")
        raise LinuxError(ECONNREFUSED, f"{path} is no socket of this machine")
    if isinstance(address, NetlinkAddress):
        return None  # the kernel
    try:
        named = names.at_port(socket.kind, destination(address), None)
    except LinuxError as error:
        if error.code == ENETUNREACH:
            task.kernel.name_once(f"{error.why} (ENETUNREACH)")
        raise
    return named if isinstance(named, Socket) else None


@syscall(aarch64=200, x86_64=49)
def bind(task: Task, fd: int, umyaddr: Address, addrlen: int) -> int:
    """bind(2)"""
    socket = socket_at(task, fd)
    name = read_address(task, socket, umyaddr, addrlen)
    if not isinstance(name, UnixAddress) or name.path is None:
        socket.bind(name)
        return 0
    if socket.is_bound:
        raise LinuxError(EINVAL, f"{socket.path} has the name {socket.name}")
    try:
        tree(task).bind_socket(start(task, AT_FDCWD, name.path), name.path, new_mode(task, 0o777), socket)
    except LinuxError as error:
        if error.code == EEXIST:
            raise LinuxError(EADDRINUSE, name.path) from None
        raise
    socket.bound_to_path(name)
    return 0


@syscall(aarch64=204, x86_64=51)
def getsockname(task: Task, fd: int, usockaddr: Address, usockaddr_len: Address) -> int:
    """getsockname(2)"""
    socket = socket_at(task, fd)
    write_address(task, socket, socket.name, usockaddr, usockaddr_len)
    return 0


@syscall(aarch64=205, x86_64=52)
def getpeername(task: Task, fd: int, usockaddr: Address, usockaddr_len: Address) -> int:
    """getpeername(2)"""
    socket = socket_at(task, fd)
    write_address(task, socket, socket.peer_name, usockaddr, usockaddr_len)
    return 0


# ---- connections


@syscall(aarch64=203, x86_64=42, support=Support.PARTIAL, note=LOOPBACK_ONLY)
def connect(task: Task, fd: int, uservaddr: Address, addrlen: int) -> int | Sleeping[int]:
    """connect(2)"""
    socket = socket_at(task, fd)
    if addrlen >= 2 and isinstance(socket, DatagramSocket):
        family = int.from_bytes(task.mm.read(uservaddr, 2), "little")
        if family == AF_UNSPEC:
            socket.disconnect()
            return 0
    name = read_address(task, socket, uservaddr, addrlen)
    target = target_of(task, socket, name)
    try:
        socket.connect(name, target)
    except LinuxError as error:
        if error.code == EAGAIN and isinstance(target, StreamSocket) and not socket.flags & O_NONBLOCK:
            return _connect_later(task, socket, name, target)
        raise
    return 0


def _connect_later(task: Task, socket: Socket, name: SocketAddress, target: StreamSocket) -> Sleeping[int]:
    """Too many others wait to be accepted."""
    with held(socket):
        while True:
            yield from wait_until(
                task, lambda: target.has_room_for_client, lambda: (target.accepted,), f"a connect of {socket.path}"
            )
            try:
                socket.connect(name, target)
            except LinuxError as error:
                if error.code != EAGAIN:
                    raise
            else:
                return 0


@syscall(aarch64=201, x86_64=50)
def listen(task: Task, fd: int, backlog: int) -> int:
    """listen(2)"""
    socket_at(task, fd).listen(backlog)
    return 0


@syscall(aarch64=242, x86_64=288)
def accept4(task: Task, fd: int, upeer_sockaddr: Address, upeer_addrlen: Address, flags: UInt) -> int | Sleeping[int]:
    """accept4(2)"""
    if flags & ~FLAGS:
        raise LinuxError(EINVAL, f"accept4 flags {flags:#x}")
    socket = socket_at(task, fd)
    try:
        server = socket.accept(flags & O_NONBLOCK)
    except LinuxError as error:
        if error.code == EAGAIN and not socket.flags & O_NONBLOCK:
            return _accept_later(task, socket, upeer_sockaddr, upeer_addrlen, flags)
        raise
    return _accepted(task, server, upeer_sockaddr, upeer_addrlen, flags)


def _accept_later(task: Task, socket: Socket, address: int, size_at: int, flags: int) -> Sleeping[int]:
    until_ns = None if socket.read_timeout_ns is None else task.clock.elapsed_ns() + socket.read_timeout_ns
    with held(socket):
        while True:
            yield from wait_until(
                task, lambda: bool(socket.poll()), socket.wait_queues, f"an accept of {socket.path}", until_ns
            )
            try:
                server = socket.accept(flags & O_NONBLOCK)
            except LinuxError as error:
                if error.code != EAGAIN or (until_ns is not None and task.clock.elapsed_ns() >= until_ns):
                    raise
            else:
                return _accepted(task, server, address, size_at, flags)


def _accepted(task: Task, server: Socket, address: int, size_at: int, flags: int) -> int:
    if address:
        write_address(task, server, server.peer_name, address, size_at)
    return task.files.install(server, bool(flags & O_CLOEXEC))


@syscall(aarch64=202, x86_64=43)
def accept(task: Task, fd: int, upeer_sockaddr: Address, upeer_addrlen: Address) -> int | Sleeping[int]:
    """accept(2)"""
    return accept4(task, fd, upeer_sockaddr, upeer_addrlen, 0)


@syscall(aarch64=210, x86_64=48)
def shutdown(task: Task, fd: int, how: int) -> int:
    """shutdown(2)"""
    socket = socket_at(task, fd)
    if not 0 <= how <= SHUT_RDWR:
        raise LinuxError(EINVAL, f"shutdown how {how}")
    socket.shutdown(how)
    return 0


# ---- options

SOME_OPTIONS = "the usual ones of sockets, TCP and IP; others are ENOPROTOOPT, named once"
MOST_OPTION_BYTES = 4096


def _name_unknown(task: Task, level: int, option: int) -> None:
    """What Linux would know. Options of IPv6, say, are ENOPROTOOPT there, too, for these families."""
    if level in socket_options.LEVELS and not socket_options.is_known(level, option):
        task.kernel.name_once(f"socket option {level}:{option} is not modelled (ENOPROTOOPT)")


@syscall(aarch64=208, x86_64=54, support=Support.PARTIAL, note=SOME_OPTIONS)
def setsockopt(task: Task, fd: int, level: int, optname: int, optval: Address, optlen: int) -> int:
    """setsockopt(2)"""
    socket = socket_at(task, fd)
    if not 0 <= optlen <= MOST_OPTION_BYTES:
        raise LinuxError(EINVAL, f"an option of {optlen} bytes")
    _name_unknown(task, level, optname)
    socket_options.store(socket, level, optname, task.mm.read(optval, optlen) if optlen else b"")
    return 0


@syscall(aarch64=209, x86_64=55, support=Support.PARTIAL, note=SOME_OPTIONS)
def getsockopt(task: Task, fd: int, level: int, optname: int, optval: Address, optlen: Address) -> int:
    """getsockopt(2)"""
    socket = socket_at(task, fd)
    room = int.from_bytes(task.mm.read(optlen, 4), "little", signed=True)
    if room < 0:
        raise LinuxError(EINVAL, f"room for {room} bytes of an option")
    _name_unknown(task, level, optname)
    data = socket_options.get(socket, level, optname)[:room]
    if data:
        task.mm.write(optval, data)
    task.mm.write(optlen, len(data).to_bytes(4, "little"))
    return 0
