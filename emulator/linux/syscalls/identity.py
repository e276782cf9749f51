"""Identity: who a process is, on what system; random bytes. All pinned."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

from emulator.linux.errors import EACCES, EFAULT, EINVAL, EPERM, ESRCH, LinuxError
from emulator.linux.fs.destination import UserBuffer
from emulator.linux.proc.procfs import free_bytes
from emulator.linux.process.credentials import ALL_CAPABILITIES, CAP_SETGID, CAP_SETPCAP, CAP_SETUID, NO_ID
from emulator.linux.process.task import Process, Task
from emulator.linux.release import DOMAIN_NAME, HOST_NAME, RELEASE, SYSTEM_NAME, VERSION
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.structures import NANOSECONDS, U32
from emulator.linux.syscalls.input_output import ends_early
from emulator.linux.syscalls.table import Address, Out, Size, Support, UInt, syscall
from emulator.linux.syscalls.user_vectors import MAX_BYTES

UTSNAME_FIELD = 65  # bytes with the NUL
GRND_NONBLOCK, GRND_RANDOM, GRND_INSECURE = 1, 2, 4
RANDOM_CHUNK = 1 << 16
RANDOM_PORTION = 8 * RANDOM_CHUNK  # made at once: that takes longer than reading
CAPABILITY_VERSIONS = {0x1998_0330: 1, 0x2007_1026: 2, 0x2008_0522: 2}  # version -> 32-bit words of each set
CAPABILITY_VERSION = 0x2008_0522


@syscall(aarch64=172, x86_64=39)
def getpid(task: Task) -> int:
    return task.pid


@syscall(aarch64=178, x86_64=186)
def gettid(task: Task) -> int:
    return task.tid


@syscall(aarch64=173, x86_64=110)
def getppid(task: Task) -> int:
    return task.ppid


def _process(task: Task, pid: int) -> Task:
    found = task if pid == 0 else task.kernel.tasks.get(pid)
    if found is None:
        raise LinuxError(ESRCH, f"process {pid} does not exist")
    return found


@syscall(aarch64=155, x86_64=121)
def getpgid(task: Task, pid: int) -> int:
    return _process(task, pid).pgid


@syscall(x86_64=111)
def getpgrp(task: Task) -> int:
    return task.pgid


@syscall(aarch64=156, x86_64=124)
def getsid(task: Task, pid: int) -> int:
    return _process(task, pid).sid


def _processes(task: Task) -> Iterator[Process]:
    """All there are, ended ones included."""
    return (other.process for other in task.kernel.tasks.values() if other.tid == other.pid)


@syscall(aarch64=157, x86_64=112)
def setsid(task: Task) -> int:
    if any(process.pgid == task.pid for process in _processes(task)):
        raise LinuxError(EPERM, f"{task.pid} is a process group already")
    task.sid = task.pgid = task.pid
    return task.sid


@syscall(aarch64=154, x86_64=109)
def setpgid(task: Task, pid: int, pgid: int) -> int:
    """Of the caller, or of a child that has not executed another program; within the session."""
    if pgid < 0:
        raise LinuxError(EINVAL, f"process group {pgid}")
    own = task.process
    target = own if pid in (0, own.pid) else own.children.get(pid)
    if target is None:
        raise LinuxError(ESRCH, f"process {pid} is neither the caller nor a child")
    if target is not own and target.has_executed:
        raise LinuxError(EACCES, f"process {pid} has another program")
    if target.sid != own.sid or target.sid == target.pid:
        raise LinuxError(EPERM, f"process {pid} leads a session, or is in another one")
    pgid = pgid or target.pid
    if pgid != target.pid and not any(process.pgid == pgid and process.sid == own.sid for process in _processes(task)):
        raise LinuxError(EPERM, f"there is no process group {pgid} in the session")
    target.pgid = pgid
    return 0


# ---- user and group: the guest is root of its machine and may become anybody


@syscall(aarch64=174, x86_64=102)
def getuid(task: Task) -> int:
    return task.credentials.uid


@syscall(aarch64=175, x86_64=107)
def geteuid(task: Task) -> int:
    return task.credentials.uid


@syscall(aarch64=176, x86_64=104)
def getgid(task: Task) -> int:
    return task.credentials.gid


@syscall(aarch64=177, x86_64=108)
def getegid(task: Task) -> int:
    return task.credentials.gid


@syscall(aarch64=148, x86_64=118)
def getresuid(task: Task, ruidp: Out[U32], euidp: Out[U32], suidp: Out[U32]) -> int:
    for out in (ruidp, euidp, suidp):
        out.write(U32(task.credentials.uid))
    return 0


@syscall(aarch64=150, x86_64=120)
def getresgid(task: Task, rgidp: Out[U32], egidp: Out[U32], sgidp: Out[U32]) -> int:
    for out in (rgidp, egidp, sgidp):
        out.write(U32(task.credentials.gid))
    return 0


ONE_ID = "real, effective and saved ids are one"


def _become(task: Task, *, uid: int = NO_ID, gid: int = NO_ID) -> int:
    old = task.credentials
    for new, own, capability in ((uid, old.uid, CAP_SETUID), (gid, old.gid, CAP_SETGID)):
        if new not in (NO_ID, own) and not old.has(capability):
            raise LinuxError(EPERM, f"user {old.uid}, group {old.gid} cannot become {new}")
    if gid not in (NO_ID, old.gid):
        task.credentials = replace(task.credentials, gid=gid)
    if uid not in (NO_ID, old.uid):
        task.credentials = task.credentials.as_user(uid)
    return 0


def _effective(*ids: int) -> int:
    """The id that counts of real, effective, saved: the effective one, if it is given."""
    return ids[1] if ids[1] != NO_ID else ids[0]


@syscall(aarch64=146, x86_64=105, support=Support.PARTIAL, note=ONE_ID)
def setuid(task: Task, uid: UInt) -> int:
    if uid == NO_ID:
        raise LinuxError(EINVAL, "user id -1")
    return _become(task, uid=uid)


@syscall(aarch64=144, x86_64=106, support=Support.PARTIAL, note=ONE_ID)
def setgid(task: Task, gid: UInt) -> int:
    if gid == NO_ID:
        raise LinuxError(EINVAL, "group id -1")
    return _become(task, gid=gid)


@syscall(aarch64=145, x86_64=113, support=Support.PARTIAL, note=ONE_ID)
def setreuid(task: Task, ruid: UInt, euid: UInt) -> int:
    return _become(task, uid=_effective(ruid, euid))


@syscall(aarch64=143, x86_64=114, support=Support.PARTIAL, note=ONE_ID)
def setregid(task: Task, rgid: UInt, egid: UInt) -> int:
    return _become(task, gid=_effective(rgid, egid))


@syscall(aarch64=147, x86_64=117, support=Support.PARTIAL, note=ONE_ID)
def setresuid(task: Task, ruid: UInt, euid: UInt, suid: UInt) -> int:
    return _become(task, uid=_effective(ruid, euid))


@syscall(aarch64=149, x86_64=119, support=Support.PARTIAL, note=ONE_ID)
def setresgid(task: Task, rgid: UInt, egid: UInt, sgid: UInt) -> int:
    return _become(task, gid=_effective(rgid, egid))


@syscall(aarch64=151, x86_64=122, support=Support.PARTIAL, note="the file system user id cannot differ")
def setfsuid(task: Task, uid: UInt) -> int:
    return task.credentials.uid


@syscall(aarch64=152, x86_64=123, support=Support.PARTIAL, note="the file system group id cannot differ")
def setfsgid(task: Task, gid: UInt) -> int:
    return task.credentials.gid


@syscall(aarch64=158, x86_64=115)
def getgroups(task: Task, gidsetsize: int, grouplist: Address) -> int:
    own = task.credentials.groups
    if gidsetsize < 0 or 0 < gidsetsize < len(own):
        raise LinuxError(EINVAL, f"room for {gidsetsize} groups; there are {len(own)}")
    if gidsetsize:
        task.mm.write(grouplist, b"".join(group.to_bytes(4, "little") for group in own))
    return len(own)


@syscall(aarch64=159, x86_64=116)
def setgroups(task: Task, gidsetsize: int, grouplist: Address) -> int:
    if not task.credentials.has(CAP_SETGID):
        raise LinuxError(EPERM, "only who may become any group sets its groups")
    if not 0 <= gidsetsize <= 65536:
        raise LinuxError(EINVAL, f"{gidsetsize} groups")
    numbers = struct.unpack(f"<{gidsetsize}I", task.mm.read(grouplist, 4 * gidsetsize))
    task.credentials = replace(task.credentials, groups=numbers)
    return 0


def _capability_words(task: Task, header: int) -> int:
    version, pid = struct.unpack("<Ii", task.mm.read(header, 8))
    words = CAPABILITY_VERSIONS.get(version)
    if words is None:
        task.mm.write(header, CAPABILITY_VERSION.to_bytes(4, "little"))
        raise LinuxError(EINVAL, f"capability version {version:#x}")
    _process(task, pid)
    return words


@syscall(aarch64=90, x86_64=125)
def capget(task: Task, header: Address, dataptr: Address) -> int:
    try:
        words = _capability_words(task, header)
    except LinuxError as error:
        if error.code == EINVAL and not dataptr:
            return 0  # asked for the version
        raise
    own = task.credentials.capabilities
    if dataptr:
        masks = (own.effective, own.permitted, own.inheritable)
        parts = (mask >> 32 * word & 0xFFFF_FFFF for word in range(words) for mask in masks)
        task.mm.write(dataptr, struct.pack(f"<{3 * words}I", *parts))
    return 0


@syscall(aarch64=91, x86_64=126, support=Support.PARTIAL, note="they decide about files and ids; elsewhere root does")
def capset(task: Task, header: Address, data: Address) -> int:
    """capset(2), of the caller. cap_capset(), security/commoncap.c"""
    words = _capability_words(task, header)
    if not data:
        raise LinuxError(EFAULT, "no sets")
    values = struct.unpack(f"<{3 * words}I", task.mm.read(data, 12 * words))
    effective, permitted, inheritable = (
        sum(value << 32 * word for word, value in enumerate(values[kind::3])) & ALL_CAPABILITIES for kind in range(3)
    )
    old = task.credentials.capabilities
    may_inherit = old.inheritable | (old.bounding if task.credentials.has(CAP_SETPCAP) else old.permitted)
    if permitted & ~old.permitted or effective & ~permitted or inheritable & ~may_inherit:
        raise LinuxError(EPERM, f"capabilities {effective:#x}, {permitted:#x}, {inheritable:#x} of {old}")
    new = replace(old, effective=effective, permitted=permitted, inheritable=inheritable)
    task.credentials = task.credentials.with_capabilities(new)
    return 0


# ---- the system


@syscall(aarch64=160, x86_64=63)
def uname(task: Task, name: Address) -> int:
    fields = (SYSTEM_NAME, HOST_NAME, RELEASE, VERSION, task.architecture.uname_machine, DOMAIN_NAME)
    task.mm.write(name, b"".join(field.encode().ljust(UTSNAME_FIELD, b"\0") for field in fields))
    return 0


@syscall(aarch64=179, x86_64=99)
def sysinfo(task: Task, info: Address) -> int:
    memory = task.kernel.memory
    uptime = task.clock.monotonic_ns() // NANOSECONDS
    data = struct.pack(
        "<q3Q6QHH4xQQI",
        uptime,
        *(0, 0, 0),  # load averages
        *(memory.size_bytes, free_bytes(memory.size_bytes), 0, 0, 0, 0),  # total, free, shared, buffers, swap, its free
        len(task.kernel.tasks),
        0,
        *(0, 0),  # high memory
        1,  # bytes in the unit
    )
    task.mm.write(info, data.ljust(112, b"\0"))
    return 0


@syscall(aarch64=278, x86_64=318)
def getrandom(task: Task, ubuf: Address, len_: Size, flags: UInt) -> Sleeping[int]:
    both = GRND_RANDOM | GRND_INSECURE
    if flags & ~(GRND_NONBLOCK | both) or flags & both == both:
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    len_ = min(len_, MAX_BYTES)
    destination = UserBuffer(task.mm, ubuf, len_)
    for start in range(0, len_, RANDOM_CHUNK):
        if start and not start % RANDOM_PORTION and (yield from ends_early(task, size=RANDOM_PORTION)):
            return start
        wanted = min(RANDOM_CHUNK, len_ - start)
        done = start + destination.put(task.kernel.random.bytes(wanted))
        if done < start + wanted:
            if not done:
                raise destination.fault()
            return done
    return len_


@syscall(aarch64=166, x86_64=95)
def umask(task: Task, mask: int) -> int:
    before, task.fs.umask = task.fs.umask, mask & 0o777
    return before
