"""Sockets: the machine has no network and no other process, and says so as a kernel without the rest would."""

from __future__ import annotations

import os
import stat as file_mode

from emulator.linux.errors import EAFNOSUPPORT, ECONNREFUSED, EINVAL, ENOTCONN, ENOTSOCK, EOPNOTSUPP, LinuxError
from emulator.linux.file import O_CLOEXEC, O_NONBLOCK, File
from emulator.linux.sockets import LocalSocket
from emulator.linux.syscalls.at import AT_FDCWD, find, tree
from emulator.linux.syscalls.table import Address, Size, Support, UInt, syscall
from emulator.linux.task import Task

AF_UNIX = 1  # linux/socket.h
FAMILIES = {AF_UNIX: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET"}
SOCKET_TYPES = range(1, 6)  # linux/net.h: SOCK_STREAM .. SOCK_SEQPACKET
ADDRESS_BYTES = 110  # struct sockaddr_un: a family of 2 bytes and a path

LOCAL_ONLY = "AF_UNIX only, and there is nobody to connect to; other families are EAFNOSUPPORT, named once"
NO_PEER = "a local socket has no peer here"


def _socket(task: Task, descriptor: int) -> LocalSocket:
    file: File = task.files.get(descriptor)
    if not isinstance(file, LocalSocket):
        raise LinuxError(ENOTSOCK, f"descriptor {descriptor} is not a socket")
    return file


def _check_family(task: Task, family: int) -> None:
    if family != AF_UNIX:
        name = FAMILIES.get(family, f"address family {family}")
        task.kernel.name_once(f"sockets of {name} are not modelled (EAFNOSUPPORT)")
        raise LinuxError(EAFNOSUPPORT, name)


@syscall(aarch64=198, x86_64=41, support=Support.PARTIAL, note=LOCAL_ONLY)
def socket(task: Task, family: int, kind: UInt, protocol: int) -> int:
    """socket(2). SOCK_CLOEXEC and SOCK_NONBLOCK are O_CLOEXEC and O_NONBLOCK."""
    _check_family(task, family)
    if kind & ~(O_CLOEXEC | O_NONBLOCK) not in SOCKET_TYPES:
        raise LinuxError(EINVAL, f"socket type {kind:#x}")
    file = LocalSocket(tree(task).superblock, kind & O_NONBLOCK)
    return task.files.install(file, bool(kind & O_CLOEXEC))


@syscall(aarch64=203, x86_64=42, support=Support.PARTIAL, note=LOCAL_ONLY)
def connect(task: Task, descriptor: int, address: Address, size: UInt) -> int:
    """connect(2). A path that is a socket belongs to a process of the host, which is not there: ECONNREFUSED."""
    _socket(task, descriptor)
    if not 2 < size <= ADDRESS_BYTES:
        raise LinuxError(EINVAL, f"an address of {size} bytes")
    data = task.mm.read(address, size)
    _check_family(task, int.from_bytes(data[:2], "little"))
    path = os.fsdecode(data[2:].split(b"\0")[0])
    if path:
        dentry = find(task, AT_FDCWD, path)
        if file_mode.S_ISSOCK(dentry.node.file_type):
            task.kernel.name_once(f"{dentry.path}: a socket of the host is no part of this machine (ECONNREFUSED)")
    raise LinuxError(ECONNREFUSED, path or "an abstract address")


@syscall(aarch64=199, x86_64=53, support=Support.REFUSED, note="no pairs of sockets: EOPNOTSUPP, named once")
def socketpair(task: Task, family: int, kind: UInt, protocol: int, descriptors: Address) -> int:
    """socketpair(2)"""
    _check_family(task, family)
    task.kernel.name_once("socketpair is not modelled (EOPNOTSUPP)")
    raise LinuxError(EOPNOTSUPP, "socketpair")


def _no_peer(task: Task, descriptor: int) -> int:
    raise LinuxError(ENOTCONN, f"{_socket(task, descriptor).path} is not connected")


@syscall(aarch64=205, x86_64=52, support=Support.REFUSED, note=NO_PEER)
def getpeername(task: Task, descriptor: int) -> int:
    """getpeername(2)"""
    return _no_peer(task, descriptor)


@syscall(aarch64=206, x86_64=44, support=Support.REFUSED, note=NO_PEER)
def sendto(task: Task, descriptor: int, data: Address, size: Size) -> int:
    """sendto(2), send(3)"""
    return _no_peer(task, descriptor)


@syscall(aarch64=207, x86_64=45, support=Support.REFUSED, note=NO_PEER)
def recvfrom(task: Task, descriptor: int, data: Address, size: Size) -> int:
    """recvfrom(2), recv(3)"""
    return _no_peer(task, descriptor)


@syscall(aarch64=210, x86_64=48, support=Support.REFUSED, note=NO_PEER)
def shutdown(task: Task, descriptor: int, how: int) -> int:
    """shutdown(2)"""
    return _no_peer(task, descriptor)


def _no_option(task: Task, descriptor: int, level: int, option: int) -> int:
    path = _socket(task, descriptor).path
    task.kernel.name_once(f"socket option {level}:{option} is not modelled (EOPNOTSUPP)")
    raise LinuxError(EOPNOTSUPP, f"{path}: option {level}:{option}")


@syscall(aarch64=208, x86_64=54, support=Support.REFUSED, note="no options: EOPNOTSUPP, named once")
def setsockopt(task: Task, descriptor: int, level: int, option: int) -> int:
    """setsockopt(2)"""
    return _no_option(task, descriptor, level, option)


@syscall(aarch64=209, x86_64=55, support=Support.REFUSED, note="no options: EOPNOTSUPP, named once")
def getsockopt(task: Task, descriptor: int, level: int, option: int) -> int:
    """getsockopt(2)"""
    return _no_option(task, descriptor, level, option)
