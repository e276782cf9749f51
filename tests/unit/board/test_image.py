"""What is bootable, and what is said of what is not."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import pytest

from emulator.board.image import FLAT_OFFSET, NotBootable, read_image
from guests import DIRECTORY
from perfemu.cli.main import main

RAM = 0x4000_0000


def linux_image(size: int = 64, image_size: int = 0x1000) -> bytes:
    return struct.pack("<2I3Q", 0, 0, 0x20_0000, image_size, 0).ljust(56, b"\0") + b"ARM\x64" + bytes(size)


def test_where_each_kind_goes() -> None:
    image = read_image(linux_image(), RAM)
    assert (image.entry, image.end, image.is_linux) == (RAM + 0x20_0000, RAM + 0x20_1000, True)
    assert read_image(gzip.compress(linux_image()), RAM) == image
    flat = read_image(bytes(100), RAM)
    assert (flat.entry, flat.end, flat.is_linux) == (RAM + FLAT_OFFSET, RAM + FLAT_OFFSET + 100, False)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "a file of 0 bytes"),
        (b"\x1f\x8b and no more", "a gzip file that cannot be read"),
        (b"\x7fELF\x02\x01\x01" + bytes(60), "ELF"),
        (b"\x7fELF", "a broken ELF file"),
    ],
)
def test_what_is_not_bootable_is_said(data: bytes, says: str) -> None:
    with pytest.raises(NotBootable, match=says):
        read_image(data, RAM)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--board", "mac", "x"], "--board mac: there is virt, pc"),
        (
            ["--board", "pc", "IMAGE"],
            "a Linux bzImage, a Multiboot or PVH image, or an ELF file for x86-64 is bootable",
        ),
        (["--board", "pc", "--gic", "3", "IMAGE"], "--gic: --board pc has no such thing"),
        (["--board", "pc", "--semihosting", "IMAGE"], "--semihosting: --board pc has no such thing"),
        (["--board", "pc", "--console", "pl011", "IMAGE"], "--console pl011: --board pc has com1, virtio"),
        (
            ["--board", "pc", "--trace", "sysregs", "IMAGE"],
            "--trace sysregs: of --board pc there are exceptions, interrupts",
        ),
        (["--board", "pc", "--memory", "4G", "IMAGE"], "--memory 4G: --board pc has room for 3 GiB"),
        (["--board", "pc", "--core", "cortex-a72", "IMAGE"], "executes aarch64, not x86_64"),
        (["--board", "virt", "--sysroot", "/", "IMAGE"], "--sysroot: is for programs"),
        (["--board", "virt", "IMAGE", "more"], "boots one image; 'more'"),
        (["--board", "virt", "/nonexistent"], "/nonexistent: No such file"),
        (["--board", "virt", "--initrd", "/nonexistent", "IMAGE"], "/nonexistent: No such file"),
        (["--board", "virt", "--core", "zen5", "IMAGE"], "executes x86_64, not aarch64"),
        (["--initrd", "x", "IMAGE"], "--board NAME boots an image"),
        (["--board", "virt", "--gic", "2", "--cpus", "9", "IMAGE"], "--gic 2 --cpus 9: GICv2 reaches 8 CPUs"),
        (["--board", "virt", "--disk", "/nonexistent", "IMAGE"], "--disk /nonexistent: No such file"),
        (["--board", "virt", "--bind", "/tmp", "IMAGE"], "--bind /tmp: a board wants HOST:TAG"),
        (["--semihosting", "IMAGE"], "--board NAME boots an image"),
        (["--board", "virt", "--memory", "16M", "IMAGE"], "the image wants"),
        (["--board", "virt", ""], "name is empty"),
        (["--board", "virt", "--initrd", "", "IMAGE"], "name is empty"),
        (["--board", "virt", "PIPE"], "a pipe, and no file"),
        (["--board", "virt", "--initrd", "PIPE", "IMAGE"], "a pipe, and no file"),
        (["--board", "virt", "--disk", "PIPE", "IMAGE"], "is no regular file"),
        (["--board", "virt", "/dev/null"], "a file of 0 bytes"),
        (["--board", "virt", "/tmp"], "/tmp: Is a directory"),
        (["--board", "virt", "HUGE"], "the image says that it needs memory up to 0x20000040200000"),
        (["--board", "virt", "CUT"], "an ELF file that is cut off: "),
    ],
)
def test_one_line_for_what_is_wrong(
    arguments: list[str], says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "image"
    image.write_bytes(linux_image(15 << 20))
    (tmp_path / "huge").write_bytes(linux_image(image_size=1 << 53))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "cut").write_bytes((DIRECTORY / "board_paging" / "virt.elf").read_bytes()[:5000])
    names = {
        "IMAGE": str(image),
        "HUGE": str(tmp_path / "huge"),
        "PIPE": str(tmp_path / "pipe"),
        "CUT": str(tmp_path / "cut"),
    }
    status = main(["run", *(names.get(each, each) for each in arguments)])
    error = capfd.readouterr().err
    assert status in (1, 129)
    assert says in error
    assert error.count("\n") == 1
