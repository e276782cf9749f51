"""ioctl: what all files have in common is here; the rest is the file's."""

from __future__ import annotations

from emulator.linux.errors import ENOTTY, LinuxError
from emulator.linux.fs.file import O_ASYNC, O_NONBLOCK, File
from emulator.linux.fs.pipes import PipeEnd
from emulator.linux.net.sockets import Socket
from emulator.linux.process.task import Task
from emulator.linux.syscalls.table import UInt, ULong, syscall

# uapi/asm-generic/ioctls.h
FIONBIO, FIONCLEX, FIOCLEX, FIOASYNC = 0x5421, 0x5450, 0x5451, 0x5452
# uapi/asm-generic/sockios.h
FIOSETOWN, SIOCSPGRP, FIOGETOWN, SIOCGPGRP = 0x8901, 0x8902, 0x8903, 0x8904
SOCKET_REQUESTS = range(0x8900, 0x8A00)  # SIOC*: interfaces, routes, time stamps


@syscall(aarch64=29, x86_64=16)
def ioctl(task: Task, fd: int, cmd: UInt, arg: ULong) -> int:
    """ioctl(2). ENOTTY for what a file does not have."""
    file = task.files.get(fd)
    if cmd in (FIOCLEX, FIONCLEX):
        task.files.set_cloexec(fd, cmd == FIOCLEX)
        return 0
    if cmd == FIONBIO:
        wanted = any(task.mm.read(arg, 4))
        file.flags = file.flags | O_NONBLOCK if wanted else file.flags & ~O_NONBLOCK
        return 0
    if cmd == FIOASYNC or (isinstance(file, Socket) and cmd in SOCKET_REQUESTS):
        return _of_socket(task, file, cmd, arg)
    return file.ioctl(task, cmd, arg)


def _of_socket(task: Task, file: File, request: int, argument: int) -> int:
    """Who is to get SIGIO, and whether. Sockets and pipes do not send it."""
    if request == FIOASYNC:
        wanted = any(task.mm.read(argument, 4))
        if wanted and isinstance(file, Socket | PipeEnd):
            task.kernel.name_once("SIGIO of sockets and pipes (FIOASYNC) is not modelled: none is sent")
        file.flags = file.flags | O_ASYNC if wanted else file.flags & ~O_ASYNC
    elif request in (FIOSETOWN, SIOCSPGRP):
        file.signal_owner = int.from_bytes(task.mm.read(argument, 4), "little", signed=True)
    elif request in (FIOGETOWN, SIOCGPGRP):
        task.mm.write(argument, file.signal_owner.to_bytes(4, "little", signed=True))
    else:
        task.kernel.name_once(f"ioctl {request:#x} of sockets is not modelled (ENOTTY)")
        raise LinuxError(ENOTTY, f"{file.path}: ioctl {request:#x}")
    return 0
