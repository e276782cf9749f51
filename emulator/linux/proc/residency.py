"""Residency: what of a mapping is in memory, and who else has it: the numbers of /proc/PID/smaps. fs/proc/task_mmu.c"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from emulator._native import AddressSpace, PhysicalMemory
from emulator.linux.mm.mapping import MAP_LOCKED, PAGE_SHIFT, PAGE_SIZE, Mapping
from emulator.linux.mm.page_cache import PageCache

FRACTION_BITS = 12  # of the proportional sizes while they are added up: PSS_SHIFT


@dataclass(slots=True)
class Residency:
    """Bytes; the proportional ones are in 1/4096 of a byte. A page that others have, too, is shared."""

    resident: int = 0
    proportional: int = 0
    proportional_dirty: int = 0
    proportional_anonymous: int = 0
    proportional_file: int = 0
    proportional_shared_memory: int = 0
    shared_clean: int = 0
    shared_dirty: int = 0
    private_clean: int = 0
    private_dirty: int = 0
    anonymous: int = 0
    locked: int = 0  # 1/4096 of a byte

    def __add__(self, other: Residency) -> Residency:
        return Residency(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Residency)))


def total(parts: Iterable[Residency]) -> Residency:
    return sum(parts, Residency())


def measure(
    space: AddressSpace, memory: PhysicalMemory, cache: PageCache, zero_frame: int, mapping: Mapping
) -> Residency:
    """The page that is zero for all who only read is nobody's, as in Linux; a device's frames are not looked at."""
    found = Residency()
    if mapping.holder is not None:
        return found
    cached = cache.file(mapping.content) if mapping.content is not None else None
    first = mapping.offset >> PAGE_SHIFT
    is_file = mapping.file is not None and not mapping.file.path.startswith(("/dev/zero ", "/SYSV", "/memfd:"))
    for page in space.present(mapping.start, mapping.length >> PAGE_SHIFT):
        entry = space.lookup(page)
        if entry is None or entry[0] == zero_frame:
            continue
        number = first + ((page - mapping.start) >> PAGE_SHIFT)
        of_cache = cached is not None and cached.frames.get(number) == entry[0]
        users = max(1, memory.references(entry[0]) - of_cache)
        dirty = not of_cache or (cached is not None and number in cached.dirty)
        part = (PAGE_SIZE << FRACTION_BITS) // users
        found.resident += PAGE_SIZE
        found.proportional += part
        found.proportional_dirty += part if dirty else 0
        if not of_cache:
            found.anonymous += PAGE_SIZE
            found.proportional_anonymous += part
        elif is_file:
            found.proportional_file += part
        else:
            found.proportional_shared_memory += part
        if users > 1:
            found.shared_dirty += PAGE_SIZE if dirty else 0
            found.shared_clean += 0 if dirty else PAGE_SIZE
        else:
            found.private_dirty += PAGE_SIZE if dirty else 0
            found.private_clean += 0 if dirty else PAGE_SIZE
    if mapping.flags & MAP_LOCKED:
        found.locked = found.proportional
    return found
