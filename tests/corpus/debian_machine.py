"""A directory as an installed Debian machine has it at its root: packages unpacked, and what their scripts would have
made that programs look at: users, compiled Python modules, the caches' directories.
"""

from __future__ import annotations

import fcntl
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import debian
import require
from debian import ARCHITECTURES
from reference import CPU, QEMU

CONFIGURED = "configured-3"  # another number when `_configure` does something else
MERGED = ("bin", "sbin", "lib", "lib64")  # links to usr/..., since Debian 12 (base-files, usrmerge)
HOST_ISA = platform.machine()
BASE = ("base-files", "base-passwd", "coreutils", "dash", "grep", "libc-bin", "netbase", "sed", "tar")
USERS = Path("usr/share/base-passwd")  # what base-passwd's script copies to /etc
PYTHON = Path("usr/lib/python3.11")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")
DESCRIPTORS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}


def machine(isa: str, packages: Sequence[str]) -> Path:
    """Its root directory; made the first time. Nothing writes there afterwards."""
    if HOST_ISA not in ARCHITECTURES:
        require.missing(f"programs run natively for comparison on {' and '.join(ARCHITECTURES)}, not on {HOST_ISA}")
    root = require.debian_tree(ARCHITECTURES[isa], *BASE, *packages)
    finished = root.with_name(f"{root.name}.{CONFIGURED}")
    if not finished.exists():
        with (root.parent.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not finished.exists():
                _configure(isa, root, packages)
                finished.touch()
    return root


# proot's own exit status is of whoever came last, and nothing is said of signals.
STATUS = "exit status"  # a file of the temporary directory
TELL_STATUS = f'exec 8>&2 2>/dev/null; (exec "$0" "$@" 2>&8 8>&-); echo $? > "/tmp/{STATUS}"'


def command(isa: str, root: Path, directory: Path, temporary: Path, argv: Sequence[str]) -> list[str]:
    """What runs `argv` on the machine `root` on this host's Linux: in `directory`, with `temporary` as /tmp.

    proot gives a process and its children another root by ptrace, without privileges; it starts qemu-user for
    each program if the host's processor is another.
    """
    proot = require.command("proot", package="proot")
    started = [proot, "--root-id", "-r", f"{root}/"]
    if isa != HOST_ISA:
        qemu = require.command(QEMU[isa], package="qemu-user")
        started += ["-q", f"{qemu} -cpu {CPU[isa]}"]
    started += ["-b", f"{_devices(root)}:/dev"]
    for device in DEVICES:
        if Path("/dev", device).exists():
            started += ["-b", f"/dev/{device}"]
    started += ["-b", "/proc", "-b", f"{temporary}:/tmp", "-b", str(directory), "-w", str(directory)]
    return [*started, "/bin/sh", "-c", TELL_STATUS, *argv]


def _configure(isa: str, root: Path, packages: Sequence[str]) -> None:
    devices = _devices(root)
    devices.mkdir(exist_ok=True)
    for name, target in DESCRIPTORS.items():
        (devices / name).unlink(missing_ok=True)
        (devices / name).symlink_to(f"/proc/self/{target}")
    for name in MERGED:
        _merge(root / name, root / "usr" / name)
    for name in ("passwd", "group"):
        shutil.copy(root / USERS / f"{name}.master", root / "etc" / name)
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    if not (root / PYTHON).is_dir():
        return
    if (
        isa != HOST_ISA
    ):  # nearly all that is compiled is the same for every ISA, and much faster to be had on the host's
        _copy_compiled(machine(HOST_ISA, packages) / PYTHON, root / PYTHON)
    _compile_python(isa, root)


def _merge(directory: Path, into: Path) -> None:
    """Move what is in `directory` to where it belongs, below usr, and leave a link."""
    if directory.is_dir() and not directory.is_symlink():
        _move(directory, into)
        directory.symlink_to(f"usr/{into.name}")


def _move(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        target.mkdir(exist_ok=True)
        for entry in sorted(source.iterdir()):
            _move(entry, target / entry.name)
        source.rmdir()
    elif source.is_symlink() and target.exists():
        source.unlink()  # one of the links from the time when both places were needed
    else:
        source.replace(target)


def _devices(root: Path) -> Path:
    """/dev, but for the devices."""
    return root.with_name(f"{root.name}.dev")


def _compile_python(isa: str, root: Path) -> None:
    temporary = debian.cache_directory()
    argv = ["/usr/bin/python3", "-m", "compileall", "-q", "-x", "lib2to3/tests|test/.*bad", f"/{PYTHON}"]
    subprocess.run(
        command(isa, root, temporary, temporary, argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        check=True,
    )


def _copy_compiled(source: Path, target: Path) -> None:
    for compiled in source.rglob("__pycache__"):
        directory = target / compiled.relative_to(source)
        if directory.parent.is_dir():
            shutil.copytree(compiled, directory, dirs_exist_ok=True)
