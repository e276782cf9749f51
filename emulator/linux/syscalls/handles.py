"""File handles, which name a file without a path: those of control groups, by which perf names them in samples."""

from __future__ import annotations

import struct

from emulator.linux.cgroup.cgroupfs import CgroupDirectory, CgroupFile
from emulator.linux.errors import EINVAL, EOPNOTSUPP, EOVERFLOW, LinuxError
from emulator.linux.fs.paths import Dentry
from emulator.linux.proc.process_texts import MOUNT_NUMBERS
from emulator.linux.process.task import Task
from emulator.linux.syscalls.at import AT_EMPTY_PATH, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW, find, opened_dentry
from emulator.linux.syscalls.table import Address, Path, Support, UInt, syscall

AT_HANDLE_FID = 0x200  # uapi/linux/fcntl.h
MAX_HANDLE_SZ = 128  # include/linux/exportfs.h
FILEID_KERNFS = 0xFE
HANDLE_BYTES = 8  # of kernfs: the inode number


@syscall(aarch64=264, x86_64=303, support=Support.PARTIAL, note="of control groups alone; others are EOPNOTSUPP")
def name_to_handle_at(task: Task, dfd: int, name: Path, handle: Address, mnt_id: Address, flag: UInt) -> int:
    """name_to_handle_at(2)"""
    if flag & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH | AT_HANDLE_FID):
        raise LinuxError(EINVAL, f"name_to_handle_at flags {flag:#x}")
    node = _dentry(task, dfd, name, flag).node
    if not isinstance(node, CgroupDirectory | CgroupFile):
        raise LinuxError(EOPNOTSUPP, f"{name} is on a file system whose handles are not modelled")
    room = struct.unpack("<I", task.mm.read(handle, 8)[:4])[0]
    if room > MAX_HANDLE_SZ:
        raise LinuxError(EINVAL, f"a file handle of {room} bytes; there are at most {MAX_HANDLE_SZ}")
    task.mm.write(mnt_id, struct.pack("<i", MOUNT_NUMBERS["/sys/fs/cgroup"]))
    if room < HANDLE_BYTES:
        task.mm.write(handle, struct.pack("<I", HANDLE_BYTES))
        raise LinuxError(EOVERFLOW, f"a file handle of {room} bytes; it has {HANDLE_BYTES}")
    task.mm.write(handle, struct.pack("<IIQ", HANDLE_BYTES, FILEID_KERNFS, node.inode))
    return 0


def _dentry(task: Task, descriptor: int, path: str, flags: int) -> Dentry:
    if not path and flags & AT_EMPTY_PATH:
        return opened_dentry(task.files.get(descriptor))
    return find(task, descriptor, path, 0 if flags & AT_SYMLINK_FOLLOW else AT_SYMLINK_NOFOLLOW)
