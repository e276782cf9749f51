"""Debian's own kernels for AArch64, and an initramfs with busybox to boot them into."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

import require
from perfemu.initramfs import Entry, archive, character_device, directory, file, program

IMAGE = "linux-image-arm64"
RUN_HEAD = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
PATH=/bin
"""
RUN_TAIL = "\n/bin/busybox poweroff -f\n"


@cache
def kernel(release: str = "") -> Path:
    """The Image of a release's kernel, as its package has it."""
    (image,) = _tree(release).glob("boot/vmlinuz-*")
    return image


def _tree(release: str) -> Path:
    return require.debian_tree("arm64", IMAGE, release=release)


@cache
def busybox() -> bytes:
    tree = require.debian_tree("arm64", "busybox-static")
    return next(path for path in (tree / "bin/busybox", tree / "usr/bin/busybox") if path.exists()).read_bytes()


def initramfs(script: str, *more: Entry) -> bytes:
    """A root whose init runs a script, with busybox in the place of every command, and turns the board off."""
    init = RUN_HEAD + "/bin/busybox --install -s /bin\n" + script + RUN_TAIL
    return archive(
        [
            *(directory(name) for name in ("proc", "sys", "dev", "tmp")),
            character_device("dev/console", 5, 1),
            program("bin/busybox", busybox()),
            program("init", init.encode()),
            *more,
        ]
    )


def modules(*names: str) -> list[Entry]:
    """Of the kernel's own, in /modules: NAME.ko each, uncompressed."""
    found = {path.name.split(".")[0]: path for path in _tree("").glob("**/modules/*/kernel/**/*.ko*")}
    return [file(f"modules/{name}.ko", _uncompressed(found[name])) for name in names]


def _uncompressed(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data
