"""sideband: records that are no samples, as perf script prints them when they are asked for."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from emulator.linux.mm.mapping import MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE
from perfcore.abi.constants import Misc, RecordType
from perfcore.abi.records import (
    NAMESPACES,
    Cgroup,
    Comm,
    Exit,
    Fork,
    Lost,
    Mmap,
    Mmap2,
    Mmap2BuildId,
    Namespaces,
    Record,
    Switch,
    SwitchCpuWide,
)
from perfemu.visible import visible

SHOWN_BY = {  # --show-NAME-events
    "task": (RecordType.COMM, RecordType.FORK, RecordType.EXIT),
    "mmap": (RecordType.MMAP, RecordType.MMAP2),
    "switch": (RecordType.SWITCH, RecordType.SWITCH_CPU_WIDE),
    "lost": (RecordType.LOST,),
    "namespace": (RecordType.NAMESPACES,),
    "cgroup": (RecordType.CGROUP,),
}


def shown_types(names: Iterable[str]) -> frozenset[int]:
    return frozenset(int(kind) for name in names for kind in SHOWN_BY[name])


def letters_of(record: Record, misc: int) -> str:
    """What the field `misc` adds for such a record."""
    if isinstance(record, (Mmap, Mmap2, Mmap2BuildId)):
        return "M" if misc & Misc.MMAP_DATA else ""
    if isinstance(record, Comm):
        return "E" if misc & Misc.COMM_EXEC else ""
    if isinstance(record, (Switch, SwitchCpuWide)) and misc & Misc.SWITCH_OUT:
        return "Sp" if misc & Misc.SWITCH_OUT_PREEMPT else "S"
    return ""


def task_of(record: Record) -> tuple[int, int] | None:
    """(pid, tid) of whom it tells; None: of whom its sample_id says."""
    if isinstance(record, (Comm, Fork, Exit, Mmap, Mmap2, Mmap2BuildId)):
        return record.pid, record.tid
    return None


def text_of(record: Record, misc: int) -> str:
    """The line behind its start, with its end."""
    tell = _TELLERS.get(type(record))
    name = f"PERF_RECORD_{record.TYPE.name}"
    return name + (tell(record, misc) if tell else "") + "\n"


def _comm(record: Comm, misc: int) -> str:
    return f"{' exec' if misc & Misc.COMM_EXEC else ''}: {visible(record.comm)}:{record.pid}/{record.tid}"


def _task(record: Fork | Exit, misc: int) -> str:
    return f"({record.pid}:{record.tid}):({record.ppid}:{record.ptid})"


def _hex(number: int) -> str:
    """C's %#x."""
    return f"{number:#x}" if number else "0"


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def _mmap(record: Mmap, misc: int) -> str:
    where = f"{_hex(record.addr)}({_hex(record.len)}) @ {_hex(record.pgoff)}"
    letter = "r" if misc & Misc.MMAP_DATA else "x"
    return f" {_signed(record.pid)}/{_signed(record.tid)}: [{where}]: {letter} {visible(record.filename)}"


def _rights(prot: int, flags: int) -> str:
    bits = ((PROT_READ, "r"), (PROT_WRITE, "w"), (PROT_EXEC, "x"))
    return "".join(letter if prot & bit else "-" for bit, letter in bits) + ("s" if flags & MAP_SHARED else "p")


def _mmap2(record: Mmap2, misc: int) -> str:
    file = f"{record.maj:02x}:{record.min:02x} {record.ino} {record.ino_generation}"
    where = f"{_hex(record.addr)}({_hex(record.len)}) @ {_hex(record.pgoff)} {file}"
    rights = _rights(record.prot, record.flags)
    return f" {_signed(record.pid)}/{_signed(record.tid)}: [{where}]: {rights} {visible(record.filename)}"


def _mmap2_build_id(record: Mmap2BuildId, misc: int) -> str:
    build_id = record.build_id[: record.build_id_size].hex()
    where = f"{_hex(record.addr)}({_hex(record.len)}) @ {_hex(record.pgoff)} <{build_id}>"
    rights = _rights(record.prot, record.flags)
    return f" {_signed(record.pid)}/{_signed(record.tid)}: [{where}]: {rights} {visible(record.filename)}"


def _direction(misc: int) -> str:
    if not misc & Misc.SWITCH_OUT:
        return "IN         "
    return "OUT preempt" if misc & Misc.SWITCH_OUT_PREEMPT else "OUT        "


def _switch(record: Switch, misc: int) -> str:
    return f" {_direction(misc)}"


def _switch_cpu_wide(record: SwitchCpuWide, misc: int) -> str:
    other = "next" if misc & Misc.SWITCH_OUT else "prev"
    ids = f"{_signed(record.next_prev_pid):5}/{_signed(record.next_prev_tid):<5}"
    return f" {_direction(misc)}  {other} pid/tid: {ids}"


def _lost(record: Lost, misc: int) -> str:
    return f" lost {record.lost}"


def _namespaces(record: Namespaces, misc: int) -> str:
    """Four in a line."""
    links = struct.iter_unpack("<QQ", record.links[: len(record.links) // 16 * 16])
    pairs = zip(NAMESPACES[: record.nr_namespaces], links, strict=False)
    named = [f"{at}/{name}: {device}/{_hex(inode)}" for at, (name, (device, inode)) in enumerate(pairs)]
    lines = ", \n\t\t ".join(", ".join(named[at : at + 4]) for at in range(0, len(named), 4))
    return f" {_signed(record.pid)}/{_signed(record.tid)} - nr_namespaces: {record.nr_namespaces}\n\t\t[{lines}]"


def _cgroup(record: Cgroup, misc: int) -> str:
    return f" cgroup: {record.id} {visible(record.path)}"


_TELLERS: dict[type, Callable[..., str]] = {
    Comm: _comm,
    Fork: _task,
    Exit: _task,
    Mmap: _mmap,
    Mmap2: _mmap2,
    Mmap2BuildId: _mmap2_build_id,
    Switch: _switch,
    SwitchCpuWide: _switch_cpu_wide,
    Lost: _lost,
    Namespaces: _namespaces,
    Cgroup: _cgroup,
}
