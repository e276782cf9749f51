"""Syscalls on files, as a program makes them: numbers in registers, structures in memory."""

from __future__ import annotations

import os
import struct

import pytest

from emulator.linux.errors import (
    EAFNOSUPPORT,
    EBADF,
    EINVAL,
    EISDIR,
    ENOENT,
    ENOTTY,
    ESPIPE,
    ESRCH,
)
from emulator.linux.syscalls import table

AT_FDCWD = -100 & (1 << 64) - 1
BUFFER = 0x4000
PATH = 0x2000
SECOND_PATH = 0x3000


O_CREAT, O_RDWR, O_APPEND, O_NONBLOCK = 0o100, 0o2, 0o2000, 0o4000


def opened(program, name="file", content=b"0123456789", flags=O_RDWR | O_CREAT) -> int:
    if content is not None:
        (program.guest.cwd / name).write_bytes(content)
    return program("openat", AT_FDCWD, program.path(name), flags, 0o644)


def test_every_call_of_this_half_is_named_as_linux_names_it():
    names = {row.name for row in table.load()}
    assert {"openat", "read", "write", "statx", "getdents64", "epoll_pwait", "memfd_create", "renameat2"} <= names


def test_read_moves_the_position_and_pread_does_not(program):
    fd = opened(program)
    assert program("read", fd, BUFFER, 3) == 3
    assert program("pread64", fd, BUFFER + 3, 2, 8) == 2
    assert program("read", fd, BUFFER + 5, 100) == 7
    assert program.memory.read(BUFFER, 12) == b"012" + b"89" + b"3456789"
    assert program("read", fd, BUFFER, 100) == 0


def test_umask_is_taken_from_the_mode(program):
    program.guest.task.fs.umask = 0o027
    program("openat", AT_FDCWD, program.path("new"), O_CREAT | O_RDWR, 0o666)
    assert os.stat(program.guest.cwd / "new").st_mode & 0o777 == 0o640


def test_writes_append(program):
    fd = opened(program, flags=O_RDWR | O_APPEND)
    assert program("write", fd, program.data(b"ab"), 2) == 2
    assert (program.guest.cwd / "file").read_bytes() == b"0123456789ab"


def test_a_write_beyond_the_end_leaves_zeroes(program):
    fd = opened(program, content=b"")
    assert program("lseek", fd, 3, 0) == 3
    assert program("write", fd, program.data(b"x"), 1) == 1
    assert (program.guest.cwd / "file").read_bytes() == b"\0\0\0x"


@pytest.mark.parametrize(
    ("offset", "whence", "result"),
    [(4, 0, 4), (2, 1, 5), (-1, 2, 9), (-1, 0, -EINVAL), (0, 9, -EINVAL), (3, 3, 3), (3, 4, 10), (10, 3, -6)],
)
def test_lseek(program, offset, whence, result):
    fd = opened(program)
    program("lseek", fd, 3, 0)
    assert program("lseek", fd, offset, whence) == result  # -6: ENXIO, no data at the end


def test_vectors_are_filled_in_order(program):
    fd = opened(program)
    vector = program.data(struct.pack("<4Q", BUFFER, 3, BUFFER + 100, 20), 0x6000)
    assert program("readv", fd, vector, 2) == 10
    assert program.memory.read(BUFFER, 3) == b"012"
    assert program.memory.read(BUFFER + 100, 7) == b"3456789"
    assert program("pwritev", fd, vector, 2, 1) == 23
    assert (program.guest.cwd / "file").read_bytes() == b"0" + b"012" + b"3456789" + bytes(13)
    assert program("readv", fd, vector, -1) == -EINVAL


def test_descriptors_that_do_not_fit_the_call(program):
    reading = opened(program, flags=0)
    assert program("write", reading, BUFFER, 1) == -EBADF
    assert program("read", 99, BUFFER, 1) == -EBADF
    directory = program("openat", AT_FDCWD, program.path("."), 0, 0)
    assert program("read", directory, BUFFER, 1) == -EISDIR
    assert program("openat", reading, program.path("x"), 0, 0) == -20  # ENOTDIR


def test_duplicates_share_the_position(program):
    fd = opened(program)
    second = program("dup", fd)
    program("read", fd, BUFFER, 4)
    assert program("lseek", second, 0, 1) == 4
    assert program("dup3", fd, 40, 0o2000000) == 40
    assert program("fcntl", 40, 1, 0) == 1  # F_GETFD: FD_CLOEXEC
    assert program("fcntl", fd, 0, 50) == 50  # F_DUPFD
    assert program("dup2", fd, fd) == fd
    assert program("dup3", fd, fd, 0) == -EINVAL
    assert program("close_range", second, 45, 0) == 0
    assert program("read", second, BUFFER, 1) == -EBADF
    assert program("read", 50, BUFFER, 1) == 1


def test_fcntl_flags_and_locks(program):
    fd = opened(program)
    assert program("fcntl", fd, 3, 0) == O_RDWR | 0o400000  # F_GETFL: with O_LARGEFILE, as on every 64-bit kernel
    assert program("fcntl", fd, 4, O_APPEND) == 0
    assert program("fcntl", fd, 3, 0) == O_RDWR | 0o400000 | O_APPEND
    flock = program.data(struct.pack("<hhqqi", 1, 0, 0, 0, 0))
    assert program("fcntl", fd, 6, flock) == 0  # F_SETLK
    assert program("fcntl", fd, 5, flock) == 0  # F_GETLK: nobody else has one
    assert program.memory.read(flock, 2) == b"\x02\0"
    assert program("fcntl", fd, 777, 0) == -EINVAL
    assert program("flock", fd, 2) == 0


def test_fcntl_owners(program):
    """F_SETOWN 8, F_GETOWN 9, F_SETOWN_EX 15, F_GETOWN_EX 16; struct f_owner_ex is (type, id), and type 2 a group."""
    fd = opened(program)
    assert program("fcntl", fd, 8, -1000) == 0
    assert program("fcntl", fd, 9, 0) == -1000
    assert program("fcntl", fd, 16, BUFFER) == 0
    assert struct.unpack("<ii", program.memory.read(BUFFER, 8)) == (2, 1000)
    assert program("fcntl", fd, 8, 1 << 31) == -EINVAL  # minus the least int is no int
    assert program("fcntl", fd, 15, program.data(struct.pack("<ii", 2, -(1 << 31)))) == -ESRCH
    assert program("fcntl", fd, 9, 0) == -1000


def test_getcwd_and_chdir(program):
    cwd = os.fsencode(program.guest.cwd)
    assert program("getcwd", BUFFER, 4096) == len(cwd) + 1
    assert program.memory.read(BUFFER, len(cwd) + 1) == cwd + b"\0"
    assert program("getcwd", BUFFER, len(cwd)) == -34  # ERANGE
    (program.guest.cwd / "sub").mkdir()
    assert program("chdir", program.path("sub")) == 0
    assert opened(program, "sub/inner", flags=0) == -ENOENT
    assert program("openat", AT_FDCWD, program.path("inner"), 0, 0) >= 0
    assert program("chdir", program.path("inner")) == -20  # ENOTDIR


def test_names_come_and_go(program):
    guest = program.guest
    assert program("mkdirat", AT_FDCWD, program.path("d"), 0o777) == 0
    assert program("mkdirat", AT_FDCWD, program.path("d"), 0o777) == -17  # EEXIST
    assert program("symlinkat", program.path("target"), AT_FDCWD, program.path("d/link", SECOND_PATH)) == 0
    assert program("readlinkat", AT_FDCWD, program.path("d/link"), BUFFER, 3) == 3
    assert program.memory.read(BUFFER, 3) == b"tar"
    opened(program)
    assert program("linkat", AT_FDCWD, program.path("file"), AT_FDCWD, program.path("d/hard", SECOND_PATH), 0) == 0
    assert program("renameat2", AT_FDCWD, program.path("file"), AT_FDCWD, program.path("d/hard", SECOND_PATH), 1) == -17
    assert program("renameat2", AT_FDCWD, program.path("file"), AT_FDCWD, program.path("moved", SECOND_PATH), 0) == 0
    assert sorted(os.listdir(guest.cwd)) == ["d", "moved"]
    assert program("unlinkat", AT_FDCWD, program.path("d"), 0) == -EISDIR
    assert program("unlinkat", AT_FDCWD, program.path("d"), 0x200) == -39  # ENOTEMPTY
    assert program("unlinkat", AT_FDCWD, program.path("d/hard"), 0) == 0
    assert program("unlinkat", AT_FDCWD, program.path("d/link"), 0) == 0
    assert program("unlinkat", AT_FDCWD, program.path("d"), 0x200) == 0


def test_stat_of_a_path_a_descriptor_and_a_link(program):
    fd = opened(program)
    (program.guest.cwd / "link").symlink_to("file")

    def size_of(result: int) -> int:
        assert result == 0
        return struct.unpack_from("<q", program.memory.read(BUFFER, 128), 48)[0]

    assert size_of(program("fstat", fd, BUFFER)) == 10
    assert size_of(program("newfstatat", AT_FDCWD, program.path("link"), BUFFER, 0)) == 10
    assert size_of(program("newfstatat", AT_FDCWD, program.path("link"), BUFFER, 0x100)) == 4  # AT_SYMLINK_NOFOLLOW
    assert size_of(program("newfstatat", fd, program.path(""), BUFFER, 0x1000)) == 10  # AT_EMPTY_PATH
    assert program("newfstatat", fd, program.path(""), BUFFER, 0) == -ENOENT
    assert program("statx", AT_FDCWD, program.path("file"), 0, 0x7FF, BUFFER) == 0
    assert struct.unpack_from("<Q", program.memory.read(BUFFER, 256), 40)[0] == 10


def test_access_answers_by_the_rules_of_the_place(program):
    opened(program)
    (program.guest.elsewhere / "a").write_bytes(b"")
    assert program("faccessat", AT_FDCWD, program.path("file"), 6) == 0
    assert program("faccessat", AT_FDCWD, program.path("file"), 1) == -13  # EACCES: no execute bit
    assert program("faccessat", AT_FDCWD, program.path(f"{program.guest.elsewhere}/a"), 4) == 0
    assert program("faccessat", AT_FDCWD, program.path(f"{program.guest.elsewhere}/a"), 2) == -30  # EROFS
    assert program("faccessat", AT_FDCWD, program.path("missing"), 0) == -ENOENT
    assert program.guest.messages == []


def test_sizes(program):
    fd = opened(program)
    assert program("ftruncate", fd, 4) == 0
    assert program("truncate", program.path("file"), 6) == 0
    assert (program.guest.cwd / "file").read_bytes() == b"0123\0\0"
    assert program("ftruncate", fd, -1) == -EINVAL
    assert program("fallocate", fd, 0, 0, 8) == 0
    assert program("fallocate", fd, 1, 0, 100) == 0  # FALLOC_FL_KEEP_SIZE
    assert program("fallocate", fd, 3, 1, 2) == 0  # and FALLOC_FL_PUNCH_HOLE
    assert (program.guest.cwd / "file").read_bytes() == b"0\0\0003\0\0\0\0"


def test_bytes_move_between_files_without_user_memory(program):
    source = opened(program, "source")
    target = opened(program, "target", b"")
    assert program("sendfile", target, source, 0, 4) == 4
    offset = program.data(struct.pack("<q", 8))
    assert program("copy_file_range", source, offset, target, 0, 100) == 2
    assert struct.unpack("<q", program.memory.read(offset, 8)) == (10,)
    assert program("lseek", source, 0, 1) == 4
    assert (program.guest.cwd / "target").read_bytes() == b"012389"


def test_a_memory_file_has_no_name(program):
    fd = program("memfd_create", program.path("scratch"), 1)
    assert program("write", fd, program.data(b"abc"), 3) == 3
    assert program("pread64", fd, BUFFER, 10, 1) == 2
    assert program.guest.task.files.get(fd).path == "/memfd:scratch (deleted)"
    assert os.listdir(program.guest.cwd) == []


@pytest.mark.parametrize(
    ("path", "content"), [("/dev/null", b""), ("/dev/zero", bytes(4)), ("/dev/full", bytes(4)), ("/dev/urandom", None)]
)
def test_devices_are_the_machines(program, path, content):
    fd = program("openat", AT_FDCWD, program.path(path), O_RDWR, 0)
    size = program("read", fd, BUFFER, 4)
    assert content is None or program.memory.read(BUFFER, size) == content
    assert program("write", fd, BUFFER, 4) == (-28 if path == "/dev/full" else 4)  # ENOSPC
    assert program("ioctl", fd, 0x5401, BUFFER) == -ENOTTY  # TCGETS


def test_shared_memory_files_are_in_memory(program):
    fd = program("openat", AT_FDCWD, program.path("/dev/shm/segment"), O_RDWR | O_CREAT, 0o600)
    assert program("ftruncate", fd, 4096) == 0
    assert program("openat", AT_FDCWD, program.path("/dev/new"), O_RDWR | O_CREAT, 0o600) == -13  # EACCES


def test_sockets(program):
    assert program("socket", 17, 3, 0) == -EAFNOSUPPORT
    assert program.guest.messages == ["sockets of AF_PACKET are not modelled (EAFNOSUPPORT)"]
    fd = program("socket", 1, 0o2000001, 0)
    address = program.data(b"\1\0/var/run/nscd/socket-that-is-not-there\0")
    assert program("connect", fd, address, 41) == -ENOENT
    assert program("lseek", fd, 0, 0) == -ESPIPE


def test_extended_attributes_are_not_supported(program):
    opened(program)
    assert program("getxattr", program.path("file"), PATH, BUFFER, 10) == -95
    assert program("lgetxattr", program.path("missing"), PATH, BUFFER, 10) == -ENOENT


def test_writing_mapped_pages_is_told_to_the_page_cache(program):
    fd = opened(program)
    file = program.guest.task.files.get(fd)
    content = file.content()
    program("pwrite64", fd, program.data(b"ab"), 2, 4)
    program("ftruncate", fd, 8)
    told = program.guest.tree.contents.pages.told
    assert told == [(content.identity, 4, b"ab"), (content.identity, 8, b"")]
    assert content.identity.path == f"{program.guest.cwd}/file"
    again = program.guest.task.files.get(opened(program, content=None, flags=0))
    assert again.content() is content
