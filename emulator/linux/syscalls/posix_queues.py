"""Message queues of POSIX: mq_open and its relatives. ipc/mqueue.c"""

from __future__ import annotations

import struct

from emulator.linux.errors import (
    EACCES,
    EAGAIN,
    EBUSY,
    EEXIST,
    EINVAL,
    EMFILE,
    ENOENT,
    ENOSPC,
    ETIMEDOUT,
    LinuxError,
)
from emulator.linux.fs.file import O_ACCMODE, O_CREAT, O_EXCL, O_NONBLOCK
from emulator.linux.ipc.posix_queues import (
    HARD_MESSAGE_BYTES,
    HARD_MESSAGES,
    MOST_MESSAGE_BYTES,
    MOST_MESSAGES,
    MOST_PRIORITY,
    MOST_QUEUE_BYTES,
    MOST_QUEUES,
    Notification,
    PosixQueue,
    QueueFile,
    check_size,
    queue_of,
)
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping, WaitQueue, wait_until
from emulator.linux.signals.signal import NSIG, SI_MESGQ, SIGEV_NONE, SIGEV_SIGNAL, SIGEV_THREAD, SignalInfo
from emulator.linux.structures import Timespec
from emulator.linux.syscalls.at import new_mode, tree
from emulator.linux.syscalls.table import Address, OptionalIn, Path, Size, Support, UInt, syscall

ATTRIBUTES = struct.Struct("<4q32x")  # struct mq_attr: flags, most messages, bytes of one, messages
SIGEVENT = struct.Struct("<Qii")  # struct sigevent: value, signal, method


def _name(name: str) -> str:
    """Without the slash, which the C library takes away."""
    if not name:
        raise LinuxError(EINVAL, "an empty name")
    if "/" in name:
        raise LinuxError(EACCES, f"{name}: queues are in one directory")
    return name


@syscall(aarch64=180, x86_64=240)
def mq_open(task: Task, name: Path, flags: int, mode: UInt, attributes: Address) -> int:
    """mq_open(2)"""
    queues = task.kernel.ipc.posix_queues
    name = _name(name)
    wanted = ATTRIBUTES.unpack(task.mm.read(attributes, ATTRIBUTES.size)) if attributes else None
    queue = queues.get(name)
    if queue is None:
        if not flags & O_CREAT:
            raise LinuxError(ENOENT, f"no queue {name}")
        _, most, size, _ = wanted if wanted is not None else (0, MOST_MESSAGES, MOST_MESSAGE_BYTES, 0)
        if not (0 < most <= HARD_MESSAGES and 0 < size <= HARD_MESSAGE_BYTES):
            raise LinuxError(EINVAL, f"a queue of {most} messages of {size} bytes")
        if most * size > MOST_QUEUE_BYTES:
            raise LinuxError(EMFILE, f"a queue of {most * size} bytes: RLIMIT_MSGQUEUE")
        if len(queues) >= MOST_QUEUES:
            raise LinuxError(ENOSPC, f"{MOST_QUEUES} queues: fs.mqueue.queues_max is reached")
        queue = queues[name] = PosixQueue(tree(task).superblock, new_mode(task, mode), most, size)
    elif flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL:
        raise LinuxError(EEXIST, f"queue {name}")
    if flags & O_ACCMODE == O_ACCMODE:
        raise LinuxError(EINVAL, f"mq_open flags {flags:#x}")
    return task.files.install(QueueFile(queue, flags & (O_ACCMODE | O_NONBLOCK), name), cloexec=True)


@syscall(aarch64=181, x86_64=241)
def mq_unlink(task: Task, name: Path) -> int:
    """mq_unlink(2)"""
    if task.kernel.ipc.posix_queues.pop(_name(name), None) is None:
        raise LinuxError(ENOENT, f"no queue {name}")
    return 0


def _until_ns(task: Task, timeout: Timespec | None) -> int | None:
    """An absolute time of CLOCK_REALTIME on the machine's clock."""
    return None if timeout is None else task.clock.elapsed_at(timeout.ns(), realtime=True)


def _wait(task: Task, file: QueueFile, queue: WaitQueue, *, has_room: bool, until_ns: int | None) -> Sleeping[None]:
    """Until there is a message, or room for one."""
    if not file.waits:
        raise LinuxError(EAGAIN, f"{file.path} has {len(file.queue.messages)} messages")

    def ready() -> bool:
        return not file.queue.is_full if has_room else bool(file.queue.messages)

    if not (yield from wait_until(task, ready, lambda: (queue,), f"message queue {file.path}", until_ns)):
        raise LinuxError(ETIMEDOUT, f"message queue {file.path}")


@syscall(aarch64=182, x86_64=242)
def mq_timedsend(
    task: Task, descriptor: int, text: Address, size: Size, priority: UInt, timeout: OptionalIn[Timespec]
) -> Sleeping[int]:
    """mq_timedsend(2)"""
    if priority >= MOST_PRIORITY:
        raise LinuxError(EINVAL, f"priority {priority}")
    until_ns = _until_ns(task, timeout)
    file = queue_of(task.files.get(descriptor), writable=True)
    check_size(file.queue, size, sends=True)
    data = task.mm.read(text, size) if size else b""
    while file.queue.is_full:
        yield from _wait(task, file, file.queue.freed, has_room=True, until_ns=until_ns)
    if file.queue.put(priority, data):
        _tell(task, file.queue)
    return 0


def _tell(task: Task, queue: PosixQueue) -> None:
    """Who has asked hears of it once."""
    asked, queue.notification = queue.notification, None
    if asked is None or asked.method != SIGEV_SIGNAL or not asked.signal:
        return
    found = task.kernel.tasks.get(asked.pid)
    if found is not None:
        info = SignalInfo(asked.signal, SI_MESGQ, pid=task.pid, uid=task.credentials.uid, value=asked.value)
        task.kernel.signal_process(found.process, info)


@syscall(aarch64=183, x86_64=243)
def mq_timedreceive(
    task: Task, descriptor: int, text: Address, size: Size, priority: Address, timeout: OptionalIn[Timespec]
) -> Sleeping[int]:
    """mq_timedreceive(2)"""
    until_ns = _until_ns(task, timeout)
    file = queue_of(task.files.get(descriptor), readable=True)
    queue = file.queue
    check_size(queue, size, sends=False)
    while not queue.messages:
        queue.receivers += 1
        try:
            yield from _wait(task, file, queue.arrived, has_room=False, until_ns=until_ns)
        finally:
            queue.receivers -= 1
    given, data = queue.take()
    if priority:
        task.mm.write(priority, given.to_bytes(4, "little"))
    if data:
        task.mm.write(text, data)
    return len(data)


@syscall(aarch64=184, x86_64=244, support=Support.PARTIAL, note="SIGEV_THREAD is EINVAL; a close does not end it")
def mq_notify(task: Task, descriptor: int, event: Address) -> int:
    """mq_notify(2). What tells nobody keeps others from asking."""
    asked = None
    if event:
        value, signal, method = SIGEVENT.unpack(task.mm.read(event, SIGEVENT.size))
        if method == SIGEV_THREAD:
            task.kernel.name_once("mq_notify with SIGEV_THREAD is not modelled: EINVAL")
        if method not in (SIGEV_NONE, SIGEV_SIGNAL) or (method == SIGEV_SIGNAL and not 0 <= signal <= NSIG):
            raise LinuxError(EINVAL, f"sigevent {method}, signal {signal}")
        asked = Notification(task.pid, method, signal, value)
    queue = queue_of(task.files.get(descriptor)).queue
    before = queue.notification
    if asked is None:
        if before is not None and before.pid == task.pid:
            queue.notification = None
        return 0
    if before is not None and before.pid in task.kernel.tasks:
        raise LinuxError(EBUSY, "somebody has asked already")
    queue.notification = asked
    return 0


@syscall(aarch64=185, x86_64=245)
def mq_getsetattr(task: Task, descriptor: int, new: Address, old: Address) -> int:
    """mq_getattr(3), mq_setattr(3): only O_NONBLOCK can be set."""
    flags = None
    if new:
        flags = ATTRIBUTES.unpack(task.mm.read(new, ATTRIBUTES.size))[0]
        if flags & ~O_NONBLOCK:
            raise LinuxError(EINVAL, f"mq_flags {flags:#x}")
    file = queue_of(task.files.get(descriptor))
    queue = file.queue
    shown = ATTRIBUTES.pack(file.flags & O_NONBLOCK, queue.most_messages, queue.message_bytes, len(queue.messages))
    if flags is not None:
        file.flags = file.flags & ~O_NONBLOCK | flags
    if old:
        task.mm.write(old, shown)
    return 0
