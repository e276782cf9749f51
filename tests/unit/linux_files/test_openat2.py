"""openat2(2): what RESOLVE_* forbids; compared with the host's kernel where that has the call."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

import pytest

from calls import read_of
from emulator.linux.fs.paths import Resolve

AT_FDCWD = -100
OPENAT2 = 437
HOW, PATH = 0x6000, 0x2000

# path from the directory that is opened, RESOLVE_*
CASES = [
    ("file", 0),
    ("file", Resolve.BENEATH),
    ("d/../file", Resolve.BENEATH),
    ("../start/file", Resolve.BENEATH),
    ("d/../../start/file", Resolve.BENEATH),
    ("up", Resolve.BENEATH),
    ("up", Resolve.IN_ROOT),
    ("here", Resolve.BENEATH),
    ("absolute", Resolve.BENEATH),
    ("absolute", Resolve.IN_ROOT),
    ("absolute", 0),
    ("/file", Resolve.IN_ROOT),
    ("/file", Resolve.BENEATH),
    ("../../../file", Resolve.IN_ROOT),
    ("/../d/../here", Resolve.IN_ROOT),
    ("here", Resolve.NO_SYMLINKS),
    ("d/back/file", Resolve.NO_SYMLINKS),
    ("file", Resolve.NO_SYMLINKS),
    ("here", Resolve.NO_MAGICLINKS),
    ("here", Resolve.NO_XDEV),
    ("missing", Resolve.BENEATH),
    ("dangling", Resolve.IN_ROOT),
    ("loop", Resolve.BENEATH),
    ("", Resolve.BENEATH),
    ("file", Resolve.BENEATH | Resolve.IN_ROOT),
    ("file", 64),
    ("file", Resolve.CACHED),
]


@pytest.fixture
def start(guest):
    """A directory with links that lead here and there."""
    directory = guest.cwd / "start"
    (directory / "d").mkdir(parents=True)
    (directory / "file").write_bytes(b"inside")
    (guest.cwd / "file").write_bytes(b"outside")
    for name, target in (
        ("up", "../file"), ("here", "d/../file"), ("absolute", "/file"), ("d/back", ".."), ("dangling", "/missing"),
        ("loop", "loop"),
    ):  # fmt: skip
        (directory / name).symlink_to(target)
    return directory


def host_openat2(directory: str, path: str, resolve: int) -> bytes | int:
    """What the host's kernel gives: the contents, or a negative errno."""
    libc = ctypes.CDLL(None, use_errno=True)
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        how = struct.pack("<QQQ", os.O_RDONLY, 0, resolve)
        while (descriptor := libc.syscall(OPENAT2, opened, os.fsencode(path), how, len(how))) < 0:
            if ctypes.get_errno() != errno.EAGAIN:  # what a rename anywhere on the host makes of ".."
                return -ctypes.get_errno()
        with open(descriptor, "rb") as file:
            return file.read()
    finally:
        os.close(opened)


def ours(program, directory: int, path: str, resolve: int, flags: int = 0, mode: int = 0) -> bytes | int:
    program.data(struct.pack("<QQQ", flags, mode, resolve), HOW)
    descriptor = program("openat2", directory, program.path(path, PATH), HOW, 24)
    return descriptor if descriptor < 0 else read_of(program.guest.task.files.get(descriptor), program.guest.task, 100)


@pytest.mark.parametrize(("path", "resolve"), CASES)
def test_paths_lead_where_the_hosts_kernel_lets_them(program, start, path: str, resolve: int) -> None:
    expected = host_openat2(str(start), path, resolve)
    if expected == -errno.ENOSYS:
        pytest.skip("the host's kernel has no openat2")
    directory = program.guest.open(start, program.guest.tree.open_flags.directory)
    assert ours(program, directory, path, resolve) == expected


def test_other_file_systems_and_links_of_proc(program, start) -> None:
    directory = program.guest.open(start, program.guest.tree.open_flags.directory)
    (start / "dev").symlink_to("/dev/null")
    assert ours(program, directory, "dev", Resolve.NO_XDEV) == -errno.EXDEV
    assert ours(program, directory, "dev", 0) == b""


def test_what_changes_a_file_is_not_cached(program, start) -> None:
    assert ours(program, AT_FDCWD, "new", Resolve.CACHED, os.O_CREAT | os.O_WRONLY, 0o600) == -errno.EAGAIN
    assert ours(program, AT_FDCWD, "start/file", 0, 0, 0o600) == -errno.EINVAL
    assert ours(program, AT_FDCWD, "start/new", Resolve.BENEATH, os.O_CREAT | os.O_RDWR, 0o600) == b""
    assert (start / "new").stat().st_mode & 0o777 == 0o600
