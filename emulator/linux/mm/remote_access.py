"""Remote access: memory that somebody else reads and writes, whatever its owner may (access_remote_vm, FOLL_FORCE).

A debugger writes breakpoints into code that is only executed: in a private mapping the page becomes the process's own.
"""

from __future__ import annotations

from emulator.linux.mm.mapping import PAGE_SIZE
from emulator.linux.mm.mm import MemoryMap


def read_remote(mm: MemoryMap, address: int, size: int) -> bytes:
    """Up to the first page that is not there."""
    data = b""
    mm.reach(address)
    while len(data) < size:
        at = address + len(data)
        if not mm.force(at, write=False):
            break
        part = mm.space.read(at, min(size - len(data), PAGE_SIZE - at % PAGE_SIZE))
        assert isinstance(part, bytes), f"the page at {at:#x} has been brought in"
        data += part
    return data


def write_remote(mm: MemoryMap, address: int, data: bytes) -> int:
    """How many bytes come before the first page that cannot be written."""
    done = 0
    mm.reach(address)
    while done < len(data):
        at = address + done
        if not mm.force(at, write=True):
            break
        done += mm.space.write(at, data[done : done + PAGE_SIZE - at % PAGE_SIZE])
    return done
