"""Namespace: where on the host the guest's paths are, for the tool: to find the program before there is a machine.

The guest itself goes through emulator/linux/fs/file_tree.py; both resolve symbolic links in the guest's tree alone.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from emulator.linux.fs.binds import Bind, by_depth
from emulator.linux.fs.host_files import kernel_devices
from emulator.linux.fs.paths import SYMLINK_LIMIT
from perfemu.errors import UsageError

MACHINES_OWN = ("/proc", "/sys", "/dev")


@dataclass(frozen=True, slots=True)
class Namespace:
    """What of the host is where. `sysroot` is looked at first."""

    sysroot: str | None = None
    binds: tuple[Bind, ...] = ()
    isolated: bool = False

    @property
    def is_plain(self) -> bool:
        """Every path is the host's own."""
        return not self.binds and not self.isolated

    def on_host(self, path: str) -> str | None:
        """Where the guest's absolute `path` is; None where nothing is."""
        below = self.below_sysroot(path)
        if below is not None or not self.is_plain:
            return below or resolve(path, self)
        return path if os.path.exists(path) else None

    def below_sysroot(self, path: str) -> str | None:
        """... if the sysroot has it: absolute symbolic links stay inside."""
        if self.sysroot is None:
            return None
        return resolve(path, Namespace(binds=(Bind(self.sysroot, "/"),), isolated=True))

    def translate(self, path: str) -> str | None:
        """Where the guest's `path` is, in which no symbolic link is; None for what is no host's."""
        for bind in reversed(self.binds):
            if bind.guest == "/":
                return bind.host + path if path != "/" else bind.host
            if path == bind.guest or path.startswith(bind.guest + "/"):
                return bind.host + path[len(bind.guest) :]
        if self.isolated or (self.binds and self.binds[0].guest == "/"):
            return None
        return path

    def guest_directory(self, host_directory: str) -> str:
        """What the guest calls a directory of the host: by the deepest bind that shows it, or /."""
        real = os.path.realpath(host_directory)
        found = "/"
        longest = -1
        for bind in self.binds:
            if (real + "/").startswith(bind.host.rstrip("/") + "/") and len(bind.host) > longest:
                below = real[len(bind.host.rstrip("/")) :]
                candidate = posixpath.normpath(bind.guest + below)
                if self.translate(candidate) == real:
                    found, longest = candidate, len(bind.host)
        if longest < 0 and self.translate(real) == real:
            return host_directory
        return found


def resolve(path: str, space: Namespace) -> str | None:
    """The host's path of the guest's, its symbolic links followed in the guest's tree; None if there is nothing."""
    real = real_path(path, space)
    found = None if real is None else space.translate(real)
    return found if found is not None and os.path.exists(found) else None


def real_path(path: str, space: Namespace) -> str | None:
    """The guest's path without symbolic links; None if there are too many."""
    pending = _parts(path)[::-1]
    here: list[str] = []
    links = 0
    while pending:
        part = pending.pop()
        if part == "..":
            here = here[:-1]
            continue
        guest = "/" + "/".join((*here, part))
        host = space.translate(guest)
        bound = any(bind.guest == guest for bind in space.binds)
        if host is None or bound or not os.path.islink(host):
            here.append(part)
            continue
        links += 1
        if links > SYMLINK_LIMIT:
            return None
        target = os.readlink(host)
        if target.startswith("/"):
            here = []
        pending += _parts(target)[::-1]
    return "/" + "/".join(here)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def make_namespace(
    sysroot: str | None, binds: Iterable[str], isolate: bool, writable_paths: Sequence[str]
) -> Namespace:
    """What --sysroot, --bind, --isolate and --rw mean together. Raises UsageError.

    Binds are where the guest's symbolic links say.
    """
    parsed = [parse_bind(text) for text in binds]
    isolated = isolate or any(bind.guest == "/" for bind in parsed)
    if isolated and writable_paths:
        path = writable_paths[0]
        raise UsageError(f"--rw {path}: only what is bound is there; --bind {path}:rw")
    if isolated and sysroot is not None:
        raise UsageError(f"--sysroot {sysroot}: only what is bound is there; --bind {sysroot}:/ makes it the root")
    space = Namespace(isolated=isolated)
    for bind in by_depth(parsed):
        guest = real_path(bind.guest, space) or bind.guest
        if any(bind.guest != "/" and guest == other.guest for other in space.binds):
            raise UsageError(f"--bind {bind.host}:{bind.guest}: {guest} is bound twice")
        if guest == "/" and bind.guest != "/":
            raise UsageError(f"--bind {bind.host}:{bind.guest}: a symbolic link to the root")
        space = replace(space, binds=(*space.binds, replace(bind, guest=guest)))
    return replace(space, sysroot=sysroot)


def parse_bind(text: str) -> Bind:
    """``HOST:GUEST[:ro|:rw]``, or ``HOST[:ro|:rw]`` for the same path. Raises UsageError."""
    rest, _, mode = text.rpartition(":")
    if mode not in ("ro", "rw"):
        rest, mode = text, "ro"
    host, colon, guest = rest.rpartition(":/")
    host, guest = (host, "/" + guest) if colon else (rest, os.path.abspath(rest))
    if not host:
        raise UsageError(f"--bind {text}: wants HOST:GUEST, and :rw behind it if the guest may write")
    if not os.path.exists(host):
        hint = "; HOST:GUEST wants GUEST to begin with a slash" if not colon and ":" in host else ""
        raise UsageError(f"--bind {text}: {host}: no such file or directory{hint}")
    real = os.path.realpath(host)
    if not (os.path.isdir(real) or os.path.isfile(real)):
        raise UsageError(f"--bind {text}: {host} is neither a file nor a directory")
    if os.lstat(real).st_dev in kernel_devices():
        raise UsageError(f"--bind {text}: {host} is the host's kernel, not a file")
    if not os.access(real, os.R_OK | (os.X_OK if os.path.isdir(real) else 0)):
        raise UsageError(f"--bind {text}: {host}: permission denied")
    if ".." in guest.split("/"):
        raise UsageError(f"--bind {text}: {guest} goes up: name the path without ..")
    guest = "/" + "/".join(_parts(guest))
    if guest == "/" and not os.path.isdir(real):
        raise UsageError(f"--bind {text}: {host} is not a directory: it cannot be the root")
    if any(guest == own or guest.startswith(own + "/") for own in MACHINES_OWN):
        raise UsageError(f"--bind {text}: {guest} is the machine's own")
    return Bind(real, guest, mode == "rw")
