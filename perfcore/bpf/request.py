"""Request: a call of bpf(2), and what commands share to answer it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from emulator.linux.errors import E2BIG, EINVAL, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.bpf import ATTR_BYTES, NAME_BYTES, Attr, Layout

CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 21, 38, 39  # uapi/linux/capability.h
_NAME = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")


@dataclass(frozen=True, slots=True)
class Request:
    """`address` and `size` are those of the union in the caller's memory."""

    task: Task
    address: int
    size: int
    data: bytes

    @classmethod
    def read(cls, task: Task, address: int, size: int) -> Request:
        """bpf_check_uarg_tail_zero()"""
        if size > 4096:
            raise LinuxError(E2BIG, f"union bpf_attr of {size} bytes")
        data = task.mm.read(address, size)
        if any(data[ATTR_BYTES:]):
            raise LinuxError(E2BIG, f"union bpf_attr has {ATTR_BYTES} bytes; something is set behind them")
        return cls(task, address, size, data[:ATTR_BYTES].ljust(ATTR_BYTES, b"\0"))

    def fields(self, layout: Layout) -> Attr:
        """CHECK_ATTR()"""
        attr = layout.read(self.data)
        if attr.has_more:
            raise LinuxError(EINVAL, "something is set behind the fields of the command")
        return attr

    def write_back(self, attr: Attr, field: str, value: int, code: str = "I") -> None:
        self.task.mm.write(self.address + attr.offset(field), struct.pack("<" + code, value))

    def may(self, capability: int) -> bool:
        """bpf_capable(), perfmon_capable()"""
        credentials = self.task.credentials
        return credentials.has(capability) or credentials.has(CAP_SYS_ADMIN)


def object_name(raw: bytes) -> bytes:
    """bpf_obj_name_cpy()"""
    name, nul, _ = raw.partition(b"\0")
    if not nul or not _NAME.issuperset(name):
        raise LinuxError(EINVAL, f"name {raw!r}: at most {NAME_BYTES - 1} letters, digits, _ and .")
    return name
