"""Debian's own kernels for AArch64, and an initramfs with busybox to boot them into."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

import require
from perfemu.initramfs import Entry, archive, character_device, directory, file, program

IMAGE = "linux-image-arm64"
LIBRARIES = ("lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib", "usr/lib")
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


def with_libraries(tree: Path, *programs: str) -> list[Entry]:
    """Programs of an unpacked tree, by their paths there, and all shared libraries that they need."""
    found: dict[str, Path] = {}
    wanted = [tree / name for name in programs]
    while wanted:
        path = wanted.pop()
        name = str(path.relative_to(tree))
        if name in found:
            continue
        found[name] = path.resolve()
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            interpreter = next((each.get_interp_name() for each in elf.iter_segments("PT_INTERP")), None)
            dynamic = next(elf.iter_segments("PT_DYNAMIC"), None)
            needed = [] if dynamic is None else [each.needed for each in dynamic.iter_tags("DT_NEEDED")]
        wanted += [_library(tree, each) for each in needed]
        if interpreter is not None:
            wanted.append(tree / interpreter.lstrip("/"))
    return [program(name, path.read_bytes()) for name, path in sorted(found.items())]


def _library(tree: Path, name: str) -> Path:
    return next(path for place in LIBRARIES if (path := tree / place / name).exists())
