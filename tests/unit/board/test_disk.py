"""Disks: files of the host, which a guest changes only where its user said so."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from emulator.board.disk import CLUSTER_BYTES, Disk, NoDisk

SIZE = 5 * CLUSTER_BYTES - 512


@pytest.mark.parametrize("keeps", [False, True])
def test_what_is_written_is_read_again(keeps: bool, tmp_path: Path) -> None:
    random = Random(1)
    model = bytearray(random.randbytes(SIZE))
    path = tmp_path / "disk"
    path.write_bytes(model)
    disk, before = Disk(str(path), keeps=keeps), bytes(model)
    path.rename(tmp_path / "moved")
    for _ in range(50):
        sector = random.randrange(SIZE // 512)
        data = random.randbytes(512 * random.randrange(1, min(20, SIZE // 512 - sector) + 1))
        model[512 * sector : 512 * sector + len(data)] = data
        disk.write(512 * sector, data)
        at = 512 * random.randrange(SIZE // 512)
        assert disk.read(at, SIZE - at) == model[at:]
    assert (tmp_path / "moved").read_bytes() == (model if keeps else before)


def test_what_is_kept_in_memory_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(bytes(SIZE))
    disk = Disk(str(path), keeps=False, most_written_bytes=2 * CLUSTER_BYTES)
    disk.write(0, b"x" * 512)
    disk.write(CLUSTER_BYTES, b"x" * 512)
    with pytest.raises(OSError, match="no more"):
        disk.write(2 * CLUSTER_BYTES, b"x" * 512)
    disk.write(512, b"y" * 512)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "no regular file"),
        (lambda path: path.write_bytes(b""), "0 bytes"),
        (lambda path: path.write_bytes(bytes(513)), "513 bytes; a disk has sectors of 512"),
    ],
)
def test_what_is_no_disk(make, says: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path / "disk")
    with pytest.raises(NoDisk, match=says):
        Disk(str(tmp_path / "disk"), keeps=False)
