"""Output files where the host has no O_TMPFILE, or its directory may not be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from perfemu.output_file import open_output, write_file


@pytest.fixture(params=[errno.EOPNOTSUPP, errno.EACCES])
def refusing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A host that refuses nameless files with this errno."""
    really = os.open

    def refuses(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(request.param, os.strerror(request.param))
        return really(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refuses)
    return int(request.param)


def test_without_nameless_files(refusing: int, tmp_path: Path) -> None:
    """A name that is gone at once does as well; where the directory is not ours, a file in it can still be."""
    path = tmp_path / "out"
    path.write_bytes(b"what was there before, and is longer")
    inode = path.stat().st_ino
    output = open_output(str(path))
    output.file.write(b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    assert path.read_bytes().startswith(b"what")
    assert output.publish() == str(path)
    assert path.read_bytes() == b"new"
    assert (path.stat().st_ino == inode) == (refusing == errno.EACCES)
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_discarding(refusing: int, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    output = open_output(str(tmp_path / "out"))
    output.file.write(b"new")
    output.discard()
    assert (tmp_path / "out").read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        write_file(str(tmp_path / "out"), b"x" * number)
        open_output(str(tmp_path / "out"), appends=True).discard()
        open_output(str(tmp_path / "out"), keeps_old=True).publish()
    assert len(os.listdir("/proc/self/fd")) == before
