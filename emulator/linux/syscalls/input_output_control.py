"""ioctl: what all files have in common is here; the rest is the file's."""

from __future__ import annotations

from emulator.linux.file import O_NONBLOCK
from emulator.linux.syscalls.table import UInt, ULong, syscall
from emulator.linux.task import Task

# uapi/asm-generic/ioctls.h
FIONBIO, FIONCLEX, FIOCLEX = 0x5421, 0x5450, 0x5451


@syscall(aarch64=29, x86_64=16)
def ioctl(task: Task, descriptor: int, request: UInt, argument: ULong) -> int:
    """ioctl(2). ENOTTY for what a file does not have."""
    file = task.files.get(descriptor)
    if request in (FIOCLEX, FIONCLEX):
        task.files.set_cloexec(descriptor, request == FIOCLEX)
        return 0
    if request == FIONBIO:
        wanted = any(task.mm.read(argument, 4))
        file.flags = file.flags | O_NONBLOCK if wanted else file.flags & ~O_NONBLOCK
        return 0
    return file.ioctl(task, request, argument)
