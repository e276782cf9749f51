"""What stat and getdents tell: the user's files, and nothing that differs from host to host."""

from __future__ import annotations

import os
import stat
import struct

import pytest

from emulator.linux.fs.attributes import Attributes, DirectoryEntry, FileSystemStatistics, pack_directory, pack_statx
from emulator.linux.fs.destination import KernelBuffer

NOW_NS = 1_700_000_000 * 1_000_000_000  # emulator.clock's real time before the first instruction


def test_directories_are_sorted_by_name(guest):
    for name in ("b", "a", "C", "10", "9"):
        (guest.cwd / name).write_bytes(b"")
    assert guest.names(guest.cwd) == ["10", "9", "C", "a", "b"]


def test_a_small_buffer_takes_several_calls(guest):
    for number in range(5):
        (guest.cwd / f"file{number}").write_bytes(b"")
    directory = guest.tree.open(guest.task, ".", 0, 0, str(guest.cwd))
    # records: . and .. 24 bytes each (19 + 1 + NUL, to 8); file0 19 + 5 + NUL = 25, so 32
    sizes = [directory.next_entries(KernelBuffer(64)) for _ in range(5)]
    assert sizes == [24 + 24, 32 + 32, 32 + 32, 32, 0]
    directory.seek(0, 0)
    assert directory.next_entries(KernelBuffer(1 << 16)) == 2 * 24 + 5 * 32


def test_linux_dirent64_layout():
    (record,) = pack_directory([DirectoryEntry(7, stat.S_IFREG | 0o644, b"name")], 0, 100)
    assert struct.unpack_from("<QqHB", record) == (7, 1, 24, 8)  # DT_REG
    assert record[19:] == b"name\0"


def test_linux_dirent_has_its_type_in_the_last_byte():
    (record,) = pack_directory([DirectoryEntry(7, stat.S_IFDIR, b"ab")], 4, 100, old_layout=True)
    # 18 + 2 + NUL + type = 22, to 24
    assert struct.unpack_from("<QqH", record) == (7, 5, 24)
    assert record[18:21] == b"ab\0"
    assert record[23] == 4  # DT_DIR


def test_inode_numbers_are_the_machines_in_the_order_of_asking(guest):
    for name in ("a", "b", "c"):
        (guest.cwd / name).write_bytes(b"")
    second, first = guest.stat("b").inode, guest.stat("a").inode
    assert first == second + 1
    assert guest.stat("b").inode == second
    assert guest.stat("b").device == (8, 1)


def test_hard_links_have_one_number(guest):
    (guest.cwd / "a").write_bytes(b"")
    os.link(guest.cwd / "a", guest.cwd / "b")
    assert guest.stat("a").inode == guest.stat("b").inode
    assert guest.stat("a").links == 2


def test_a_file_that_took_a_deleted_ones_place_has_a_new_number(guest):
    guest.write("a", b"")
    old = guest.stat("a").inode
    guest.tree.remove(guest.start(), "a")
    guest.write("a", b"")  # the host may give the same inode number again
    assert guest.stat("a").inode != old


def test_blocks_follow_from_the_size(guest):
    for size, sectors in ((0, 0), (1, 8), (4096, 8), (4097, 16)):
        (guest.cwd / "a").write_bytes(bytes(size))
        assert guest.stat("a").sectors == sectors
    assert guest.stat(".").size == 4096


def test_link_count_of_a_directory_counts_its_subdirectories(guest):
    (guest.cwd / "a").mkdir()
    (guest.cwd / "b").mkdir()
    (guest.cwd / "c").write_bytes(b"")
    assert guest.stat(".").links == 4  # its name, its dot, two times dot-dot


def test_times_are_the_users_until_the_guest_changes_the_file(guest):
    (guest.cwd / "a").write_bytes(b"x")
    os.utime(guest.cwd / "a", ns=(5, 1_234_567_891_000))
    assert guest.stat("a").modified_ns == guest.stat("a").accessed_ns == 1_234_567_891_000
    guest.write("a", b"y")
    assert guest.stat("a").modified_ns == NOW_NS
    guest.tree.make_directory(guest.start(), "new", 0o755)
    assert guest.stat("new").modified_ns == NOW_NS
    assert guest.stat(".").modified_ns == NOW_NS
    node = guest.tree.find(guest.start(), "a").node
    node.set_times(None, 77_000_000_000)
    assert guest.stat("a").modified_ns == 77_000_000_000
    assert os.stat(guest.cwd / "a").st_mtime == 77
    node.set_times(NOW_NS, NOW_NS)
    assert guest.stat("a").modified_ns == NOW_NS
    assert os.stat(guest.cwd / "a").st_mtime > 1_750_000_000  # "now" is the host's for the user's file: after mid 2025


def test_the_hosts_umask_does_not_show(guest):
    old = os.umask(0o077)
    try:
        guest.tree.open(guest.task, "a", 0o101, 0o664, str(guest.cwd))
        guest.tree.make_directory(guest.start(), "d", 0o755)
    finally:
        os.umask(old)
    assert guest.stat("a").mode & 0o7777 == 0o664
    assert guest.stat("d").mode & 0o7777 == 0o755


def test_a_file_created_without_the_right_to_write_is_writable_through_its_descriptor(guest):
    guest.write("read-only", b"", 0o101)
    file = guest.tree.open(guest.task, "other", 0o101, 0o444, str(guest.cwd))
    assert file.write(guest.task, b"data") == 4
    assert (guest.cwd / "other").read_bytes() == b"data"


def test_the_users_own_files_belong_to_the_guest(guest):
    guest.write("a", b"")
    attributes = guest.stat("a")
    assert (attributes.uid, attributes.gid) == (0, 0)


SAMPLE = Attributes(
    inode=7,
    mode=0o100644,
    size=10_000,
    links=2,
    uid=3,
    gid=4,
    device=(8, 1),
    special=(1, 300),
    modified_ns=5_000_000_006,
)


@pytest.mark.parametrize(
    ("isa", "layout", "size"),
    [
        # st_dev st_ino st_nlink st_mode st_uid st_gid pad st_rdev st_size st_blksize st_blocks atime mtime ctime
        ("x86_64", "<QQQIIIIQqqqqQqQqQ24x", 144),
        # st_dev st_ino st_mode st_nlink st_uid st_gid st_rdev pad st_size st_blksize pad st_blocks atime mtime ctime
        ("aarch64", "<QQIIIIQ8xqi4xqqQqQqQ8x", 128),
    ],
)
def test_struct_stat(make_guest, isa, layout, size):
    data = make_guest(isa).task.architecture.pack_stat(SAMPLE.stat())
    assert len(data) == size
    fields = struct.unpack(layout, data)
    # makedev(8, 1) = 0x801; makedev(1, 300): 300 = 0x12c, so low byte 0x2c, 1 << 8, 0x100 << 12
    special = 0x2C | 1 << 8 | 0x100 << 12
    if isa == "x86_64":
        assert fields[:8] == (0x801, 7, 2, 0o100644, 3, 4, 0, special)
    else:
        assert fields[:7] == (0x801, 7, 0o100644, 2, 3, 4, special)
    assert fields[-9:-6] == (10_000, 4096, 24)  # three blocks of 4096 bytes are 24 sectors
    assert fields[-4:] == (5, 6, 5, 6)


def test_struct_statx():
    data = pack_statx(SAMPLE)
    assert len(data) == 256
    mask, block_size, _, links, uid, gid, mode, inode, size, blocks = struct.unpack_from("<IIQIIIH2xQQQ", data)
    assert (mask, block_size, links, uid, gid, mode) == (0x7FF, 4096, 2, 3, 4, 0o100644)
    assert (inode, size, blocks) == (7, 10_000, 24)
    assert struct.unpack_from("<qI", data, 112) == (5, 6)  # stx_mtime
    assert struct.unpack_from("<4I", data, 128) == (1, 300, 8, 1)


def test_struct_statfs():
    data = FileSystemStatistics(0x1021994, block_count=100, free_blocks=50).pack()
    assert len(data) == 120
    assert struct.unpack_from("<5q", data) == (0x1021994, 4096, 100, 50, 50)
    assert struct.unpack_from("<qqq", data, 64) == (255, 4096, 0)  # f_namelen, f_frsize, f_flags
