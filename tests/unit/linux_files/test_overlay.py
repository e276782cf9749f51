"""/tmp: the host's files, with every change kept in memory."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from calls import read_of
from emulator.linux.errors import ENOENT, ENOSPC, ENOTEMPTY, LinuxError
from emulator.linux.fs.file import O_APPEND, O_RDWR, O_WRONLY
from emulator.linux.fs.memory_files import NODE_BYTES


@pytest.fixture
def overlaid(guest):
    """A host's /tmp with a file, a directory tree and a link."""
    (guest.tmp / "file").write_bytes(b"host")
    (guest.tmp / "dir" / "sub").mkdir(parents=True)
    (guest.tmp / "dir" / "sub" / "deep").write_bytes(b"deep")
    (guest.tmp / "link").symlink_to("dir/sub/deep")
    return guest


@pytest.fixture
def untouched(overlaid):
    """After the test, the host's /tmp is as it was."""

    def snapshot() -> list[tuple[object, ...]]:
        found = []
        for path in sorted(overlaid.tmp.rglob("*")):
            status = os.lstat(path)
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found.append((str(path), status.st_ino, status.st_mode, status.st_mtime_ns, content))
        return found

    before = snapshot()
    yield overlaid
    assert snapshot() == before


def test_the_hosts_files_are_there(untouched):
    guest = untouched
    assert guest.names(guest.tmp) == ["dir", "file", "link"]
    assert guest.read(guest.tmp / "file") == b"host"
    assert guest.read(guest.tmp / "link") == b"deep"


def test_a_new_file_is_the_guests_only(untouched):
    guest = untouched
    guest.write(guest.tmp / "new", b"new")
    guest.write(guest.tmp / "dir" / "sub" / "new", b"deeper")
    assert guest.read(guest.tmp / "new") == b"new"
    assert guest.read(guest.tmp / "dir" / "sub" / "new") == b"deeper"
    assert guest.names(guest.tmp) == ["dir", "file", "link", "new"]
    assert guest.messages == []


def test_a_changed_file_is_copied_first(untouched):
    guest = untouched
    guest.write(guest.tmp / "file", b"!", O_WRONLY | O_APPEND)
    assert guest.read(guest.tmp / "file") == b"host!"
    assert guest.stat(guest.tmp / "file").size == 5


def test_a_reader_that_was_there_before_sees_the_change(untouched):
    guest = untouched
    reader = guest.task.files.get(guest.open(guest.tmp / "file"))
    guest.write(guest.tmp / "file", b"H", O_RDWR)
    assert read_of(reader, guest.task, 10) == b"Host"


def test_a_deleted_file_is_gone_and_may_come_back(untouched):
    guest = untouched
    start = guest.start()
    inode = guest.stat(guest.tmp / "file").inode
    guest.tree.remove(start, str(guest.tmp / "file"))
    with pytest.raises(LinuxError) as caught:
        guest.read(guest.tmp / "file")
    assert caught.value.code == ENOENT
    assert guest.names(guest.tmp) == ["dir", "link"]
    guest.write(guest.tmp / "file", b"again")
    assert guest.read(guest.tmp / "file") == b"again"
    assert guest.stat(guest.tmp / "file").inode != inode


def test_a_deleted_file_that_is_open_can_still_be_read(untouched):
    guest = untouched
    guest.write(guest.tmp / "new", b"new")
    reader = guest.task.files.get(guest.open(guest.tmp / "new"))
    guest.tree.remove(guest.start(), str(guest.tmp / "new"))
    assert read_of(reader, guest.task, 10) == b"new"
    assert reader.attributes().links == 0


def test_a_directory_is_removed_when_it_is_empty_and_new_ones_are_empty(untouched):
    guest = untouched
    tree, start = guest.tree, guest.start()
    with pytest.raises(LinuxError) as caught:
        tree.remove_directory(start, str(guest.tmp / "dir" / "sub"))
    assert caught.value.code == ENOTEMPTY
    tree.remove(start, str(guest.tmp / "dir" / "sub" / "deep"))
    tree.remove_directory(start, str(guest.tmp / "dir" / "sub"))
    assert guest.names(guest.tmp / "dir") == []
    tree.make_directory(start, str(guest.tmp / "dir" / "sub"), 0o755)
    assert guest.names(guest.tmp / "dir" / "sub") == []


def test_renaming_a_directory_takes_the_hosts_files_along(untouched):
    guest = untouched
    start = guest.start()
    guest.write(guest.tmp / "dir" / "sub" / "new", b"new")
    guest.tree.rename(start, str(guest.tmp / "dir"), start, str(guest.tmp / "moved"))
    assert guest.names(guest.tmp) == ["file", "link", "moved"]
    assert guest.read(guest.tmp / "moved" / "sub" / "deep") == b"deep"
    assert guest.read(guest.tmp / "moved" / "sub" / "new") == b"new"


def test_renaming_onto_a_file_of_the_host_replaces_it(untouched):
    guest = untouched
    start = guest.start()
    guest.write(guest.tmp / "new", b"new")
    guest.tree.rename(start, str(guest.tmp / "new"), start, str(guest.tmp / "file"))
    assert guest.read(guest.tmp / "file") == b"new"
    assert guest.names(guest.tmp) == ["dir", "file", "link"]


def test_exchange_swaps_two_names(untouched):
    guest = untouched
    start = guest.start()
    guest.tree.rename(start, str(guest.tmp / "file"), start, str(guest.tmp / "dir"), exchange=True)
    assert guest.read(guest.tmp / "dir") == b"host"
    assert guest.names(guest.tmp / "file") == ["sub"]


def test_mode_and_times_change_for_the_guest_only(untouched):
    guest = untouched
    node = guest.tree.find(guest.start(), str(guest.tmp / "file")).node
    node.set_mode(0o600)
    node.set_times(1, 2)
    attributes = guest.stat(guest.tmp / "file")
    assert (attributes.mode & 0o777, attributes.modified_ns) == (0o600, 2)


def test_hard_links_share_their_contents(untouched):
    guest = untouched
    tree, start = guest.tree, guest.start()
    tree.link(tree.find(start, str(guest.tmp / "file")), start, str(guest.tmp / "second"))
    guest.write(guest.tmp / "second", b"both", O_WRONLY)
    assert guest.read(guest.tmp / "file") == b"both"
    assert guest.stat(guest.tmp / "file").inode == guest.stat(guest.tmp / "second").inode
    assert guest.stat(guest.tmp / "file").links == 2


def test_links_in_tmp_lead_out_by_the_rules_of_where_they_lead(untouched):
    guest = untouched
    (guest.elsewhere / "a").write_bytes(b"content")
    guest.tree.make_symlink(guest.start(), str(guest.tmp / "out"), str(guest.elsewhere / "a"))
    assert guest.read(guest.tmp / "out") == b"content"
    with pytest.raises(LinuxError):
        guest.write(guest.tmp / "out", b"x")
    guest.tree.remove(guest.start(), str(guest.tmp / "out"))


def test_the_current_directory_may_be_below_tmp(make_guest, tmp_path):
    (tmp_path / "tmp" / "project").mkdir(parents=True)
    guest = make_guest()
    guest.tree.allow_writing(str(tmp_path / "tmp" / "project"))
    guest.write(tmp_path / "tmp" / "project" / "out", b"real")
    guest.write(tmp_path / "tmp" / "scratch", b"memory")
    assert (tmp_path / "tmp" / "project" / "out").read_bytes() == b"real"
    assert not (tmp_path / "tmp" / "scratch").exists()
    assert guest.names(tmp_path / "tmp") == ["project", "scratch"]


def test_memory_is_limited_and_given_back(untouched):
    guest = untouched
    budget = guest.tree.superblock.budget
    limit = budget.limit_bytes = 2 * NODE_BYTES + 100
    guest.write(guest.tmp / "a", bytes(60))
    with pytest.raises(LinuxError) as caught:
        guest.write(guest.tmp / "b", bytes(60))
    assert caught.value.code == ENOSPC
    assert guest.messages == [f"files in memory (/tmp, memfd) are full: the limit is {limit} bytes (ENOSPC)"]
    guest.tree.remove(guest.start(), str(guest.tmp / "a"))
    guest.write(guest.tmp / "b", bytes(60))
    assert budget.used_bytes == NODE_BYTES + 60


def test_names_without_contents_are_limited_and_given_back(untouched):
    guest = untouched
    budget = guest.tree.superblock.budget
    budget.limit_bytes = 3 * NODE_BYTES + len("target")
    make = (guest.tree.make_directory, guest.tree.make_symlink, guest.tree.make_node)
    for number, argument in enumerate((0o755, "target", 0o644)):
        make[number](guest.start(), str(guest.tmp / str(number)), argument)
    with pytest.raises(LinuxError) as caught:
        guest.write(guest.tmp / "b", b"")
    assert caught.value.code == ENOSPC
    guest.tree.remove_directory(guest.start(), str(guest.tmp / "0"))
    guest.tree.remove(guest.start(), str(guest.tmp / "1"))
    guest.tree.remove(guest.start(), str(guest.tmp / "2"))
    assert budget.used_bytes == 0


def test_a_far_offset_does_not_take_memory_that_is_not_there(untouched):
    guest = untouched
    file = guest.task.files.get(guest.open(guest.tmp / "new", 0o102))
    with pytest.raises(LinuxError) as caught:
        file.write_at(guest.task, 1 << 50, b"x")
    assert caught.value.code == ENOSPC


def test_what_the_host_removes_while_it_is_listed_is_not_there(untouched, monkeypatch):
    """Others work in the host's /tmp: a listing, or the number of its subdirectories, does not fail for that."""
    (untouched.tmp / "passing").mkdir()
    scan = os.scandir

    class Scan:
        def __init__(self, path):
            self.entries = list(scan(path))

        def __enter__(self):
            with suppress(FileNotFoundError):
                os.rmdir(untouched.tmp / "passing")
            return iter(self.entries)

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(os, "scandir", Scan)
    assert untouched.tree.find(untouched.start(), str(untouched.tmp)).node.attributes().links >= 2
    (untouched.tmp / "passing").mkdir()
    assert "passing" not in untouched.names(untouched.tmp)
