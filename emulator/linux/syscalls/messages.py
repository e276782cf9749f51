"""Messages: send, recv and their relatives, with addresses, open files (SCM_RIGHTS) and credentials beside the data."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from emulator.linux.errors import (
    EAGAIN,
    EINVAL,
    EMSGSIZE,
    EOPNOTSUPP,
    BrokenPipe,
    LinuxError,
)
from emulator.linux.fs.destination import Destination, Piece, UserBuffer, check_range, in_memory, read_pieces
from emulator.linux.fs.file import O_NONBLOCK, POLLERR, POLLHUP, POLLIN, File, held
from emulator.linux.net.socket_addresses import AF_UNIX
from emulator.linux.net.socket_addresses import Address as SocketAddress
from emulator.linux.net.socket_messages import Message, Received
from emulator.linux.net.socket_options import SO_PASSCRED
from emulator.linux.net.sockets import SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET, Socket
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping, WaitQueue, wait_until
from emulator.linux.structures import Timespec
from emulator.linux.syscalls.failures import fail
from emulator.linux.syscalls.sockets import read_address, socket_at, target_of, write_address
from emulator.linux.syscalls.table import Address, Size, Support, UInt, syscall
from emulator.linux.syscalls.user_vectors import MAX_BYTES, MAX_VECTORS, vectors

# linux/socket.h
MSG_OOB, MSG_PEEK, MSG_DONTROUTE, MSG_CTRUNC, MSG_TRUNC, MSG_DONTWAIT, MSG_EOR, MSG_WAITALL = (
    1, 2, 4, 8, 0x20, 0x40, 0x80, 0x100,
)  # fmt: skip
MSG_CONFIRM, MSG_ERRQUEUE, MSG_NOSIGNAL, MSG_MORE, MSG_WAITFORONE, MSG_CMSG_CLOEXEC = (
    0x800, 0x2000, 0x4000, 0x8000, 0x10000, 0x4000_0000,
)  # fmt: skip
SEND_FLAGS = MSG_DONTROUTE | MSG_DONTWAIT | MSG_EOR | MSG_CONFIRM | MSG_NOSIGNAL | MSG_MORE
RECEIVE_FLAGS = MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT | MSG_WAITALL | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC | MSG_WAITFORONE
SCM_RIGHTS, SCM_CREDENTIALS = 1, 2
MOST_FILES = 253  # SCM_MAX_FD
MOST_CONTROL_BYTES = 1 << 16
NO_URGENT_DATA = "no urgent data, no error queue: MSG_OOB and other flags are EOPNOTSUPP"

CONTROL_HEADER = struct.Struct("<Qii")  # struct cmsghdr
MESSAGE_HEADER = struct.Struct("<QI4xQQQQi4x")  # struct msghdr (user_msghdr)
MULTIPLE_BYTES = MESSAGE_HEADER.size + 8  # struct mmsghdr


@dataclass(slots=True)
class Header:
    """struct msghdr"""

    address: int  # where it is in user memory
    name: int
    name_size: int
    vector: int
    vector_count: int
    control: int
    control_size: int
    flags: int

    @classmethod
    def read(cls, task: Task, address: int) -> Header:
        header = cls(address, *MESSAGE_HEADER.unpack(task.mm.read(address, MESSAGE_HEADER.size)))
        if header.vector_count > MAX_VECTORS:
            raise LinuxError(EMSGSIZE, f"{header.vector_count} vectors; at most {MAX_VECTORS}")
        return header


def _check_flags(task: Task, flags: int, known: int) -> None:
    if flags & ~known:
        task.kernel.name_once(f"message flags {flags & ~known:#x} are not modelled (EOPNOTSUPP)")
        raise LinuxError(EOPNOTSUPP, f"flags {flags & ~known:#x}")


def _waits(socket: Socket, flags: int) -> bool:
    return not (socket.flags & O_NONBLOCK or flags & MSG_DONTWAIT)


def _each(
    task: Task,
    headers: int,
    count: int,
    move: Callable[[Header, int], Sleeping[int]],
    is_over: Callable[[], bool] = lambda: False,
) -> Sleeping[int]:
    """Move the messages of an array of struct mmsghdr; how many. `move` has a message's header and its number.

    An error after the first message is the next call's, but its signal comes now. `is_over` is asked behind each.
    """
    for number in range(min(count, MAX_VECTORS)):
        at = headers + number * MULTIPLE_BYTES
        try:
            moved = yield from move(Header.read(task, at), number)
        except LinuxError as error:
            if not number:
                raise
            fail(task, error)
            return number
        task.mm.write(at + MESSAGE_HEADER.size, moved.to_bytes(4, "little"))
        if is_over():
            return number + 1
    return min(count, MAX_VECTORS)


# ---- sending


def _send(task: Task, socket: Socket, message: Message, address: SocketAddress | None, flags: int) -> Sleeping[int]:
    whole = not message.unreadable
    target = None
    if address is not None and whole and socket.kind == SOCK_DGRAM:
        target = target_of(task, socket, address)
    waits = _waits(socket, flags)
    until_ns = None if socket.write_timeout_ns is None else task.clock.elapsed_ns() + socket.write_timeout_ns
    data = message.data
    done = before = 0

    def queues() -> tuple[WaitQueue, ...]:
        return socket.wait_queues() if target is None else (*socket.wait_queues(), target.changed)

    def wakes() -> int:
        return sum(queue.wakes for queue in queues())

    def changed() -> bool:
        """Somebody has made room, or nobody will: too little for this message may be enough for `poll`."""
        return wakes() != before

    with held(socket):
        while True:
            try:
                message.data = data[done:]
                done += socket.send(message, address, target)
                message.files = ()
                if done == len(data) or not waits or not whole:
                    return done
            except LinuxError as error:
                if done and not (error.code == EAGAIN and waits):
                    return done
                if flags & MSG_NOSIGNAL and isinstance(error, BrokenPipe):
                    raise LinuxError(error.code, error.why) from None
                if error.code != EAGAIN or not waits:
                    raise
            try:
                before = wakes()
                if not (yield from wait_until(task, changed, queues, f"a send of {socket.path}", until_ns)):
                    raise LinuxError(EAGAIN, f"{socket.path}: the timeout is over")
                socket.check_waited_write()
            except LinuxError:
                if done:
                    return done
                raise


def _control_messages(data: bytes) -> list[tuple[int, int, bytes]]:
    """(level, type, contents) of each struct cmsghdr."""
    found = []
    at = 0
    while at + CONTROL_HEADER.size <= len(data):
        length, level, kind = CONTROL_HEADER.unpack_from(data, at)
        if not CONTROL_HEADER.size <= length <= len(data) - at:
            raise LinuxError(EINVAL, f"a control message of {length} bytes in {len(data) - at}")
        found.append((level, kind, data[at + CONTROL_HEADER.size : at + length]))
        at += -(-length // 8) * 8
    return found


def _message(task: Task, socket: Socket, pieces: list[Piece]) -> Message:
    """What of a process's memory is sent: all, or what comes before the first byte that cannot be read."""
    size = sum(length for _, length in pieces)
    data = read_pieces(task.mm, pieces)
    return Message(data, socket.credentials_of(task), unreadable=size - len(data))


def _add_control(task: Task, socket: Socket, message: Message, control: bytes) -> None:
    for level, kind, contents in _control_messages(control):
        if level != SOL_SOCKET or kind not in (SCM_RIGHTS, SCM_CREDENTIALS):
            task.kernel.name_once(f"control messages {level}:{kind} are not modelled (EINVAL)")
            raise LinuxError(EINVAL, f"control message {level}:{kind}")
        if kind == SCM_RIGHTS and socket.family == AF_UNIX:
            descriptors = struct.unpack(f"<{len(contents) // 4}i", contents[: len(contents) // 4 * 4])
            if len(descriptors) + len(message.files) > MOST_FILES:
                raise LinuxError(EINVAL, f"{len(descriptors)} files in one message; at most {MOST_FILES}")
            message.files += tuple(task.files.get(descriptor) for descriptor in descriptors)


def _send_message(task: Task, socket: Socket, header: Header, flags: int) -> Sleeping[int]:
    if header.control_size > MOST_CONTROL_BYTES:
        raise LinuxError(EINVAL, f"{header.control_size} bytes of control messages")
    address = read_address(task, socket, header.name, header.name_size) if header.name and header.name_size else None
    pieces = vectors(task, header.vector, header.vector_count)
    control = task.mm.read(header.control, header.control_size) if header.control_size else b""
    message = _message(task, socket, pieces)
    _add_control(task, socket, message, control)
    return (yield from _send(task, socket, message, address, flags))


@syscall(aarch64=206, x86_64=44, support=Support.PARTIAL, note=NO_URGENT_DATA)
def sendto(task: Task, fd: int, buff: Address, len_: Size, flags: UInt, addr: Address, addr_len: int) -> Sleeping[int]:
    """sendto(2), send(3)"""
    socket = socket_at(task, fd)
    _check_flags(task, flags, SEND_FLAGS)
    name = read_address(task, socket, addr, addr_len) if addr else None
    return _send(task, socket, _message(task, socket, [(buff, min(len_, MAX_BYTES))]), name, flags)


@syscall(aarch64=211, x86_64=46, support=Support.PARTIAL, note=NO_URGENT_DATA)
def sendmsg(task: Task, fd: int, msg: Address, flags: UInt) -> Sleeping[int]:
    """sendmsg(2)"""
    socket = socket_at(task, fd)
    _check_flags(task, flags, SEND_FLAGS)
    return _send_message(task, socket, Header.read(task, msg), flags)


@syscall(aarch64=269, x86_64=307, support=Support.PARTIAL, note=NO_URGENT_DATA)
def sendmmsg(task: Task, fd: int, mmsg: Address, vlen: UInt, flags: UInt) -> Sleeping[int]:
    """sendmmsg(2)"""
    socket = socket_at(task, fd)
    _check_flags(task, flags, SEND_FLAGS)
    return _each(task, mmsg, vlen, lambda header, number: _send_message(task, socket, header, flags))


# ---- receiving


def _check_receive_flags(task: Task, socket: Socket, flags: int) -> None:
    if flags & MSG_ERRQUEUE:
        raise LinuxError(EAGAIN, f"{socket.path} has no error queue")
    _check_flags(task, flags, RECEIVE_FLAGS)


def _receive(task: Task, socket: Socket, destination: Destination, flags: int) -> Sleeping[Received]:
    """One message; with MSG_WAITALL of a stream as many as fill the destination."""
    waits = _waits(socket, flags)
    until_ns = None if socket.read_timeout_ns is None else task.clock.elapsed_ns() + socket.read_timeout_ns
    peek = bool(flags & MSG_PEEK)
    whole: Received | None = None

    def ready() -> bool:
        return bool(socket.poll() & (POLLIN | POLLERR | POLLHUP))

    with held(socket):
        while True:
            try:
                received = socket.receive(destination, peek=peek)
                if whole is None:
                    whole = received
                else:
                    whole.count += received.count
                    whole.files += received.files
                wants_more = flags & MSG_WAITALL and not peek and socket.kind == SOCK_STREAM and received.count
                if not wants_more or whole.files or not destination.left:
                    return whole
                continue
            except LinuxError as error:
                if error.code != EAGAIN or not waits:
                    if whole is not None:
                        return whole
                    raise
            try:
                if not (
                    yield from wait_until(task, ready, socket.wait_queues, f"a receive of {socket.path}", until_ns)
                ):
                    raise LinuxError(EAGAIN, f"{socket.path}: the timeout is over")
            except LinuxError:
                if whole is not None:
                    return whole
                raise


def _length(socket: Socket, received: Received, flags: int) -> int:
    """What the call returns: with MSG_TRUNC how long a message was in full."""
    return received.length if flags & MSG_TRUNC and socket.kind != SOCK_STREAM else received.count


@syscall(aarch64=207, x86_64=45, support=Support.PARTIAL, note=NO_URGENT_DATA)
def recvfrom(
    task: Task, fd: int, ubuf: Address, size: Size, flags: UInt, addr: Address, addr_len: Address
) -> Sleeping[int]:
    """recvfrom(2), recv(3)"""
    socket = socket_at(task, fd)
    _check_receive_flags(task, socket, flags)
    check_range(task.mm, ubuf, size)
    received = yield from _receive(task, socket, UserBuffer(task.mm, ubuf, min(size, MAX_BYTES)), flags)
    received.release_files()
    if addr:
        write_address(task, socket, received.sender, addr, addr_len)
    return _length(socket, received, flags)


def _put_control(room: Destination, kind: int, contents: bytes) -> int:
    """How many bytes a control message takes, for which there is room; 0 if it does not arrive."""
    message = CONTROL_HEADER.pack(CONTROL_HEADER.size + len(contents), SOL_SOCKET, kind) + contents
    padded = message + bytes(min(-len(message) % 8, room.left - len(message)))
    return len(padded) if room.put(padded) == len(padded) else 0


def _install(task: Task, files: tuple[File, ...], cloexec: bool) -> list[int]:
    """Descriptors for as many of the files as there may be."""
    descriptors: list[int] = []
    with suppress(LinuxError):  # too many are open
        for file in files:
            descriptors.append(task.files.install(file, cloexec))
    return descriptors


def _control(task: Task, socket: Socket, received: Received, room: Destination, cloexec: bool) -> tuple[int, int]:
    """How many bytes of control messages are told, and MSG_CTRUNC if not all are. Files get their descriptors here."""
    told = flags = 0
    if socket.options.get((SOL_SOCKET, SO_PASSCRED)):
        sender = received.credentials
        contents = struct.pack("<III", sender.pid, sender.uid, sender.gid)
        if CONTROL_HEADER.size + len(contents) <= room.left:
            told = _put_control(room, SCM_CREDENTIALS, contents)
        else:
            flags = MSG_CTRUNC
    if received.files:
        fitting = max(0, room.left - CONTROL_HEADER.size) // 4
        descriptors = _install(task, received.files[:fitting], cloexec)
        count = 0
        if descriptors:
            count = _put_control(room, SCM_RIGHTS, struct.pack(f"<{len(descriptors)}i", *descriptors))
            if not count:
                for descriptor in descriptors:
                    task.files.close(descriptor)
        if not count or len(descriptors) < len(received.files):
            flags = MSG_CTRUNC
        told += count
    return told, flags


def _receive_message(task: Task, socket: Socket, header: Header, flags: int) -> Sleeping[int]:
    pieces = vectors(task, header.vector, header.vector_count)
    size = sum(length for _, length in pieces)
    received = yield from _receive(task, socket, in_memory(task.mm, pieces), flags)
    try:
        room = UserBuffer(task.mm, header.control, header.control_size)
        control_bytes, told = _control(task, socket, received, room, bool(flags & MSG_CMSG_CLOEXEC))
    finally:
        received.release_files()
    if socket.kind != SOCK_STREAM and received.length > size:
        told |= MSG_TRUNC
    if header.name:
        write_address(task, socket, received.sender, header.name, header.address + 8)
    task.mm.write(header.address + 40, struct.pack("<Qi", control_bytes, told | flags & MSG_CMSG_CLOEXEC))
    return _length(socket, received, flags)


@syscall(aarch64=212, x86_64=47, support=Support.PARTIAL, note=NO_URGENT_DATA)
def recvmsg(task: Task, fd: int, msg: Address, flags: UInt) -> Sleeping[int]:
    """recvmsg(2)"""
    socket = socket_at(task, fd)
    _check_receive_flags(task, socket, flags)
    return (yield from _receive_message(task, socket, Header.read(task, msg), flags))


@syscall(aarch64=243, x86_64=299, support=Support.PARTIAL, note=NO_URGENT_DATA)
def recvmmsg(task: Task, fd: int, mmsg: Address, vlen: UInt, flags: UInt, timeout: Address) -> Sleeping[int]:
    """recvmmsg(2). As in Linux the timeout is looked at behind each message, and what is left of it is told."""
    socket = socket_at(task, fd)
    _check_receive_flags(task, socket, flags)
    socket.raise_error()
    until_ns = None
    if timeout:
        until_ns = task.clock.elapsed_ns() + Timespec.unpack(task.mm.read(timeout, Timespec.SIZE)).ns()

    def receive(header: Header, number: int) -> Sleeping[int]:
        only_there = MSG_DONTWAIT if number and flags & MSG_WAITFORONE else 0
        try:
            return (yield from _receive_message(task, socket, header, flags | only_there))
        except LinuxError as error:
            if number and error.code != EAGAIN:
                socket.error = error.code  # the next call's
            raise

    def is_over() -> bool:
        return until_ns is not None and task.clock.elapsed_ns() >= until_ns

    received = yield from _each(task, mmsg, vlen, receive, is_over)
    if until_ns is not None:
        left_ns = max(0, until_ns - task.clock.elapsed_ns())
        task.mm.write(timeout, Timespec.from_ns(left_ns).pack())
    return received
