"""The guest's perf_event_attr, as the kernel copies it in."""

from __future__ import annotations

import struct
from contextlib import suppress

from emulator.linux.errors import E2BIG, EFAULT, LinuxError
from emulator.linux.fs.file import Caller
from perfcore.abi.attr import AttrTooBig, PerfEventAttr, attr_size

_SIZE_OFFSET = 4  # of perf_event_attr.size


def copy_attr(task: Caller, address: int) -> PerfEventAttr:
    """perf_copy_attr: the guest's attr. Where it is too big, its size field tells the guest what is right."""
    if not address:
        raise LinuxError(EFAULT, "the attr's address is NULL")
    head = task.mm.read(address, 8)
    try:
        return PerfEventAttr.unpack(task.mm.read(address, attr_size(head)))
    except AttrTooBig as error:
        with suppress(LinuxError):  # put_user, whose answer nobody looks at
            task.mm.write(address + _SIZE_OFFSET, struct.pack("<I", error.size))
        raise LinuxError(E2BIG, str(error)) from None
