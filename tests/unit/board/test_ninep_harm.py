"""9P: clients that mean harm, and unusual shares. Nothing of it costs the host more than an honest client does."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest

from emulator.board.ninep import server
from tests.unit.board.test_ninep import ATTACH, CLUNK, MKDIR, READ, RENAME, UNLINK, WRITE, Client, text

VERSION, ATTRIBUTES, SET_ATTRIBUTES, LIST = 100, 24, 26, 40
QID = slice(0, 13)
QID_OF_ATTRIBUTES = slice(8, 21)


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    (folder / "below").mkdir(parents=True)
    (folder / "below/file").write_bytes(b"contents")
    return folder


def bytes_of(answer: bytes | int) -> bytes:
    assert isinstance(answer, bytes), os.strerror(answer)
    return answer


def attributes(client: Client, fid: int) -> bytes:
    return bytes_of(client.ask(ATTRIBUTES, struct.pack("<IQ", fid, 0x7FF)))


@pytest.mark.parametrize(
    ("asked", "given"), [(0, 4096), (24, 4096), (8192, 8192), (0xFFFF_FFFF, 512 << 10), (1 << 31, 512 << 10)]
)
def test_sizes_of_messages(asked: int, given: int, share: Path) -> None:
    client = Client(share)
    assert client.ask(VERSION, struct.pack("<I", asked) + text("9P2000.L")) == struct.pack("<I", given) + text(
        "9P2000.L"
    )


def test_a_file_from_before_1970(share: Path) -> None:
    os.utime(share / "below/file", ns=(-1_500_000_000, -1_500_000_000))
    client = Client(share)
    client.walk(1, "below", "file")
    assert struct.unpack_from("<2q", attributes(client, 1), 73) == (-2, 500_000_000)  # mtime, behind atime


@pytest.mark.parametrize("time", [(1 << 64) - 1, 1 << 63, 1 << 40])
def test_times_that_no_file_has(time: int, share: Path) -> None:
    client = Client(share)
    client.walk(1, "below", "file")
    body = struct.pack("<IIIIIQQQQQ", 1, 32 | 256, 0, 0, 0, 0, 0, 0, time, time)
    answer = client.ask(SET_ATTRIBUTES, body)
    assert answer in (b"", errno.EFBIG, errno.EINVAL)
    assert attributes(client, 1)


@pytest.mark.parametrize("size", [1 << 63, (1 << 64) - 1])
def test_sizes_that_no_file_has(size: int, share: Path) -> None:
    client = Client(share)
    client.walk(1, "below", "file")
    assert client.ask(SET_ATTRIBUTES, struct.pack("<IIIIIQQQQQ", 1, 8, 0, 0, 0, size, 0, 0, 0, 0)) == errno.EFBIG
    assert (share / "below/file").read_bytes() == b"contents"


@pytest.mark.parametrize("offset", [1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("kind", [READ, WRITE, LIST])
def test_offsets_that_no_file_has(kind: int, offset: int, share: Path) -> None:
    client = Client(share)
    client.walk(1, "below", *([] if kind == LIST else ["file"]))
    client.open(1, os.O_RDONLY if kind == LIST else os.O_RDWR)
    answer = client.ask(kind, struct.pack("<IQI", 1, offset, 1) + b"x")
    assert answer == (bytes(4) if kind == LIST else errno.EFBIG)


def test_counts_that_a_message_has_not(share: Path) -> None:
    client = Client(share)
    client.walk(1, "below", "file")
    client.open(1, os.O_RDWR)
    assert client.ask(WRITE, struct.pack("<IQI", 1, 0, 0xFFFF_FFFF) + b"x") == errno.EINVAL
    assert len(bytes_of(client.ask(READ, struct.pack("<IQI", 1, 0, 0xFFFF_FFFF)))) == 4 + len(b"contents")
    assert client.ask(110, struct.pack("<IIH", 0, 5, 0xFFFF)) == errno.EINVAL  # so many steps of a walk


def test_what_is_open_stays_what_it_is(share: Path) -> None:
    client = Client(share)
    client.walk(1, "below")
    assert isinstance(client.open(1), bytes)
    assert client.open(1) == client.create(1, "made") == errno.EINVAL
    assert client.ask(110, struct.pack("<IIH", 1, 1, 1) + text("file")) == errno.EINVAL
    assert isinstance(client.ask(110, struct.pack("<IIH", 1, 2, 1) + text("file")), bytes)


def test_listings_have_a_limit(share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_LISTED", 7)
    client = Client(share)
    for fid in (1, 2, 3):
        client.walk(fid, "below")
        client.open(fid)
    listed = [client.ask(LIST, struct.pack("<IQI", fid, 0, 4096)) for fid in (1, 2, 3)]
    assert [isinstance(answer, bytes) for answer in listed] == [True, True, False]  # three entries each
    assert listed[2] == errno.ENOMEM
    client.ask(CLUNK, struct.pack("<I", 1))
    assert client.ask(LIST, struct.pack("<IQI", 3, 0, 4096)) == listed[0]
    assert client.ask(LIST, struct.pack("<IQI", 3, 0, 1)) == bytes(4)  # no room for one


def test_numbers_of_files_have_a_limit(share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_FIDS", 3)
    client = Client(share)
    assert isinstance(client.walk(1), bytes)
    assert isinstance(client.walk(2), bytes)
    assert client.walk(3) == client.ask(ATTACH, struct.pack("<II", 4, 0) + text("") * 2 + bytes(4)) == errno.ENFILE


def test_paths_have_a_limit(share: Path) -> None:
    """A path of one-letter names is as deep as the host would let it be: 2048. Every number for a file carries one."""
    client = Client(share, most=1 << 30)
    fid, depth, failed = 0, 0, 0
    while not failed and depth < 300:
        made = client.ask(MKDIR, struct.pack("<I", fid) + text("d") + struct.pack("<II", 0o755, 0))
        walked = client.ask(110, struct.pack("<IIH", fid, fid + 1, 1) + text("d"))
        failed = next((answer for answer in (made, walked) if isinstance(answer, int)), 0)
        fid, depth = fid + 1, depth + 1
    assert (failed, depth) == (errno.ENAMETOOLONG, 257)


def test_numbers_are_not_those_of_files_that_are_gone(share: Path) -> None:
    """Else the guest sees which numbers the host gives to files again."""
    client = Client(share)
    numbers = set()
    for turn in range(4):
        client.walk(1)
        numbers.add(bytes_of(client.create(1, "made"))[QID])
        if turn == 1 or turn == 2:
            client.ask(RENAME, struct.pack("<I", 0) + text("made") + struct.pack("<I", 0) + text("kept"))
        else:
            client.ask(UNLINK, struct.pack("<I", 0) + text("made") + bytes(4))
        attributes(client, 1)
        client.ask(CLUNK, struct.pack("<I", 1))
    assert len(numbers) == 4
    known = client.server._share._numbers.values()
    assert len(known) == 2  # the root, and what is kept
