"""Test images in C for boards, of guest_programs/{virt,pc}_images: built by Debian's compilers when they are wanted."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import require
from guests import DIRECTORY

FLAT_AT = 0x4008_0000
ELF_AT = 0x4020_0000  # so that QEMU has room for the device tree below, where these images look for it
OPTIONS = (
    "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-mgeneral-regs-only", "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables", "-fno-pie", "-fno-tree-loop-distribute-patterns",
)  # fmt: skip
ARM_OPTIONS = "-march=armv8-a", "-mno-outline-atomics"
PC_OPTIONS = {
    32: ("-m32", "-march=i686", "-fcf-protection=none"),
    64: ("-m64", "-march=x86-64", "-fcf-protection=none", "-mno-red-zone"),
}


@cache
def virt_image(kind: str) -> bytes:
    """The image as a "flat" or an "elf" file."""
    prefix = "aarch64-linux-gnu-"
    require.command(f"{prefix}gcc", package="gcc-aarch64-linux-gnu")
    place = f"image_base={FLAT_AT if kind == 'flat' else ELF_AT:#x}"
    with TemporaryDirectory() as folder:
        image = _linked(prefix, DIRECTORY / "virt_images", ARM_OPTIONS, ("--defsym", place), Path(folder))
        return image.read_bytes() if kind == "elf" else _converted(prefix, image, "binary")


@cache
def pc_image(bits: int) -> bytes:
    """An ELF file of 32 bits, as Multiboot's loaders want it, which executes in mode of so many: 32 or 64."""
    with TemporaryDirectory() as folder:
        return _converted("", pc_program(bits, Path(folder)), "elf32-i386")


def pc_program(bits: int, folder: Path) -> Path:
    """The same in the format of its mode, as debuggers want its symbols."""
    emulation = {32: "elf_i386", 64: "elf_x86_64"}[bits]
    require.command("gcc", package="gcc")
    return _linked("", DIRECTORY / "pc_images", PC_OPTIONS[bits], ("-m", emulation), folder)


def _linked(prefix: str, sources: Path, of_target: Sequence[str], linked: Sequence[str], folder: Path) -> Path:
    objects = []
    for source in (sources / "start.S", *sorted(sources.glob("*.c"))):
        objects.append(folder / f"{source.stem}.o")
        subprocess.run([f"{prefix}gcc", *OPTIONS, *of_target, "-c", source, "-o", objects[-1]], check=True)
    image = folder / "image.elf"
    options = ["--no-warn-rwx-segments", "-z", "max-page-size=4096", "--build-id=none", *linked]
    (script,) = sources.glob("*.lds")
    subprocess.run([f"{prefix}ld", *options, "-T", script, "-o", image, *objects], check=True)
    return image


def _converted(prefix: str, image: Path, to: str) -> bytes:
    converted = image.with_suffix(".image")
    subprocess.run([f"{prefix}objcopy", "-O", to, image, converted], check=True)
    return converted.read_bytes()
