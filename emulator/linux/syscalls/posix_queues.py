"""Message queues of POSIX: mq_open and its relatives. ipc/mqueue.c"""

from __future__ import annotations

import struct
from functools import partial

from emulator.linux.clock_ids import CLOCK_REALTIME
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
from emulator.linux.fs.file import O_ACCMODE, O_CREAT, O_EXCL, O_NONBLOCK, held
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
from emulator.linux.sched.hrtimers import HrTimerMode
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
def mq_open(task: Task, u_name: Path, oflag: int, mode: UInt, u_attr: Address) -> int:
    """mq_open(2)"""
    queues = task.kernel.ipc.posix_queues
    u_name = _name(u_name)
    wanted = ATTRIBUTES.unpack(task.mm.read(u_attr, ATTRIBUTES.size)) if u_attr else None
    queue = queues.get(u_name)
    if queue is None:
        if not oflag & O_CREAT:
            raise LinuxError(ENOENT, f"no queue {u_name}")
        _, most, size, _ = wanted if wanted is not None else (0, MOST_MESSAGES, MOST_MESSAGE_BYTES, 0)
        if not (0 < most <= HARD_MESSAGES and 0 < size <= HARD_MESSAGE_BYTES):
            raise LinuxError(EINVAL, f"a queue of {most} messages of {size} bytes")
        if most * size > MOST_QUEUE_BYTES:
            raise LinuxError(EMFILE, f"a queue of {most * size} bytes: RLIMIT_MSGQUEUE")
        if len(queues) >= MOST_QUEUES:
            raise LinuxError(ENOSPC, f"{MOST_QUEUES} queues: fs.mqueue.queues_max is reached")
        queue = queues[u_name] = PosixQueue(tree(task).superblock, new_mode(task, mode), most, size)
    elif oflag & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL:
        raise LinuxError(EEXIST, f"queue {u_name}")
    if oflag & O_ACCMODE == O_ACCMODE:
        raise LinuxError(EINVAL, f"mq_open flags {oflag:#x}")
    return task.files.install(QueueFile(queue, oflag & (O_ACCMODE | O_NONBLOCK), u_name), cloexec=True)


@syscall(aarch64=181, x86_64=241)
def mq_unlink(task: Task, u_name: Path) -> int:
    """mq_unlink(2)"""
    if task.kernel.ipc.posix_queues.pop(_name(u_name), None) is None:
        raise LinuxError(ENOENT, f"no queue {u_name}")
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

    what = f"message queue {file.path}"
    timer = partial(task.sleeper, CLOCK_REALTIME, HrTimerMode.ABS, 0)
    with held(file):
        if not (yield from wait_until(task, ready, lambda: (queue,), what, until_ns, timer=timer)):
            raise LinuxError(ETIMEDOUT, f"message queue {file.path}")


@syscall(aarch64=182, x86_64=242)
def mq_timedsend(
    task: Task, mqdes: int, u_msg_ptr: Address, msg_len: Size, msg_prio: UInt, u_abs_timeout: OptionalIn[Timespec]
) -> Sleeping[int]:
    """mq_timedsend(2)"""
    if msg_prio >= MOST_PRIORITY:
        raise LinuxError(EINVAL, f"priority {msg_prio}")
    until_ns = _until_ns(task, u_abs_timeout)
    file = queue_of(task.files.get(mqdes), writable=True)
    check_size(file.queue, msg_len, sends=True)
    data = task.mm.read(u_msg_ptr, msg_len) if msg_len else b""
    while file.queue.is_full:
        yield from _wait(task, file, file.queue.freed, has_room=True, until_ns=until_ns)
    if file.queue.put(msg_prio, data):
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
    task: Task, mqdes: int, u_msg_ptr: Address, msg_len: Size, u_msg_prio: Address, u_abs_timeout: OptionalIn[Timespec]
) -> Sleeping[int]:
    """mq_timedreceive(2)"""
    until_ns = _until_ns(task, u_abs_timeout)
    file = queue_of(task.files.get(mqdes), readable=True)
    queue = file.queue
    check_size(queue, msg_len, sends=False)
    while not queue.messages:
        queue.receivers += 1
        try:
            yield from _wait(task, file, queue.arrived, has_room=False, until_ns=until_ns)
        finally:
            queue.receivers -= 1
    given, data = queue.take()
    if u_msg_prio:
        task.mm.write(u_msg_prio, given.to_bytes(4, "little"))
    if data:
        task.mm.write(u_msg_ptr, data)
    return len(data)


@syscall(aarch64=184, x86_64=244, support=Support.PARTIAL, note="SIGEV_THREAD is EINVAL; a close does not end it")
def mq_notify(task: Task, mqdes: int, u_notification: Address) -> int:
    """mq_notify(2). What tells nobody keeps others from asking."""
    asked = None
    if u_notification:
        value, signal, method = SIGEVENT.unpack(task.mm.read(u_notification, SIGEVENT.size))
        if method == SIGEV_THREAD:
            task.kernel.name_once("mq_notify with SIGEV_THREAD is not modelled: EINVAL")
        if method not in (SIGEV_NONE, SIGEV_SIGNAL) or (method == SIGEV_SIGNAL and not 0 <= signal <= NSIG):
            raise LinuxError(EINVAL, f"sigevent {method}, signal {signal}")
        asked = Notification(task.pid, method, signal, value)
    queue = queue_of(task.files.get(mqdes)).queue
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
def mq_getsetattr(task: Task, mqdes: int, u_mqstat: Address, u_omqstat: Address) -> int:
    """mq_getattr(3), mq_setattr(3): only O_NONBLOCK can be set."""
    flags = None
    if u_mqstat:
        flags = ATTRIBUTES.unpack(task.mm.read(u_mqstat, ATTRIBUTES.size))[0]
        if flags & ~O_NONBLOCK:
            raise LinuxError(EINVAL, f"mq_flags {flags:#x}")
    file = queue_of(task.files.get(mqdes))
    queue = file.queue
    shown = ATTRIBUTES.pack(file.flags & O_NONBLOCK, queue.most_messages, queue.message_bytes, len(queue.messages))
    if flags is not None:
        file.flags = file.flags & ~O_NONBLOCK | flags
    if u_omqstat:
        task.mm.write(u_omqstat, shown)
    return 0
