"""Paths of the guest's files, as d_path of fs/d_path.c says them."""

from __future__ import annotations

from perfemu.guest_linux.kernel import GuestKernel

_MOST_PARTS = 256
_MOST_BYTES = 4096  # of a path
_DELETED = " (deleted)"


def path_of(kernel: GuestKernel, path: int, root: int) -> str:
    """The name of what a struct path at `path` leads to, from the one at `root`. Raises Unreadable."""
    value = kernel.value
    mount_in = kernel.member("mount", "mnt").offset  # a struct vfsmount is part of a struct mount
    mount, entry = value(path, "path", "mnt"), value(path, "path", "dentry")
    ends = value(root, "path", "mnt"), value(root, "path", "dentry")
    gone = not value(entry, "dentry", "d_hash.pprev") and value(entry, "dentry", "d_parent") != entry
    parts: list[str] = []
    size = 0
    for _ in range(_MOST_PARTS):
        if (mount, entry) == ends:
            break
        parent = value(entry, "dentry", "d_parent")
        if entry == value(mount, "vfsmount", "mnt_root"):
            above = value(mount - mount_in, "mount", "mnt_parent")
            if above == mount - mount_in:
                break
            mount, entry = above + mount_in, value(mount - mount_in, "mount", "mnt_mountpoint")
            continue
        name = _name(kernel, entry)
        size += len(name)
        if size > _MOST_BYTES:
            break
        if parent == entry:  # of no directory: memfd
            return f"/{name}{_DELETED}" if not parts else "/" + "/".join(reversed(parts))
        parts.append(name)
        entry = parent
    return "/" + "/".join(reversed(parts)) + (_DELETED if gone and parts else "")


def _name(kernel: GuestKernel, entry: int) -> str:
    length = min(kernel.value(entry, "dentry", "d_name.len"), 255)
    name = kernel.tables.read(kernel.value(entry, "dentry", "d_name.name"), length)
    return name.decode("utf-8", "surrogateescape")
