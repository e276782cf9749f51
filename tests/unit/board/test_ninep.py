"""9P: what a guest says to the server, and what it cannot reach."""

from __future__ import annotations

import errno
import os
import struct
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from emulator.board.ninep.server import Server
from emulator.board.ninep.wire import HEAD, BadMessage, text
from perfemu.board_shares import shares
from perfemu.errors import UsageError

ATTACH, WALK, OPEN, CREATE, READ, WRITE, CLUNK, SYMLINK, MKDIR, UNLINK, RENAME = (
    104, 110, 12, 14, 116, 118, 120, 16, 72, 76, 74,
)  # fmt: skip
FROM_ROOT = struct.pack("<I", 0)


class Client:
    """Fid 0 is the root."""

    def __init__(self, folder: Path, mode: str = ":rw", most: int = 1 << 20) -> None:
        (share,) = shares([f"{folder}:tag{mode}"], most).values()
        self.server = Server(share)
        self.ask(ATTACH, struct.pack("<II", 0, ~0 & 0xFFFF_FFFF) + text("root") + text("") + FROM_ROOT)

    def ask(self, kind: int, body: bytes) -> bytes | int:
        """The answer's body, or the error's number."""
        answer = self.server.answer(HEAD.pack(HEAD.size + len(body), kind, 7) + body)
        size, found, tag = HEAD.unpack_from(answer)
        assert (size, tag) == (len(answer), 7)
        assert found in (kind + 1, 7)
        return answer[HEAD.size :] if found == kind + 1 else int(struct.unpack_from("<I", answer, HEAD.size)[0])

    def walk(self, fid: int, *names: str) -> bytes | int:
        return self.ask(WALK, struct.pack("<IIH", 0, fid, len(names)) + b"".join(map(text, names)))

    def open(self, fid: int, flags: int = os.O_RDONLY) -> bytes | int:
        return self.ask(OPEN, struct.pack("<II", fid, flags))

    def create(self, fid: int, name: str, flags: int = os.O_RDWR, mode: int = 0o644) -> bytes | int:
        return self.ask(CREATE, struct.pack("<I", fid) + text(name) + struct.pack("<III", flags, mode, 0))


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    (folder / "below").mkdir(parents=True)
    (folder / "below/file").write_bytes(b"contents")
    (folder / "link").symlink_to("..")
    (tmp_path / "secret").write_bytes(b"secret")
    return folder


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (("link", "secret"), errno.ENOENT),  # a link is for the guest to follow, in its own tree
        (("below/file",), errno.EINVAL),
        (("below", "x" * 256), errno.ENAMETOOLONG),
        (("",), errno.EINVAL),
        ((".",), errno.EINVAL),
        (("zero\0",), errno.EINVAL),
        (("missing",), errno.ENOENT),
    ],
)
def test_ways_that_lead_nowhere(names: tuple[str, ...], error: int, share: Path) -> None:
    client = Client(share)
    found = client.walk(1, *names)
    if isinstance(found, int):
        assert found == error
    else:  # as far as it goes, and the number is not given
        assert struct.unpack_from("<H", found)[0] < len(names)
        assert client.open(1) == errno.EBADF


def test_up_ends_at_the_root(share: Path) -> None:
    client = Client(share)
    assert client.walk(1, "below", "..", "..", "..") != errno.ENOENT
    assert client.walk(2, "below", "..", "..", "secret") == errno.ENOENT or client.open(2) == errno.EBADF
    assert client.open(1) != errno.EBADF


def test_a_directory_that_becomes_a_link_is_not_followed(share: Path) -> None:
    client = Client(share)
    client.walk(1, "below")
    client.walk(2, "below", "file")
    (share / "below").rename(share / "moved")
    (share / "below").symlink_to(share.parent)
    assert client.create(1, "made") in (errno.ENOENT, errno.ENOTDIR)
    assert client.open(2) == errno.ENOENT
    assert sorted(os.listdir(share.parent)) == ["secret", "share"]


def test_what_may_only_be_read(share: Path) -> None:
    client = Client(share, ":ro")
    client.walk(1, "below")
    client.walk(2, "below", "file")
    assert client.open(2, os.O_WRONLY) == client.open(2, os.O_TRUNC) == client.create(1, "made") == errno.EROFS
    assert isinstance(client.open(2), bytes)
    assert client.ask(READ, struct.pack("<IQI", 2, 3, 100)) == struct.pack("<I", 5) + b"tents"
    assert client.ask(WRITE, struct.pack("<IQI", 2, 0, 1) + b"x") == errno.EROFS
    for kind, body in (
        (SYMLINK, FROM_ROOT + text("made") + text("target") + FROM_ROOT),
        (MKDIR, FROM_ROOT + text("made") + struct.pack("<II", 0o755, 0)),
        (UNLINK, FROM_ROOT + text("link") + FROM_ROOT),
        (RENAME, FROM_ROOT + text("link") + FROM_ROOT + text("other")),
    ):
        assert client.ask(kind, body) == errno.EROFS
    assert sorted(os.listdir(share)) == ["below", "link"]


def test_limits(share: Path) -> None:
    client = Client(share, most=4096 + 10)
    client.walk(1)
    assert isinstance(client.create(1, "made"), bytes)
    assert client.ask(WRITE, struct.pack("<IQI", 1, 0, 10) + b"0123456789") == struct.pack("<I", 10)
    assert client.ask(WRITE, struct.pack("<IQI", 1, 0, 1) + b"0") == errno.ENOSPC
    client.walk(2)
    assert client.create(2, "more") == errno.ENOSPC
    for fid in range(3, 300):
        client.walk(fid)
        if client.open(fid) == errno.EMFILE:
            break
    assert fid == 258  # 256 are open, with the file
    assert client.create(2, "setuid", mode=0o4755) == errno.EMFILE


def test_no_file_that_gives_rights_is_made(share: Path) -> None:
    assert Client(share).create(0, "made", mode=0o4755) == errno.EPERM


@pytest.mark.parametrize("seed", range(30))
def test_whatever_a_guest_says(seed: int, share: Path) -> None:
    """An answer or an error, and nothing outside of the share is touched."""
    random, client = Random(seed), Client(share)
    words = ["below", "file", "link", "..", ".", "", "a", "b", "x" * 300, "../secret", "/etc"]
    for _ in range(300):
        parts = []
        for _ in range(random.randrange(7)):
            number = random.choice((0, 1, 2, 3, random.getrandbits(32)))
            kinds = struct.pack("<I", number), text(random.choice(words)), struct.pack("<QH", number, number & 3)
            parts.append(random.choice(kinds))
        kind = random.choice([*client.server._answers, 30, 32, 102, random.randrange(256)])
        with suppress(BadMessage):
            client.server.answer(HEAD.pack(0, kind, 1) + b"".join(parts))
    with suppress(BadMessage):
        client.server.answer(b"short")
    assert sorted(os.listdir(share.parent)) == ["secret", "share"]
    assert (share.parent / "secret").read_bytes() == b"secret"


@pytest.mark.parametrize(
    ("bind", "says"),
    [
        ("DIR", "HOST:TAG"),
        ("DIR:a/b", "HOST:TAG"),
        ("DIR/missing:tag", "no directory"),
        ("/proc:tag", "the host's kernel"),
    ],
)
def test_binds_that_are_none(bind: str, says: str, share: Path) -> None:
    with pytest.raises(UsageError, match=says):
        shares([bind.replace("DIR", str(share))], 0)
