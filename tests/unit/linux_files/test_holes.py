"""Holes of files, and what of a file counts as written to the host."""

from __future__ import annotations

import os

import pytest

from calls import result_of
from emulator.linux.errors import ENOSPC, ENXIO, LinuxError
from emulator.linux.fs.file import O_CREAT, O_RDWR
from emulator.linux.fs.open_files import SEEK_DATA, SEEK_HOLE
from emulator.linux.fs.standard_streams import StandardStream
from emulator.linux.sched.waiting import Wake
from emulator.linux.syscalls.copying import copy

BLOCK = 4096


def opened(guest, path, flags=O_RDWR):
    return guest.tree.open(guest.task, str(path), flags, 0o644, str(guest.cwd))


def parts(file, size):
    """Where data and holes begin, as cp asks for them."""
    found, offset = [], 0
    while offset < size:
        try:
            data = file.seek(offset, SEEK_DATA)
        except LinuxError as error:
            if error.code != ENXIO:
                raise
            break
        offset = file.seek(data, SEEK_HOLE)
        found.append((data, offset))
    return found


@pytest.mark.parametrize("where", ["cwd", "tmp", "elsewhere"])
def test_blocks_of_zeroes_are_holes_whoever_keeps_the_file(guest, where):
    # data in blocks 2 and 7, and in 1_000 whole; block 1_001 is not whole, and so no hole
    contents = bytearray(1_001 * BLOCK + 10)
    contents[2 * BLOCK + 5] = contents[7 * BLOCK + BLOCK - 1] = contents[1_000 * BLOCK] = 1
    path = getattr(guest, where) / "f"
    path.write_bytes(contents)  # with real zeroes: what the host knows of holes is not asked
    file = opened(guest, path, O_RDWR if where == "cwd" else 0)
    expected = [(2 * BLOCK, 3 * BLOCK), (7 * BLOCK, 8 * BLOCK), (1_000 * BLOCK, len(contents))]
    assert parts(file, len(contents)) == expected
    with path.open("wb") as sparse:  # and the same where the host has holes
        for offset in (2 * BLOCK + 5, 7 * BLOCK + BLOCK - 1, 1_000 * BLOCK):
            sparse.seek(offset)
            sparse.write(b"\1")
        sparse.truncate(len(contents))
    assert parts(opened(guest, path, O_RDWR if where == "cwd" else 0), len(contents)) == expected


def test_a_hole_of_terabytes_is_found_at_once(guest):
    path = guest.cwd / "f"
    with path.open("wb") as sparse:
        sparse.truncate(8 << 40)
        sparse.seek(4 << 40)
        sparse.write(b"x")
    assert parts(opened(guest, path), 8 << 40) == [(4 << 40, (4 << 40) + BLOCK)]


def test_a_hole_that_is_copied_takes_no_room_on_the_host(guest):
    size = 64 << 20
    with (guest.cwd / "from").open("wb") as sparse:
        sparse.truncate(size)
        sparse.seek(size // 2)
        sparse.write(b"data")
        sparse.truncate(size)
    for name, offsets in (("copied", (0, 0)), ("sent", (None, None))):
        source, target = opened(guest, "from"), opened(guest, name, O_RDWR | O_CREAT)
        steps = copy(guest.task, source, offsets[0], target, offsets[1], size)
        assert result_of(steps, lambda sleep: Wake.TIMEOUT) == size
        made = os.stat(guest.cwd / name)
        assert made.st_size == size
        assert made.st_blocks * 512 <= 4 << 20
        assert (guest.cwd / name).read_bytes() == (guest.cwd / "from").read_bytes()


def test_zeroes_over_what_is_there_are_written(guest):
    guest.write("f", b"x" * 3 * BLOCK)
    opened(guest, "f").write_at(guest.task, BLOCK, bytes(BLOCK))
    assert (guest.cwd / "f").read_bytes() == b"x" * BLOCK + bytes(BLOCK) + b"x" * BLOCK


def test_what_makes_a_file_longer_counts_as_written(make_guest):
    guest = make_guest(most_output_bytes=100_000)
    file = opened(guest, "f", O_RDWR | O_CREAT)  # 4,096 for the name: 95,904 are left
    with pytest.raises(LinuxError) as caught:
        file.truncate(95_905)
    assert caught.value.code == ENOSPC
    assert (guest.cwd / "f").stat().st_size == 0
    file.allocate(guest.task, 0, 0, 50_000)  # 45,904 are left
    file.truncate(10)
    for refused in (
        lambda: file.allocate(guest.task, 0, 40_000, 10_000),
        lambda: file.write_at(guest.task, 1 << 30, b"x"),
        lambda: file.truncate(1 << 40),
    ):
        with pytest.raises(LinuxError) as caught:
            refused()
        assert caught.value.code == ENOSPC
    file.write_at(guest.task, 30_010, b"x" * 10_000)  # a hole of 30,000, and 10,000: 5,904 are left
    assert file.write_at(guest.task, 40_010, b"x" * 10_000) == 5_904
    assert (guest.cwd / "f").stat().st_size == 45_914


def test_standard_output_grows_no_further_either(make_guest, tmp_path):
    guest = make_guest(most_output_bytes=1_000)
    with (tmp_path / "out").open("w+b") as out:
        stream = StandardStream.of_host(guest.tree.superblock, guest.tree.console, out.fileno())
        for refused in (
            lambda: stream.truncate(1_001),
            lambda: stream.write_at(guest.task, 1 << 30, b"x"),
            lambda: (stream.seek(1 << 30, 0), stream.write(guest.task, b"x")),
        ):
            with pytest.raises(LinuxError) as caught:
                refused()
            assert caught.value.code == ENOSPC
        stream.seek(0, 0)
        assert stream.write(guest.task, b"x" * 2_000) == 1_000
        assert os.fstat(out.fileno()).st_size == 1_000


@pytest.mark.parametrize("mode", [0o2755, 0o4755, 0o6777])
def test_no_directory_of_the_host_becomes_set_group_id(guest, mode):
    guest.tree.make_directory(guest.start(), "d", 0o755)
    (guest.cwd / "d").chmod(0o755)
    with pytest.raises(LinuxError):
        guest.tree.find(guest.start(), "d").node.set_mode(mode)
    assert os.stat(guest.cwd / "d").st_mode & 0o7777 == 0o755
