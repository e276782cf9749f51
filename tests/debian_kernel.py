"""Debian's own kernels, for AArch64 unless told, and an initramfs with busybox to boot them into."""

from __future__ import annotations

import lzma
import os
import struct
import tempfile
import zlib
from functools import cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

import debian
import require
from perfemu.debian_packages import ARCHITECTURES
from perfemu.initramfs import Entry, archive, character_device, directory, file, program
from perfemu.real_linux import PLATFORMS

LIBRARIES = tuple(
    f"{top}{triplet}" for top in ("lib", "usr/lib") for triplet in ("/aarch64-linux-gnu", "/x86_64-linux-gnu", "", "64")
)
XZ = b"\xfd7zXZ\0"
RUN_HEAD = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
PATH=/bin
"""
RUN_TAIL = "\n/bin/busybox poweroff -f\n"


@cache
def kernel(release: str = "", architecture: str = "arm64") -> Path:
    """The Image or bzImage of a release's kernel, as its package has it."""
    (image,) = tree(release, architecture).glob("boot/vmlinuz-*")
    return image


@cache
def vmlinux(release: str = "", architecture: str = "arm64") -> Path:
    """The same kernel, unpacked here and which takes a guest as long as the rest of its boot: an ELF file, for PVH.

    An Image is not packed, and Debian 13's bzImage not by xz: these are as they are.
    """
    image = kernel(release, architecture)
    data = image.read_bytes() if architecture == "amd64" else b""
    payload = _payload(data) if data else b""
    if not payload.startswith(XZ):
        return image
    unpacked = debian.cache_directory() / "kernels" / f"vmlinux-{zlib.crc32(payload):08x}"
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=unpacked.parent, delete=False) as whole:
            whole.write(lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(payload))
        os.replace(whole.name, unpacked)
    return unpacked


def _payload(image: bytes) -> bytes:
    """What a bzImage unpacks, and the size behind it: Documentation/arch/x86/boot.rst."""
    setup_bytes = (image[0x1F1] + 1) * 512
    offset, size = struct.unpack_from("<II", image, 0x248)
    return image[setup_bytes + offset : setup_bytes + offset + size]


def tree(release: str = "", architecture: str = "arm64") -> Path:
    """What `perfemu linux` fetches."""
    (platform,) = (each for each in PLATFORMS.values() if ARCHITECTURES[each.isa] == architecture)
    return require.debian_tree(architecture, *platform.packages, release=release)


@cache
def busybox(architecture: str = "arm64") -> bytes:
    root = tree("", architecture)
    return next(path for name in ("bin", "usr/bin") if (path := root / name / "busybox").exists()).read_bytes()


def initramfs(script: str, *more: Entry, architecture: str = "arm64") -> bytes:
    """A root whose init runs a script, with busybox in the place of every command, and turns the board off."""
    init = RUN_HEAD + "/bin/busybox --install -s /bin\n" + script + RUN_TAIL
    return archive(
        [
            *(directory(name) for name in ("proc", "sys", "dev", "tmp")),
            character_device("dev/console", 5, 1),
            program("bin/busybox", busybox(architecture)),
            program("init", init.encode()),
            *more,
        ]
    )


def modules(*names: str, release: str = "", architecture: str = "arm64") -> list[Entry]:
    """Of the kernel's own, in /modules: NAME.ko each, uncompressed."""
    found = {path.name.split(".")[0]: path for path in tree(release, architecture).glob("**/modules/*/kernel/**/*.ko*")}
    return [file(f"modules/{name}.ko", _uncompressed(found[name])) for name in names]


def _uncompressed(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def with_libraries(root: Path, *programs: str) -> list[Entry]:
    """Programs of an unpacked system, by their paths there, and all shared libraries that they need."""
    found: dict[str, Path] = {}
    wanted = [root / name for name in programs]
    while wanted:
        path = wanted.pop()
        name = str(path.relative_to(root))
        if name in found:
            continue
        found[name] = path.resolve()
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            interpreter = next((each.get_interp_name() for each in elf.iter_segments("PT_INTERP")), None)
            dynamic = next(elf.iter_segments("PT_DYNAMIC"), None)
            needed = [] if dynamic is None else [each.needed for each in dynamic.iter_tags("DT_NEEDED")]
        wanted += [_library(root, each) for each in needed]
        if interpreter is not None:
            wanted.append(root / interpreter.lstrip("/"))
    return [program(name, path.read_bytes()) for name, path in sorted(found.items())]


def _library(root: Path, name: str) -> Path:
    return next(path for place in LIBRARIES if (path := root / place / name).exists())
