"""Place: where an output file is to be: a name in a directory that is held open, whatever a guest does around it."""

from __future__ import annotations

import errno
import os

from emulator.linux.fs.host_files import kernel_devices

_DIRECTORY = os.O_PATH | os.O_DIRECTORY
_MOST_LINKS = 40


def opened_directory(directory: str) -> int:
    """Below the current directory, in which guests write, no link is followed out of it: a guest may have made that."""
    here = os.getcwd()
    is_below = not os.path.isabs(directory) or (directory + "/").startswith(here + "/")
    if here == "/" or not is_below or ".." in directory.split("/"):
        return os.open(directory or ".", _DIRECTORY)
    pending = [part for part in directory.removeprefix(here).split("/") if part not in ("", ".")][::-1]
    found = os.open(".", _DIRECTORY)
    links = 0
    while pending:
        part = pending.pop()
        try:
            target = os.readlink(part, dir_fd=found)
        except OSError:  # no link, or nothing: the next open knows
            try:
                below = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=found)
            finally:
                os.close(found)
            found = below
            continue
        links += 1
        if target.startswith("/") or ".." in target.split("/") or links > _MOST_LINKS:
            os.close(found)
            raise OSError(errno.ELOOP, f"{part} is a symbolic link out of the current directory: name where it leads")
        pending += [step for step in target.split("/") if step not in ("", ".")][::-1]
    return found


class Place:
    """A name in a directory that is held open, whatever becomes of its own name."""

    def __init__(self, path: str, directory: int, name: str) -> None:
        self.path = path  # as the user wrote it
        self.directory = directory
        self.name = name
        self._was_at = _path_of(directory)

    @property
    def is_the_hosts_own(self) -> bool:
        """Whether the directory is the kernel's, or below /dev."""
        return os.fstat(self.directory).st_dev in kernel_devices() or (self._was_at + "/").startswith("/dev/")

    def status(self, name: str = "") -> os.stat_result | None:
        """Of what is at the name, links not followed."""
        try:
            return os.stat(name or self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def shown(self, name: str) -> str:
        """The path of `name` in the directory: the user's, unless the guest has moved that elsewhere."""
        now_at = _path_of(self.directory)
        if now_at != self._was_at:
            return os.path.join(now_at, name)
        return self.path if name == self.name else os.path.join(os.path.dirname(self.path), name)

    def use_parent(self) -> None:
        """The directory has been removed: that above it, as far as there is one, or the root."""
        above = self._was_at
        while True:
            above = os.path.dirname(above)
            try:
                directory = os.open(above, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError:
                if above == "/":
                    raise
                continue
            if _path_of(directory) != above:  # a link of the guest's leads there
                os.close(directory)
                continue
            os.close(self.directory)
            self.directory = directory
            return

    def close(self) -> None:
        os.close(self.directory)


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""
