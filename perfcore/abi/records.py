"""Records: PERF_RECORD_* but SAMPLE, each declared once; encoder and decoder follow from the declaration.

A field's annotation is its layout. A Text field is NUL-terminated and padded to 8 bytes; it and Rest take what the
fixed fields and the sample_id trailer leave.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, get_type_hints

from perfcore.abi.constants import Misc, RecordType
from perfcore.abi.sample import HEADER

U8 = Annotated[int, "B"]
U16 = Annotated[int, "H"]
U32 = Annotated[int, "I"]
U64 = Annotated[int, "Q"]
BuildId = Annotated[bytes, "20s"]
Text = Annotated[str, "text"]
Rest = Annotated[bytes, "rest"]


class Layout(NamedTuple):
    """What a record class declares: the fixed part, its field names, and the variable last field if any."""

    fixed: struct.Struct
    names: tuple[str, ...]
    last: str
    last_kind: str  # "", "text" or "rest"


@dataclass(frozen=True, slots=True)
class Record:
    """What all records share. `misc` is of the header and is given when encoding."""

    TYPE: ClassVar[RecordType]

    def encode(self, misc: int = 0, sample_id: bytes = b"") -> bytes:
        """The whole record: header, fields, and the `sample_id` trailer of the event it is for."""
        layout = layout_of(type(self))
        body = layout.fixed.pack(*[getattr(self, name) for name in layout.names])
        if layout.last_kind == "text":
            text = getattr(self, layout.last).encode("utf-8", "surrogateescape")
            body += text.ljust(len(text) // 8 * 8 + 8, b"\0")
        elif layout.last_kind == "rest":
            body += getattr(self, layout.last)
        return HEADER.pack(self.TYPE, misc, HEADER.size + len(body) + len(sample_id)) + body + sample_id


@dataclass(frozen=True, slots=True)
class Mmap(Record):
    """A file mapping; data mappings have Misc.MMAP_DATA."""

    TYPE = RecordType.MMAP
    pid: U32
    tid: U32
    addr: U64
    len: U64
    pgoff: U64
    filename: Text


@dataclass(frozen=True, slots=True)
class Mmap2(Record):
    """As Mmap, with the file's identity (`maj`, `min`, `ino`, `ino_generation`), PROT_* and MAP_* flags."""

    TYPE = RecordType.MMAP2
    pid: U32
    tid: U32
    addr: U64
    len: U64
    pgoff: U64
    maj: U32
    min: U32
    ino: U64
    ino_generation: U64
    prot: U32
    flags: U32
    filename: Text


@dataclass(frozen=True, slots=True)
class Mmap2BuildId(Record):
    """Mmap2 with Misc.MMAP_BUILD_ID: the build id stands in the place of device and inode."""

    TYPE = RecordType.MMAP2
    pid: U32
    tid: U32
    addr: U64
    len: U64
    pgoff: U64
    build_id_size: U8
    reserved_1: U8
    reserved_2: U16
    build_id: BuildId
    prot: U32
    flags: U32
    filename: Text


@dataclass(frozen=True, slots=True)
class Comm(Record):
    """A task's new name; by execve with Misc.COMM_EXEC."""

    TYPE = RecordType.COMM
    pid: U32
    tid: U32
    comm: Text


@dataclass(frozen=True, slots=True)
class Fork(Record):
    """A new task. `time` in ns."""

    TYPE = RecordType.FORK
    pid: U32
    ppid: U32
    tid: U32
    ptid: U32
    time: U64


@dataclass(frozen=True, slots=True)
class Exit(Record):
    """The end of a task. `time` in ns."""

    TYPE = RecordType.EXIT
    pid: U32
    ppid: U32
    tid: U32
    ptid: U32
    time: U64


@dataclass(frozen=True, slots=True)
class Lost(Record):
    """`lost` records found no room before this one."""

    TYPE = RecordType.LOST
    id: U64
    lost: U64


@dataclass(frozen=True, slots=True)
class LostSamples(Record):
    """Samples lost by the hardware."""

    TYPE = RecordType.LOST_SAMPLES
    lost: U64


@dataclass(frozen=True, slots=True)
class Throttle(Record):
    TYPE = RecordType.THROTTLE
    time: U64
    id: U64
    stream_id: U64


@dataclass(frozen=True, slots=True)
class Unthrottle(Record):
    TYPE = RecordType.UNTHROTTLE
    time: U64
    id: U64
    stream_id: U64


@dataclass(frozen=True, slots=True)
class Read(Record):
    """The count of an inherited event at its task's end (attr.inherit_stat); `values` are laid out by read_format."""

    TYPE = RecordType.READ
    pid: U32
    tid: U32
    values: Rest


@dataclass(frozen=True, slots=True)
class Aux(Record):
    TYPE = RecordType.AUX
    aux_offset: U64
    aux_size: U64
    flags: U64


@dataclass(frozen=True, slots=True)
class ItraceStart(Record):
    TYPE = RecordType.ITRACE_START
    pid: U32
    tid: U32


@dataclass(frozen=True, slots=True)
class Switch(Record):
    """The event's task was switched in or, with Misc.SWITCH_OUT, out."""

    TYPE = RecordType.SWITCH


@dataclass(frozen=True, slots=True)
class SwitchCpuWide(Record):
    """The same on a CPU, with the other task."""

    TYPE = RecordType.SWITCH_CPU_WIDE
    next_prev_pid: U32
    next_prev_tid: U32


@dataclass(frozen=True, slots=True)
class Cgroup(Record):
    """A new control group: the number by which samples name it, and its path in the hierarchy."""

    TYPE = RecordType.CGROUP
    id: U64
    path: Text


NAMESPACES = "net", "uts", "ipc", "pid", "user", "mnt", "cgroup"  # by PERF_*_NS_INDEX: as the links in /proc/PID/ns


@dataclass(frozen=True, slots=True)
class Namespaces(Record):
    """Those of a new task: `links` has device and inode of each as two words, in the order of NAMESPACES."""

    TYPE = RecordType.NAMESPACES
    pid: U32
    tid: U32
    nr_namespaces: U64
    links: Rest


@dataclass(frozen=True, slots=True)
class BpfEvent(Record):
    """A BPF program has been loaded, or has ended: `type` is PERF_BPF_EVENT_*, `tag` of 8 bytes as they lie there."""

    TYPE = RecordType.BPF_EVENT
    type: U16
    flags: U16
    id: U32
    tag: U64


@dataclass(frozen=True, slots=True)
class Unknown(Record):
    """A record whose type has no class here: its bytes without header and trailer."""

    type: int
    data: bytes

    def encode(self, misc: int = 0, sample_id: bytes = b"") -> bytes:
        return HEADER.pack(self.type, misc, HEADER.size + len(self.data) + len(sample_id)) + self.data + sample_id


RECORDS: tuple[type[Record], ...] = (
    Mmap,
    Mmap2,
    Mmap2BuildId,
    Comm,
    Fork,
    Exit,
    Lost,
    LostSamples,
    Throttle,
    Unthrottle,
    Read,
    Aux,
    ItraceStart,
    Switch,
    SwitchCpuWide,
    Cgroup,
    Namespaces,
    BpfEvent,
)


_layouts: dict[type[Record], Layout] = {}  # of the classes that have been used: reading all costs start-up 5 ms


def layout_of(record: type[Record]) -> Layout:
    layout = _layouts.get(record)
    if layout is None:
        layout = _layouts[record] = _layout(record)
    return layout


def _layout(record: type[Record]) -> Layout:
    """Read the declaration of one record class."""
    formats: list[str] = []
    names: list[str] = []
    last = last_kind = ""
    for name, hint in get_type_hints(record, include_extras=True).items():
        metadata: tuple[Any, ...] = getattr(hint, "__metadata__", ())
        if not metadata:
            continue  # TYPE
        if metadata[0] in ("text", "rest"):
            last, last_kind = name, metadata[0]
        else:
            formats.append(metadata[0])
            names.append(name)
    return Layout(struct.Struct("<" + "".join(formats)), tuple(names), last, last_kind)


_BY_TYPE = {record.TYPE: record for record in RECORDS if record is not Mmap2BuildId}


def decode_record(data: bytes | memoryview, sample_id_bytes: int = 0) -> Record:
    """The record in `data` (header to end), of which the last `sample_id_bytes` are its sample_id. Not for SAMPLE."""
    view = memoryview(data)
    type_, misc, size = HEADER.unpack_from(view)
    end = size - sample_id_bytes
    record = _BY_TYPE.get(type_)
    if record is None:
        return Unknown(type_, bytes(view[HEADER.size : end]))
    if record is Mmap2 and misc & Misc.MMAP_BUILD_ID:
        record = Mmap2BuildId
    layout = layout_of(record)
    if HEADER.size + layout.fixed.size > end:
        raise ValueError(f"PERF_RECORD_{record.TYPE.name}: {size} bytes are too few")
    values: list[Any] = list(layout.fixed.unpack_from(view, HEADER.size))
    rest = bytes(view[HEADER.size + layout.fixed.size : end])
    if layout.last_kind == "text":
        values.append(rest.split(b"\0", 1)[0].decode("utf-8", "surrogateescape"))
    elif layout.last_kind == "rest":
        values.append(rest)
    return record(*values)
