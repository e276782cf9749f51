"""Where checkpoints are kept, and by which key they are found."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from perfemu import checkpoints
from perfemu.checkpoints import Checkpoints, key_of
from perfemu.told import MOST_BYTES, Told

KEY = "0123456789" * 6 + "abcd"


def keep(place: Checkpoints, key: str, data: bytes = b"data") -> None:
    place.keep(key, lambda descriptor: os.write(descriptor, data))


def found(place: Checkpoints, key: str) -> bytes | None:
    with place.opened(key) as descriptor:
        return None if descriptor is None else os.read(descriptor, 100)


def test_what_is_kept_is_found_and_the_users_alone(tmp_path: Path) -> None:
    place = Checkpoints(tmp_path / "cache")
    assert found(place, KEY) is None
    keep(place, KEY)
    assert found(place, KEY) == b"data"
    assert found(place, "f" + KEY[1:]) is None
    (file,) = place.path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o700


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    place = Checkpoints(tmp_path)
    keep(place, KEY)

    def fail(descriptor: int) -> None:
        os.write(descriptor, b"a part")
        raise OSError(28, "full")

    with pytest.raises(OSError, match="full"):
        place.keep(KEY, fail)
    assert found(place, KEY) == b"data"
    assert len(list(place.path.iterdir())) == 1


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Neither to a directory, nor to a file, whoever has made it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = Checkpoints(tmp_path / "cache")
    place.path.parent.mkdir()
    place.path.symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        keep(place, KEY)
    assert found(place, KEY) is None
    place.path.unlink()
    keep(place, KEY)
    (file,) = place.path.iterdir()
    (elsewhere / "file").write_bytes(b"another's")
    file.unlink()
    file.symlink_to(elsewhere / "file")
    assert found(place, KEY) is None
    keep(place, KEY)
    assert (elsewhere / "file").read_bytes() == b"another's"
    assert found(place, KEY) == b"data"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_is_not_used_but_replaced(mode: int, tmp_path: Path) -> None:
    place = Checkpoints(tmp_path / "cache")
    keep(place, KEY)
    (file,) = place.path.iterdir()
    file.chmod(mode)
    assert found(place, KEY) is None
    keep(place, KEY)
    assert found(place, KEY) == b"data"


def test_no_pipe_or_directory_is_a_checkpoint(tmp_path: Path) -> None:
    place = Checkpoints(tmp_path / "cache")
    keep(place, KEY)
    (file,) = place.path.iterdir()
    file.unlink()
    os.mkfifo(file, 0o600)
    assert found(place, KEY) is None
    file.unlink()
    file.mkdir(mode=0o700)
    assert found(place, KEY) is None


def test_the_newest_few_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MOST_FILES", 3)
    place = Checkpoints(tmp_path)
    keys = [digit + KEY[1:] for digit in "abcd"]
    for second, key in enumerate(keys[:3]):
        keep(place, key)
        file = place.path / f"{key[:40]}.checkpoint"
        os.utime(file, (second, second))
    found(place, keys[0])  # is used, now
    keep(place, keys[3])
    assert [found(place, key) is not None for key in keys] == [True, False, True, True]
    monkeypatch.setattr(checkpoints, "MOST_BYTES", 1)
    keep(place, keys[1])  # is larger than all that there may be: the newest alone
    assert [found(place, key) is not None for key in keys] == [False, True, False, False]


def test_a_key_is_of_all_that_a_boot_depends_on(tmp_path: Path) -> None:
    file = tmp_path / "kernel"
    file.write_bytes(b"one")
    facts = "virt", ("console=ttyAMA0", 4), 1 << 30
    key = key_of(facts, [file])
    assert key_of(facts, [file]) == key
    assert key_of([*facts, 1], [file]) != key
    assert key_of(facts, []) != key
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_bytes(b"two")
    os.utime(file, ns=times)  # as if nothing had happened
    assert key_of(facts, [file]) != key


def test_what_was_told_is_told_again() -> None:
    sent, said = bytearray(), list[str]()
    told = Told(sent.extend, said.append)
    for data in (b"a", b"\n", b"\xff"):
        told.send(data)
    told.message("a line")
    told.send(b"b")
    lines = told.taken()
    assert lines == [("sent", "610aff"), ("said", "a line"), ("sent", "62")]
    told.send(b"behind it")
    assert told.taken() == lines
    other_sent, other_said = bytearray(), list[str]()
    Told(other_sent.extend, other_said.append).tell(lines)
    assert (other_sent, other_said) == (b"a\n\xffb", ["a line"])


def test_who_tells_too_much_is_not_kept() -> None:
    told = Told(lambda data: None, lambda text: None)
    told.send(b" " * MOST_BYTES)
    told.send(b"!")
    assert told.taken() is None
