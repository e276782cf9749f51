"""Memory texts: what files of /proc/PID say of a process's memory: maps, smaps and their sum. fs/proc/task_mmu.c"""

from __future__ import annotations

from emulator.linux.mm.mapping import (
    MAP_GROWSDOWN,
    MAP_LOCKED,
    MAP_NORESERVE,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    Mapping,
)
from emulator.linux.proc.residency import FRACTION_BITS, Residency, total
from emulator.linux.process.task import Task

KIB = 1024
NO_PAGES = ("KSM", "LazyFree", "AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb",
            "Swap", "SwapPss")  # fmt: skip
ROLLED_UP = "[rollup]"


def maps(task: Task) -> str:
    """proc(5), /proc/PID/maps"""
    return "".join(maps_line(mapping) + "\n" for mapping in task.mm.mappings)


def maps_line(mapping: Mapping) -> str:
    """Names are in column 74."""
    protection = mapping.protection
    permissions = (
        ("r" if protection & PROT_READ else "-")
        + ("w" if protection & PROT_WRITE else "-")
        + ("x" if protection & PROT_EXEC else "-")
        + ("s" if mapping.shared else "p")
    )
    file = mapping.file
    major, minor, inode = (file.major, file.minor, file.inode) if file is not None else (0, 0, 0)
    offset = mapping.offset if file is not None else 0
    line = f"{mapping.start:08x}-{mapping.end:08x} {permissions} {offset:08x} {major:02x}:{minor:02x} {inode} "
    return f"{line:<73}{mapping.path}" if mapping.path else line


def _row(name: str, size: int) -> str:
    return f"{name + ':':<16}{size // KIB:8} kB\n"


def _whole(size: int) -> int:
    """Bytes of a proportional size."""
    return size >> FRACTION_BITS


def _rows(of: Residency, by_kind: bool) -> str:
    """What smaps and smaps_rollup have in common. Of references no note is taken: what is there has been touched."""
    kinds = (
        ("Pss_Anon", of.proportional_anonymous),
        ("Pss_File", of.proportional_file),
        ("Pss_Shmem", of.proportional_shared_memory),
    )
    rows = [
        ("Rss", of.resident),
        ("Pss", _whole(of.proportional)),
        ("Pss_Dirty", _whole(of.proportional_dirty)),
        *((name, _whole(size)) for name, size in kinds if by_kind),
        ("Shared_Clean", of.shared_clean),
        ("Shared_Dirty", of.shared_dirty),
        ("Private_Clean", of.private_clean),
        ("Private_Dirty", of.private_dirty),
        ("Referenced", of.resident),
        ("Anonymous", of.anonymous),
        *((name, 0) for name in NO_PAGES),
        ("Locked", _whole(of.locked)),
    ]
    return "".join(_row(name, size) for name, size in rows)


def _flags(mapping: Mapping) -> str:
    """VmFlags, in the order of show_smap_vma_flags()."""
    protection, flags = mapping.protection, mapping.flags
    private_writable = not mapping.shared and protection & PROT_WRITE
    rows = (
        ("rd", protection & PROT_READ), ("wr", protection & PROT_WRITE), ("ex", protection & PROT_EXEC),
        ("sh", mapping.shared), ("mr", True), ("mw", mapping.may_write), ("me", mapping.may_execute),
        ("ms", mapping.shared and mapping.may_write), ("gd", flags & MAP_GROWSDOWN), ("lo", flags & MAP_LOCKED),
        ("ac", private_writable and not flags & MAP_NORESERVE), ("nr", flags & MAP_NORESERVE),
    )  # fmt: skip
    return "VmFlags: " + "".join(f"{name} " for name, holds in rows if holds) + "\n"


def smaps(task: Task) -> str:
    """proc(5), /proc/PID/smaps"""
    text = []
    for mapping in task.mm.mappings:
        sizes = (("Size", mapping.length), ("KernelPageSize", 4 * KIB), ("MMUPageSize", 4 * KIB))
        text.append(maps_line(mapping) + "\n" + "".join(_row(name, size) for name, size in sizes))
        text.append(_rows(task.mm.residency(mapping), by_kind=False))
        text.append(f"{'THPeligible:':<16}{0:8}\n" + _flags(mapping))
    return "".join(text)


def smaps_rollup(task: Task) -> str:
    """proc(5), /proc/PID/smaps_rollup"""
    mappings = list(task.mm.mappings)
    if not mappings:
        return ""
    line = f"{mappings[0].start:08x}-{mappings[-1].end:08x} ---p 00000000 00:00 0 "
    return f"{line:<73}{ROLLED_UP}\n" + _rows(total(map(task.mm.residency, mappings)), by_kind=True)


def locked_bytes(task: Task) -> int:
    """VmLck"""
    return sum(mapping.length for mapping in task.mm.mappings if mapping.flags & MAP_LOCKED)
