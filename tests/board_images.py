"""Test images in C for boards, of guest_programs/virt_images: built by Debian's compilers when they are wanted."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import require
from guests import DIRECTORY

FLAT_AT = 0x4008_0000
ELF_AT = 0x4020_0000  # so that QEMU has room for the device tree below, where these images look for it
OPTIONS = (
    "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-mgeneral-regs-only", "-march=armv8-a",
    "-mno-outline-atomics", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-pie",
    "-fno-tree-loop-distribute-patterns",
)  # fmt: skip


@cache
def virt_image(kind: str) -> bytes:
    """The image as a "flat" or an "elf" file."""
    prefix = require.command("aarch64-linux-gnu-gcc", package="gcc-aarch64-linux-gnu").removesuffix("gcc")
    sources = DIRECTORY / "virt_images"
    with TemporaryDirectory() as folder:
        start = f"{folder}/start.o"
        subprocess.run([f"{prefix}gcc", *OPTIONS, "-c", sources / "start.S", "-o", start], check=True)
        objects = [start]
        for source in sorted(sources.glob("*.c")):
            objects.append(f"{folder}/{source.stem}.o")
            subprocess.run([f"{prefix}gcc", *OPTIONS, "-c", source, "-o", objects[-1]], check=True)
        place = f"image_base={FLAT_AT if kind == 'flat' else ELF_AT:#x}"
        linker = [f"{prefix}ld", "--no-warn-rwx-segments", "-z", "max-page-size=4096", "--build-id=none"]
        image, flat = Path(folder) / "image.elf", Path(folder) / "image"
        subprocess.run([*linker, "--defsym", place, "-T", sources / "virt.lds", "-o", image, *objects], check=True)
        if kind == "elf":
            return image.read_bytes()
        subprocess.run([f"{prefix}objcopy", "-O", "binary", image, flat], check=True)
        return flat.read_bytes()
