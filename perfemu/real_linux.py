"""A command in a real Linux kernel: Debian's, on a board, with the user's current directory where it is.

The kernel starts with an initramfs of ours: busybox, the modules for the board's devices, and an init that mounts what
the command needs, runs it, and leaves its status where we find it.
"""

from __future__ import annotations

import lzma
import os
import posixpath
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfemu import debian_packages
from perfemu.errors import PerfemuError
from perfemu.initramfs import Entry, archive, character_device, directory, file, program

ISA = "aarch64"
PACKAGES = ("busybox-static", "linux-image-arm64")
# In this order; those that a kernel has built in, or has no more (fscache since 6.9), are not among its modules.
MODULES = ("netfs", "fscache", "9pnet", "9pnet_virtio", "9p", "overlay", "virtio_mmio", "virtio-rng")
WORK, ROOT, ANSWER = "work", "root", "answer"  # tags of what is shared
SERIAL = "/dev/ttyAMA0"
STATUS_FILE = "status"
SHELL = ".perfemu/busybox"  # in a root, which may have none
MOUNTED = "trans=virtio,version=9p2000.L,msize=262144"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SILENT, TELLING = "console=tty1 quiet", "console=ttyAMA0"
REBOOT_AT_A_PANIC = "panic=-1"


@dataclass(frozen=True, slots=True)
class RealLinux:
    """What Debian's packages have brought: a tree with boot/, lib/modules/ and bin/busybox."""

    tree: Path

    @property
    def image(self) -> Path:
        """The kernel. Of several, the one whose name sorts last."""
        return self._one("boot/vmlinuz-*", "a kernel")

    def initramfs(self, command: Sequence[str], directory_of_work: str, *, has_root: bool, is_terminal: bool) -> bytes:
        """What the kernel runs: the command in that directory, and the board goes off."""
        modules = self._modules()
        script = _init(command, directory_of_work, [each.path for each in modules], has_root, is_terminal)
        busybox = self._one("bin/busybox", "busybox", "usr/bin/busybox")
        return archive(
            [
                *(directory(name) for name in ("proc", "sys", "dev", "tmp", ANSWER, "lower", "upper", "new")),
                character_device("dev/console", 5, 1),
                program("bin/busybox", busybox.read_bytes()),
                program("init", script.encode()),
                *modules,
            ]
        )

    def _one(self, pattern: str, what: str, *others: str) -> Path:
        found = [path for each in (pattern, *others) for path in sorted(self.tree.glob(each))]
        if not found:
            raise PerfemuError(f"{self.tree}: {what} should be at {pattern}")
        return found[-1]

    def _modules(self) -> list[Entry]:
        version = self.image.name.removeprefix("vmlinuz-")
        found = {
            path.name.split(".")[0]: path
            for path in self.tree.glob("**/modules/*/kernel/**/*.ko*")
            if version in path.parts
        }
        return [file(f"modules/{name}.ko", _uncompressed(found[name])) for name in MODULES if name in found]


def cached(cache: Path) -> RealLinux | None:
    """What has been fetched."""
    tree = debian_packages.there(cache, debian_packages.ARCHITECTURES[ISA], *PACKAGES)
    return None if tree is None else RealLinux(tree)


def fetched(cache: Path) -> RealLinux:
    """From the host's Debian sources, by apt-get and dpkg-deb. Raises PerfemuError."""
    try:
        return RealLinux(debian_packages.unpacked(cache, debian_packages.ARCHITECTURES[ISA], *PACKAGES))
    except debian_packages.Unavailable as problem:
        raise PerfemuError(f"linux --fetch: {', '.join(PACKAGES)}: {problem}") from None


def kernel_command_line(*, tells: bool) -> str:
    """`tells`: the kernel's messages appear with the command's output."""
    return f"{TELLING if tells else SILENT} {REBOOT_AT_A_PANIC}"


def _uncompressed(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def _init(command: Sequence[str], work: str, modules: Sequence[str], has_root: bool, is_terminal: bool) -> str:
    mount = "/bin/busybox mount -t"
    lines = ["#!/bin/busybox sh", f"{mount} proc proc /proc", f"{mount} sysfs sys /sys", f"{mount} devtmpfs dev /dev"]
    lines += [f"/bin/busybox insmod /{module}" for module in modules]
    lines += [f"{mount} 9p -o {MOUNTED} {ANSWER} /{ANSWER}"]
    if has_root:
        lines += [
            f"{mount} 9p -o {MOUNTED},ro {ROOT} /lower",
            f"{mount} tmpfs upper /upper",
            "/bin/busybox mkdir /upper/files /upper/work",
            f"{mount} overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /new",
            "for each in proc sys dev tmp; do /bin/busybox mkdir -p /new/$each; done",
            f"/bin/busybox mkdir -p /new/{posixpath.dirname(SHELL)}",
            f"/bin/busybox cp /bin/busybox /new/{SHELL}",
            "for each in proc sys dev; do /bin/busybox mount --move /$each /new/$each; done",
        ]
    else:
        lines += ["/bin/busybox --install -s /bin"]
    root = "/new" if has_root else ""
    lines += [
        f"/bin/busybox mkdir -p {shlex.quote(root + work)}",
        f"{mount} 9p -o {MOUNTED} {WORK} {shlex.quote(root + work)}",
        f"exec < {root}{SERIAL} > {root}{SERIAL} 2>&1",
        "/bin/busybox stty " + ("sane" if is_terminal else "-echo -onlcr"),
        f"export PATH={PATH} HOME=/root TERM={shlex.quote(os.environ.get('TERM', 'dumb'))}",
    ]
    inner = f"cd {shlex.quote(work)} && exec {shlex.join(command)}"
    run = f"/bin/busybox chroot {root} /{SHELL} sh -c" if has_root else "/bin/sh -c"
    lines += [f"{run} {shlex.quote(inner)}", f"echo $? > /{ANSWER}/{STATUS_FILE}", "/bin/busybox poweroff -f", ""]
    return "\n".join(lines)
