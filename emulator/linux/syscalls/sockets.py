"""Sockets: the machine has no network, and says so the way a kernel without the address family does."""

from __future__ import annotations

from emulator.linux.errors import EAFNOSUPPORT, ENOTSOCK, LinuxError
from emulator.linux.syscalls.table import Address, Support, syscall
from emulator.linux.task import Task

NO_SOCKETS = "no address family is built into this kernel"
FAMILIES = {1: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET"}  # linux/socket.h


def _refuse(task: Task, family: int) -> LinuxError:
    name = FAMILIES.get(family, f"address family {family}")
    task.kernel.name_once(f"sockets are not modelled: {name} (EAFNOSUPPORT)")
    return LinuxError(EAFNOSUPPORT, name)


@syscall(aarch64=198, x86_64=41, support=Support.REFUSED, note=NO_SOCKETS)
def socket(task: Task, family: int, kind: int, protocol: int) -> int:
    """socket(2)"""
    raise _refuse(task, family)


@syscall(aarch64=199, x86_64=53, support=Support.REFUSED, note=NO_SOCKETS)
def socketpair(task: Task, family: int, kind: int, protocol: int, descriptors: Address) -> int:
    """socketpair(2)"""
    raise _refuse(task, family)


def _no_socket(task: Task, descriptor: int) -> int:
    task.files.get(descriptor)
    raise LinuxError(ENOTSOCK, f"descriptor {descriptor} is not a socket")


NO_SUCH = "there is no socket that it could be about: ENOTSOCK"


@syscall(aarch64=208, x86_64=54, support=Support.REFUSED, note=NO_SUCH)
def setsockopt(task: Task, descriptor: int) -> int:
    """setsockopt(2)"""
    return _no_socket(task, descriptor)


@syscall(aarch64=209, x86_64=55, support=Support.REFUSED, note=NO_SUCH)
def getsockopt(task: Task, descriptor: int) -> int:
    """getsockopt(2)"""
    return _no_socket(task, descriptor)


@syscall(aarch64=204, x86_64=51, support=Support.REFUSED, note=NO_SUCH)
def getsockname(task: Task, descriptor: int) -> int:
    """getsockname(2)"""
    return _no_socket(task, descriptor)


@syscall(aarch64=205, x86_64=52, support=Support.REFUSED, note=NO_SUCH)
def getpeername(task: Task, descriptor: int) -> int:
    """getpeername(2)"""
    return _no_socket(task, descriptor)


@syscall(aarch64=206, x86_64=44, support=Support.REFUSED, note=NO_SUCH)
def sendto(task: Task, descriptor: int) -> int:
    """sendto(2)"""
    return _no_socket(task, descriptor)


@syscall(aarch64=207, x86_64=45, support=Support.REFUSED, note=NO_SUCH)
def recvfrom(task: Task, descriptor: int) -> int:
    """recvfrom(2)"""
    return _no_socket(task, descriptor)
