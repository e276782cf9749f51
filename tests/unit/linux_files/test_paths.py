"""From a path to a node: components, links, slashes, and the sysroot."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from emulator.linux.errors import EINVAL, EISDIR, ENAMETOOLONG, ENOENT, ENOTDIR, LinuxError
from emulator.linux.fs.file import O_CREAT, O_WRONLY


@contextmanager
def fails(code: int):
    with pytest.raises(LinuxError) as caught:
        yield
    assert caught.value.code == code, str(caught.value)


def test_a_file_is_no_directory(guest):
    guest.write("file", b"")
    for path in ("file/", "file/.", "file/..", "file/x"):
        with fails(ENOTDIR):
            guest.tree.find(guest.start(), path)


def test_long_names_and_paths(guest):
    guest.write("n" * 255, b"")
    with fails(ENAMETOOLONG):
        guest.tree.find(guest.start(), "n" * 256)
    with fails(ENAMETOOLONG):
        guest.tree.find(guest.start(), "./" * 2048)
    with fails(ENOENT):
        guest.tree.find(guest.start(), "")


def test_names_that_are_not_utf8(guest):
    name = os.fsdecode(b"caf\xe9")
    guest.write(name, b"x")
    assert os.listdir(os.fsencode(guest.cwd)) == [b"caf\xe9"]
    assert guest.read(name) == b"x"


def test_a_slash_after_a_link_follows_it(guest):
    (guest.cwd / "dir").mkdir()
    (guest.cwd / "link").symlink_to("dir")
    start = guest.start()
    assert guest.tree.find(start, "link", follow=False).path == f"{guest.cwd}/link"
    assert guest.tree.find(start, "link/", follow=False).path == f"{guest.cwd}/dir"
    with fails(ENOTDIR):
        guest.tree.remove_directory(start, "link/")  # the link's name is meant, and it is no directory


def test_making_and_removing_by_dots_is_refused(guest):
    start = guest.start()
    with fails(EINVAL):
        guest.tree.remove_directory(start, ".")
    with fails(EISDIR):
        guest.open("new/", O_WRONLY | O_CREAT)
    guest.tree.make_directory(start, "sub/", 0o755)
    guest.tree.remove_directory(start, "sub/")
    assert os.listdir(guest.cwd) == []


def test_a_directory_does_not_move_into_itself(guest):
    (guest.cwd / "a" / "b").mkdir(parents=True)
    with fails(EINVAL):
        guest.tree.rename(guest.start(), "a", guest.start(), "a/b/c")


# ---- sysroot


@pytest.fixture
def rooted(make_guest, tmp_path):
    """A sysroot with a library, links, and its own /tmp and /proc."""
    root = tmp_path / "root"
    (root / "lib").mkdir(parents=True)
    (root / "lib" / "libc.so").write_bytes(b"sysroot libc")
    (root / "lib" / "absolute").symlink_to("/lib/libc.so")
    (root / "lib" / "relative").symlink_to("../../../../../../lib/libc.so")
    (root / "lib" / "outside").symlink_to(str(tmp_path / "elsewhere" / "only-here"))
    (root / "tmp").mkdir()
    (root / "proc").mkdir()
    guest = make_guest(sysroot=str(root))
    (guest.elsewhere / "only-here").write_bytes(b"plain")
    return guest


def test_an_absolute_path_is_looked_up_in_the_sysroot_first(rooted):
    assert rooted.read("/lib/libc.so") == b"sysroot libc"
    assert rooted.tree.find(rooted.start(), "/lib/libc.so").path == f"{rooted.host}/root/lib/libc.so"


def test_what_the_sysroot_lacks_is_the_hosts(rooted):
    assert rooted.read(rooted.elsewhere / "only-here") == b"plain"


def test_links_in_the_sysroot_stay_in_it_first(rooted):
    assert rooted.read("/lib/absolute") == b"sysroot libc"
    assert rooted.read("/lib/relative") == b"sysroot libc"
    assert rooted.read("/lib/outside") == b"plain"


def test_a_relative_path_begins_where_the_guest_is(rooted):
    rooted.write("libc.so", b"mine")
    assert rooted.read("libc.so") == b"mine"


def test_a_relative_path_leads_where_the_absolute_one_does(rooted):
    top = rooted.tree.paths.root
    assert rooted.tree.find(top, "lib/libc.so").path == f"{rooted.host}/root/lib/libc.so"
    here = rooted.tree.find(rooted.start(), str(rooted.elsewhere))
    assert rooted.tree.find(here, "only-here").path == f"{rooted.elsewhere}/only-here"


def test_from_a_directory_of_the_sysroot_the_hosts_files_are_reached_too(rooted):
    """As rsync does: from / one directory after the other."""
    top = rooted.tree.find(rooted.start(), "/")
    assert rooted.tree.find(top, "lib/libc.so").path == f"{rooted.host}/root/lib/libc.so"
    here = top
    for name in str(rooted.elsewhere).strip("/").split("/"):
        here = rooted.tree.find(here, name)
    assert here.path == str(rooted.elsewhere)
    assert rooted.tree.find(top, "dev/null").path == "/dev/null"
    library = rooted.tree.find(rooted.start(), "/lib")
    with fails(ENOENT):
        rooted.tree.find(library, "only-here")


def test_the_machines_own_directories_are_not_the_sysroots(rooted):
    rooted.write(rooted.tmp / "x", b"1")
    assert rooted.tree.find(rooted.start(), "/dev/null").path == "/dev/null"
    assert rooted.tree.find(rooted.start(), "/proc").path == "/proc"
    assert rooted.tree.find(rooted.start(), "/tmp").path == "/tmp"


def test_a_sysroot_is_read_only_unless_the_guest_may_write_there(rooted, make_guest, tmp_path):
    with pytest.raises(LinuxError):
        rooted.write("/lib/libc.so", b"x")
    inner = tmp_path / "cwd" / "root"
    (inner / "etc").mkdir(parents=True)
    (inner / "etc" / "conf").write_bytes(b"old")
    guest = make_guest(sysroot=str(inner))
    guest.write("/etc/conf", b"new")
    assert (inner / "etc" / "conf").read_bytes() == b"new"


def test_a_directory_that_was_walked_before_is_not_where_it_was_after_a_rename(guest):
    (guest.cwd / "a").mkdir()
    (guest.cwd / "a" / "file").write_bytes(b"old")
    assert guest.read(guest.cwd / "a" / "file") == b"old"
    guest.tree.rename(guest.start(), "a", guest.start(), "b")
    with fails(ENOENT):
        guest.read(guest.cwd / "a" / "file")
    guest.tree.make_directory(guest.start(), "a", 0o755)
    guest.write(guest.cwd / "a" / "file", b"new")
    assert guest.read(guest.cwd / "a" / "file") == b"new"
    assert guest.read(guest.cwd / "b" / "file") == b"old"
