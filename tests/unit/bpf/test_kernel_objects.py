"""What programs read of a task lies where the kernel's BTF says that it does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from perfcore.bpf.kernel_objects import KernelObjects, task_address
from perfcore.bpf.types.vmlinux import kernel_types

CPU: Any = SimpleNamespace(number=3)


def task(tid: int, pid: int, ppid: int) -> Any:
    return SimpleNamespace(tid=tid, pid=pid, ppid=ppid, comm="a task with a long name")


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_members_of_tasks_are_where_btf_has_them(isa: str) -> None:
    """A thread of a process, its process, the parent of that, and the idle task, which is its own."""
    types = kernel_types(isa)
    parent, leader, thread = task(1, 1, 0), task(7, 7, 1), task(8, 7, 1)
    objects = KernelObjects({each.tid: each for each in (parent, leader, thread)})

    def members(of: Any) -> dict[str, bytes | None]:
        return {
            name: objects.read(task_address(of) + offset, types.types.size(type), CPU)
            for name, type, offset in types.types.members(types.task)
        }

    def number(value: int, size: int) -> bytes:
        return value.to_bytes(size, "little")

    assert members(thread) == {
        "pid": number(8, 4),
        "tgid": number(7, 4),
        "real_parent": number(task_address(parent), 8),
        "group_leader": number(task_address(leader), 8),
        "comm": b"a task with a l\0",
    }
    assert members(None) == {
        "pid": bytes(4),
        "tgid": bytes(4),
        "real_parent": number(task_address(None), 8),
        "group_leader": number(task_address(None), 8),
        "comm": b"swapper/3".ljust(16, b"\0"),
    }
    assert set(members(task(9, 9, 1)).values()) == {None}  # there is no such
    assert objects.read(task_address(thread) + 40, 1, CPU) is None  # behind its last member
