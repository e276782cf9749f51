"""What we pack, cpio unpacks."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import require
from perfemu.initramfs import archive, character_device, file, link, program


def test_cpio_unpacks_it(tmp_path: Path) -> None:
    cpio = require.command("busybox", package="busybox-static")
    data = archive([program("bin/sh", b"#!x"), file("etc/a/b", b"12345"), link("init", "bin/sh")])
    subprocess.run([cpio, "cpio", "-i"], input=data, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "bin/sh").read_bytes() == b"#!x"
    assert stat.S_IMODE((tmp_path / "bin/sh").stat().st_mode) == 0o755
    assert (tmp_path / "etc/a/b").read_bytes() == b"12345"
    assert os.readlink(tmp_path / "init") == "bin/sh"


def test_it_lists_devices_and_parents_once() -> None:
    cpio = require.command("busybox", package="busybox-static")
    data = archive([character_device("dev/console", 5, 1), file("dev/x", b"")])
    listed = subprocess.run([cpio, "cpio", "-t", "-v"], input=data, check=True, capture_output=True, text=False).stdout
    lines = [line.split() for line in listed.decode().splitlines()]
    assert [line[0][0] for line in lines] == ["d", "c", "-"]
    assert lines[1][-1] == "dev/console"


def test_the_same_entries_give_the_same_bytes() -> None:
    entries = [file("a", b"1"), file("b", b"2")]
    assert archive(entries) == archive(entries)
