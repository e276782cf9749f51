"""HostBody: an open regular file of the host, and what the guest sees and sets of a host file's attributes."""

from __future__ import annotations

import os
import stat as file_mode

from emulator.linux.errors import ENXIO, EPERM, EROFS, LinuxError, host_errors
from emulator.linux.fs.attributes import BLOCK_BYTES, Attributes
from emulator.linux.fs.holes import is_zero
from emulator.linux.fs.host_places import Place
from emulator.linux.fs.nodes import DIRECTORY_SIZE_BYTES, F_SEAL_SEAL, Superblock

CHANGES = os.O_TRUNC | os.O_CREAT | os.O_TMPFILE & ~os.O_DIRECTORY  # flags by which opening changes the file


def host_attributes(
    superblock: Superblock, status: os.stat_result, place: Place | None = None, *, writable: bool = True
) -> Attributes:
    """What the guest sees of the host's attributes. Times are the host's until the guest changes the file.

    `place`: where a directory is, for what its status does not say.
    """
    modified_ns = superblock.changed_ns.get((status.st_dev, status.st_ino), status.st_mtime_ns)
    size, links = status.st_size, status.st_nlink
    uid, gid = superblock.owner_of(status, writable=writable)
    if file_mode.S_ISDIR(status.st_mode):
        size = DIRECTORY_SIZE_BYTES
        if links < 2 and place is not None:  # some file systems do not count subdirectories
            links = 2 + _subdirectories(place)
    return Attributes(
        superblock.inodes.of_host(status.st_dev, status.st_ino),
        status.st_mode,
        size,
        links,
        uid,
        gid,
        superblock.device,
        (os.major(status.st_rdev), os.minor(status.st_rdev)),
        modified_ns,
        modified_ns,
    )


def _subdirectories(place: Place) -> int:
    try:
        return sum(file_mode.S_ISDIR(status.st_mode) for status in place.names().values())
    except OSError:
        return 0


def check_permissions(path: str, permissions: int) -> None:
    """Whoever runs the guest must not give others of the host its programs to be run by the user's rights."""
    if permissions & (file_mode.S_ISUID | file_mode.S_ISGID):
        raise LinuxError(EPERM, f"{path}: set-user-ID and set-group-ID files of the host are not the guest's to make")


def changed(superblock: Superblock, status: os.stat_result) -> None:
    superblock.changed_ns[status.st_dev, status.st_ino] = superblock.now()


def new_host_times(
    superblock: Superblock, status: os.stat_result, accessed_ns: int | None, modified_ns: int | None
) -> tuple[int, int] | None:
    """utimensat on a host file: the times that it gets; None for the host's own now, where the guest means its now."""
    if modified_ns == superblock.now():
        return None
    accessed = status.st_atime_ns if accessed_ns is None else accessed_ns
    return accessed, status.st_mtime_ns if modified_ns is None else modified_ns


def note_times(superblock: Superblock, status: os.stat_result, modified_ns: int | None) -> None:
    """The guest sees what it has set."""
    if modified_ns is not None:
        superblock.changed_ns[status.st_dev, status.st_ino] = modified_ns


class HostBody:
    """An open regular file of the host: closed when the last descriptor and mapping of it are gone."""

    __slots__ = ("_changed_key", "_known_size", "_may_write", "_superblock", "descriptor", "path")
    seals = F_SEAL_SEAL
    all_or_nothing = False

    def __init__(
        self,
        superblock: Superblock,
        place: Place,
        flags: int,
        permissions: int = 0,
        *,
        may_write: bool = False,
        again: bool = False,
    ) -> None:
        path = place.path
        assert may_write or not flags, f"{path}: flags {flags:#o} for a file that the guest may not change"
        self.descriptor = -1
        self._may_write = may_write  # its attributes, too
        self._superblock = superblock
        self._changed_key: tuple[int, int] | None = None  # known when something has been written
        self._known_size = 0  # it has been at least as long
        self.path = path
        check_permissions(path, permissions)
        with host_errors:
            self.descriptor = place.open(flags, permissions, again=again)
        status = os.fstat(self.descriptor)
        if not file_mode.S_ISREG(status.st_mode) or status.st_dev in superblock.hidden_devices:
            raise LinuxError(ENXIO, f"{path} is not a regular file: the guest may not open it")
        if flags & CHANGES:
            self._changed()

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def _changed(self) -> None:
        if self._changed_key is None:
            status = os.fstat(self.descriptor)
            self._changed_key = status.st_dev, status.st_ino
        self._superblock.changed_ns[self._changed_key] = self._superblock.now()

    def read_at(self, offset: int, size: int) -> bytes:
        with host_errors:
            return os.pread(self.descriptor, size, offset)

    def write_at(self, offset: int, data: bytes) -> int:
        output = self._superblock.output
        if offset > self._known_size and (hole := offset - self.size()) > 0:
            output.take_all(hole)
        granted = output.take(len(data))
        with host_errors:
            if granted >= BLOCK_BYTES and is_zero(data) and offset >= self.size():
                os.ftruncate(self.descriptor, offset + granted)  # a hole that is copied stays one
                written = granted
            else:
                written = os.pwrite(self.descriptor, data[:granted], offset)
        self._known_size = max(self._known_size, offset + written)
        self._changed()
        return written

    def skip_hole(self, offset: int) -> int:
        try:
            return os.lseek(self.descriptor, offset, os.SEEK_DATA)
        except OSError as error:
            return self.size() if error.errno == ENXIO else offset  # ENXIO: nothing follows

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def truncate(self, size: int) -> None:
        self._superblock.output.take_all(max(0, size - self.size()))
        with host_errors:
            os.ftruncate(self.descriptor, size)
        self._known_size = size
        self._changed()

    def attributes(self) -> Attributes:
        return host_attributes(self._superblock, os.fstat(self.descriptor), writable=self._may_write)

    def set_mode(self, permissions: int) -> None:
        self._check_writable()
        check_permissions(self.path, permissions)
        with host_errors:
            os.fchmod(self.descriptor, permissions)
        self._changed()

    def set_times(self, accessed_ns: int | None, modified_ns: int | None) -> None:
        self._check_writable()
        status = os.fstat(self.descriptor)
        with host_errors:
            times = new_host_times(self._superblock, status, accessed_ns, modified_ns)
            if times is None:
                os.utime(self.descriptor)
            else:
                os.utime(self.descriptor, ns=times)
        note_times(self._superblock, status, modified_ns)

    def _check_writable(self) -> None:
        if not self._may_write:
            raise LinuxError(EROFS, f"{self.path}: the guest may not write here")
