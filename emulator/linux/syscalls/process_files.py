"""pidfds: processes as descriptors, and what one process may do with another's memory and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from emulator.linux.errors import EFAULT, EINVAL, ESRCH, LinuxError
from emulator.linux.fs.destination import Piece
from emulator.linux.fs.file import O_NONBLOCK
from emulator.linux.fs.process_files import ProcessFile, process_of, signalled_by
from emulator.linux.mm.mapping import PAGE_SIZE
from emulator.linux.process.cloning import CLONE_PIDFD
from emulator.linux.process.task import Task
from emulator.linux.ptrace.permission import check_access
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.signals.signal import SI_USER, SignalInfo
from emulator.linux.syscalls.input_output import ends_early
from emulator.linux.syscalls.signals import check_permission, check_signal, given_info, queued
from emulator.linux.syscalls.table import Address, Support, UInt, ULong, syscall
from emulator.linux.syscalls.user_vectors import MAX_BYTES, PORTION_BYTES, any_vectors, vectors


@syscall(aarch64=434, x86_64=434)
def pidfd_open(task: Task, pid: int, flags: UInt) -> int:
    """pidfd_open(2): of a process, by its main thread's number."""
    if flags & ~O_NONBLOCK or pid <= 0:
        raise LinuxError(EINVAL, f"pidfd_open of {pid}, flags {flags:#x}")
    found = task.kernel.tasks.get(pid)
    if found is None:
        raise LinuxError(ESRCH, f"process {pid} does not exist")
    if found.pid != pid:
        raise LinuxError(EINVAL, f"{pid} is a thread of process {found.pid}")
    return task.files.install(ProcessFile(found.process, flags), cloexec=True)


@syscall(aarch64=424, x86_64=424)
def pidfd_send_signal(task: Task, pidfd: int, sig: int, info: Address, flags: UInt) -> int:
    """pidfd_send_signal(2)"""
    if flags:
        raise LinuxError(EINVAL, f"pidfd_send_signal flags {flags:#x}")
    process = signalled_by(task.files.get(pidfd))
    if info:
        given = given_info(task, process.pid, sig, info)
        if int.from_bytes(task.mm.read(info, 4), "little", signed=True) != sig:
            raise LinuxError(EINVAL, f"the siginfo is not of signal {sig}")
    else:
        given = SignalInfo(sig, SI_USER, pid=task.pid, uid=task.credentials.uid)
    check_signal(sig)
    if process.reaped:
        raise LinuxError(ESRCH, f"process {process.pid} has been waited for")
    check_permission(task, process, sig)
    if sig:
        queued(task.kernel.signal_process(process, given))
    return 0


@syscall(aarch64=438, x86_64=438)
def pidfd_getfd(task: Task, pidfd: int, fd: int, flags: UInt) -> int:
    """pidfd_getfd(2): what another process has open; the guest is root and may."""
    if flags:
        raise LinuxError(EINVAL, f"pidfd_getfd flags {flags:#x}")
    process = process_of(task.files.get(pidfd))
    if not process.threads:
        raise LinuxError(ESRCH, f"process {process.pid} has ended")
    return task.files.install(process.threads[0].files.get(fd), cloexec=True)


def check_pidfd(task: Task, flags: int, address: int) -> None:
    """EMFILE and EFAULT of CLONE_PIDFD as long as there is no child."""
    if flags & CLONE_PIDFD:
        task.files.close(task.files.install(ProcessFile(task.process)))
        task.mm.write(address, bytes(4))


def install_pidfd(task: Task, child: Task, flags: int, address: int) -> None:
    """CLONE_PIDFD: the parent gets one of its child."""
    if flags & CLONE_PIDFD:
        descriptor = task.files.install(ProcessFile(child.process), cloexec=True)
        task.mm.write(address, descriptor.to_bytes(4, "little"))


# ---- another process's memory


def _by_page(pieces: list[Piece]) -> Iterator[Piece]:
    """The same memory in parts that lie within a page each."""
    for base, length in pieces:
        while length:
            part = min(length, PAGE_SIZE - base % PAGE_SIZE)
            yield base, part
            base, length = base + part, length - part


def _process_vm(
    task: Task, pid: int, local: int, local_count: int, remote: int, remote_count: int, flags: int, *, write: bool
) -> Sleeping[int]:
    """Move page by page until one side is used up or cannot be reached; EFAULT if nothing could be moved."""
    if flags:
        raise LinuxError(EINVAL, f"process_vm flags {flags:#x}")
    own, others = vectors(task, local, local_count), any_vectors(task, remote, remote_count)
    found = task.kernel.tasks.get(pid)
    if found is None or found.exit_code is not None:
        raise LinuxError(ESRCH, f"process {pid} does not exist")
    check_access(task, found)
    room = min(sum(length for _, length in own), sum(length for _, length in others), MAX_BYTES)
    pairs = _by_page(own)
    at, left = 0, 0
    done = 0
    portions = 0
    for base, length in _by_page(others):
        if done // PORTION_BYTES > portions:
            portions += 1
            if (yield from ends_early(task)) or found.exit_code is not None:
                break
        length = min(length, room - done)
        moved = 0
        while moved < length:
            if not left:
                at, left = next(pairs)
            count = min(left, length - moved)
            try:
                if write:
                    found.mm.write(base + moved, task.mm.read(at, count))
                else:
                    task.mm.write(at, found.mm.read(base + moved, count))
            except LinuxError as error:
                if done + moved and error.code == EFAULT:
                    return done + moved
                raise
            at, left, moved = at + count, left - count, moved + count
        done += length
    return done


@syscall(aarch64=270, x86_64=310)
def process_vm_readv(
    task: Task, pid: int, lvec: Address, liovcnt: int, rvec: Address, riovcnt: int, flags: ULong
) -> Sleeping[int]:
    """process_vm_readv(2)"""
    return _process_vm(task, pid, lvec, liovcnt, rvec, riovcnt, flags, write=False)


@syscall(aarch64=271, x86_64=311)
def process_vm_writev(
    task: Task, pid: int, lvec: Address, liovcnt: int, rvec: Address, riovcnt: int, flags: ULong
) -> Sleeping[int]:
    """process_vm_writev(2)"""
    return _process_vm(task, pid, lvec, liovcnt, rvec, riovcnt, flags, write=True)


# ---- kcmp

KCMP_FILE, KCMP_VM, KCMP_FILES, KCMP_FS, KCMP_SIGHAND, KCMP_IO, KCMP_SYSVSEM, KCMP_EPOLL_TFD = range(8)
DIFFERENT = 3  # without an order, which kcmp(2) allows: it would be that of addresses
RESOURCES: dict[int, Callable[[Task], object]] = {
    KCMP_VM: lambda task: task.mm,
    KCMP_FILES: lambda task: task.files,
    KCMP_FS: lambda task: task.fs,
    KCMP_SIGHAND: lambda task: task.signals.actions,
}


@syscall(
    aarch64=272, x86_64=312, support=Support.PARTIAL, note="not KCMP_IO, KCMP_SYSVSEM, KCMP_EPOLL_TFD: EINVAL; no order"
)
def kcmp(task: Task, pid1: int, pid2: int, type_: int, idx1: ULong, idx2: ULong) -> int:
    """kcmp(2): whether two tasks have the same open file, memory, descriptors ..."""
    one, other = task.kernel.tasks.get(pid1), task.kernel.tasks.get(pid2)
    if one is None or other is None:
        raise LinuxError(ESRCH, f"task {pid2 if one is not None else pid1} does not exist")
    if type_ == KCMP_FILE:
        file = one.files.get(idx1 & 0xFFFF_FFFF)
        return 0 if file is other.files.get(idx2 & 0xFFFF_FFFF) else DIFFERENT
    if type_ not in RESOURCES:
        raise LinuxError(EINVAL, f"kcmp of {type_}")
    return 0 if RESOURCES[type_](one) is RESOURCES[type_](other) else DIFFERENT
