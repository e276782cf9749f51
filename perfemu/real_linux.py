"""A command in a real Linux kernel: Debian's, on a board, with the user's current directory where it is.

The kernel starts with an initramfs of ours: busybox, the modules for the board's devices, and an init that then asks
for its orders: a script in a directory of ours. That mounts what the command needs, runs it, and leaves its status
where we find it. Up to there, everything is the same whatever the command is.
"""

from __future__ import annotations

import lzma
import os
import posixpath
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from perfemu.debian_packages import ARCHITECTURES, Unavailable, there, unpacked
from perfemu.errors import PerfemuError
from perfemu.initramfs import archive, character_device, directory, file, program

# In this order; those that a kernel has built in, or has no more (fscache since 6.9), are not among its modules.
MODULES = (
    "virtio_ring", "virtio", "netfs", "fscache", "9pnet", "9pnet_virtio", "9p", "overlay", "virtio_mmio", "virtio-rng",
)  # fmt: skip
# ... and those of a disk with a file system.
DISK_MODULES = ("virtio_blk", "crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4")
DISKS = ("vda1", "vda")  # where it may be: in a first partition, as Debian's images have it, or on the whole disk
WORK, ROOT, ANSWER = "work", "root", "answer"  # tags of what is shared
ORDERS_FILE, STATUS_FILE = "orders", "status"
NO_FILE_SYSTEM = "disk"  # in the place of a status
SHELL = ".perfemu/busybox"  # in a root, which may have none
MOUNT = "/bin/busybox mount -t"
MOUNTED = "trans=virtio,version=9p2000.L,msize=262144"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SILENT = "console=tty1 quiet"
REBOOT_AT_A_PANIC = "panic=-1"


@dataclass(frozen=True, slots=True)
class Platform:
    """What a board's Linux has of its own."""

    isa: str
    serial: str  # its serial port, in /dev

    @property
    def packages(self) -> tuple[str, ...]:
        """Debian's, of its architecture."""
        return ("busybox-static", f"linux-image-{ARCHITECTURES[self.isa]}")


PLATFORMS = {"virt": Platform("aarch64", "ttyAMA0"), "pc": Platform("x86_64", "ttyS0")}  # by board


@dataclass(frozen=True)
class RealLinux:
    """What Debian's packages have brought: a tree with boot/, lib/modules/ and bin/busybox."""

    tree: Path
    has_disk: bool = False  # the root is on one

    @property
    def image(self) -> Path:
        """The kernel. Of several, the one whose name sorts last."""
        return self._one("boot/vmlinuz-*", "a kernel")

    def initramfs(self) -> bytes:
        """What the kernel runs: it asks for its orders."""
        modules = self._modules
        return archive(
            [
                *(directory(name) for name in ("proc", "sys", "dev", "tmp", ANSWER, "lower", "upper", "new")),
                character_device("dev/console", 5, 1),
                program("bin/busybox", self._busybox.read_bytes()),
                program("init", _init(modules).encode()),
                *(file(f"modules/{name}.ko", _uncompressed(path)) for name, path in modules.items()),
            ]
        )

    @property
    def facts(self) -> tuple[object, ...]:
        """What `initramfs` depends on besides `files`."""
        return (_init(self._modules),)

    @property
    def files(self) -> list[Path]:
        return [self._busybox, *self._modules.values()]

    @property
    def _busybox(self) -> Path:
        return self._one("bin/busybox", "busybox", "usr/bin/busybox")

    def _one(self, pattern: str, what: str, *others: str) -> Path:
        found = [path for each in (pattern, *others) for path in sorted(self.tree.glob(each))]
        if not found:
            raise PerfemuError(f"{self.tree}: {what} should be at {pattern}")
        return found[-1]

    @cached_property
    def _modules(self) -> dict[str, Path]:
        """By name, in their order."""
        version = self.image.name.removeprefix("vmlinuz-")
        wanted = MODULES + (DISK_MODULES if self.has_disk else ())
        found: dict[str, Path] = {}
        for library in ("lib", "usr/lib"):
            for folder, _, names in os.walk(self.tree / library / "modules" / version / "kernel"):
                found.update((name.split(".")[0], Path(folder, name)) for name in names if name.startswith(wanted))
        return {name: found[name] for name in wanted if name in found}


def cached(cache: Path, platform: Platform) -> RealLinux | None:
    """What has been fetched."""
    tree = there(cache, ARCHITECTURES[platform.isa], *platform.packages)
    return None if tree is None else RealLinux(tree)


def fetched(cache: Path, platform: Platform) -> RealLinux:
    """From the host's Debian sources, by apt-get and dpkg-deb. Raises PerfemuError."""
    try:
        return RealLinux(unpacked(cache, ARCHITECTURES[platform.isa], *platform.packages))
    except Unavailable as problem:
        raise PerfemuError(f"linux --fetch: {', '.join(platform.packages)}: {problem}") from None


def kernel_command_line(platform: Platform, *, tells: bool) -> str:
    """`tells`: the kernel's messages appear with the command's output."""
    return f"{f'console={platform.serial}' if tells else SILENT} {REBOOT_AT_A_PANIC}"


def _uncompressed(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def _init(modules: Iterable[str]) -> str:
    lines = ["#!/bin/busybox sh", f"{MOUNT} proc proc /proc", f"{MOUNT} sysfs sys /sys", f"{MOUNT} devtmpfs dev /dev"]
    lines += ["/bin/busybox --install -s /bin", *(f"/bin/busybox insmod /modules/{name}.ko" for name in modules)]
    lines += [f"{MOUNT} 9p -o {MOUNTED} {ANSWER} /{ANSWER}", f". /{ANSWER}/{ORDERS_FILE}", ""]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class OrdersScript:
    """What is to be done in the kernel that has booted, and where."""

    platform: Platform
    work: str  # the directory
    is_terminal: bool
    has_root: bool = False  # a directory's files are the command's root
    has_disk: bool = False  # or a disk's

    def text(self, command: Sequence[str]) -> str:
        """The command, and the board goes off. Without one, a disk's own init."""
        if not command:
            return "\n".join([*_disk_lines(), *_moved("/new"), "exec /bin/busybox switch_root /new /sbin/init", ""])
        root = "/new" if self.has_root or self.has_disk else ""
        serial = f"{root}/dev/{self.platform.serial}"
        lines = [*_root_lines()] if self.has_root else [*_disk_lines()] if self.has_disk else []
        if root:
            lines += [
                f"for each in proc sys dev tmp {posixpath.dirname(SHELL)}; do /bin/busybox mkdir -p {root}/$each; done",
                f"/bin/busybox cp /bin/busybox {root}/{SHELL}",
                *_moved(root),
            ]
        lines += [
            f"/bin/busybox mkdir -p {shlex.quote(root + self.work)}",
            f"{MOUNT} 9p -o {MOUNTED} {WORK} {shlex.quote(root + self.work)}",
            f"exec < {serial} > {serial} 2>&1",
            "/bin/busybox stty " + ("sane" if self.is_terminal else "-echo -onlcr"),
            f"export PATH={PATH} HOME=/root TERM={shlex.quote(os.environ.get('TERM', 'dumb'))}",
        ]
        inner = f"cd {shlex.quote(self.work)} && exec {shlex.join(command)}"
        run = f"/bin/busybox chroot {root} /{SHELL} sh -c" if root else "/bin/sh -c"
        status = [f"echo $? > /{ANSWER}/{STATUS_FILE}"]
        off = [*([f"/bin/busybox sync {root}"] if self.has_disk else []), "/bin/busybox poweroff -f", ""]
        return "\n".join([*lines, f"{run} {shlex.quote(inner)}", *status, *off])


def _root_lines() -> Iterable[str]:
    yield f"{MOUNT} 9p -o {MOUNTED},ro {ROOT} /lower"
    yield f"{MOUNT} tmpfs upper /upper"
    yield "/bin/busybox mkdir /upper/files /upper/work"
    yield f"{MOUNT} overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /new"


def _disk_lines() -> Iterable[str]:
    """A disk that holds no such file system is said to be none on the serial port, and in the status."""
    tries = " || ".join(f"{MOUNT} ext4 /dev/{name} /new 2> /dev/null" for name in DISKS)
    yield f"{tries} || {{ echo {NO_FILE_SYSTEM} > /{ANSWER}/{STATUS_FILE}; /bin/busybox poweroff -f; }}"


def _moved(root: str) -> Iterable[str]:
    yield f"for each in proc sys dev; do /bin/busybox mount --move /$each {root}/$each; done"
