"""Features: what a perf.data file says about the machine and the recording, one row of FEATURE_CODECS per kind."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from perfcore.abi.attr import AttrTooBig, PerfEventAttr
from perfcore.perfdata.errors import Malformed
from perfcore.perfdata.header import FILE_ATTR_SIZE, Feature
from perfcore.perfdata.records import BuildId, pack_build_id, unpack_build_id

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
ANONYMOUS_GROUP = "{anon_group}"  # what perf writes for a group without a name
_STRING_ALIGNMENT = 64  # bytes, as perf pads them (NAME_ALIGN)


@dataclass(frozen=True, slots=True)
class EventDescription:
    """One event of the file: its attr, the ids that its samples carry (one per CPU or thread), its name."""

    attr: PerfEventAttr
    ids: tuple[int, ...]
    name: str = ""  # "" in a file without EVENT_DESC


@dataclass(frozen=True, slots=True)
class CpuCount:
    available: int
    online: int


@dataclass(frozen=True, slots=True)
class EventGroup:
    """A group of events in braces: `members` counts the leader. `leader_index` counts the file's events from 0."""

    leader_index: int
    members: int
    name: str = ANONYMOUS_GROUP


@dataclass(frozen=True, slots=True)
class JitFile:
    """What a guest has written of the code that it made: perf-PID.map or jit-PID.dump, as it was at the end."""

    path: str  # the guest's
    contents: bytes


PmuCaps = tuple[str, tuple[tuple[str, str], ...]]
"""A PMU's name in sysfs, and the files of its ``caps/``: name, contents."""


@dataclass(slots=True)
class Features:
    """The features of one file; None or empty is: not in the file.

    Every value comes from the recorder's caller. Kinds that we do not decode are kept in `other` as bytes, by number;
    so are the flags BRANCH_STACK and STAT, with no bytes.
    """

    tracing_data: bytes | None = None  # perfcore.perfdata.tracing_data
    hostname: str | None = None
    os_release: str | None = None
    version: str | None = None  # of perf, as `perf version` prints it without its first two words
    architecture: str | None = None  # `uname -m`; perf chooses objdump and register names by it
    cpus: CpuCount | None = None
    cpu_description: str | None = None
    cpuid: str | None = None  # AArch64: MIDR_EL1 as 0x%016x; x86: "GenuineIntel,6,85,4"
    total_memory_kb: int | None = None
    command_line: tuple[str, ...] = ()
    events: tuple[EventDescription, ...] = ()
    build_ids: tuple[BuildId, ...] = ()
    sample_time_ns: tuple[int, int] | None = None  # of the first and the last sample
    pmu_mappings: tuple[tuple[int, str], ...] = ()  # (attr.type, sysfs name), ascending
    pmu_caps: tuple[PmuCaps, ...] = ()  # besides the CPUs' own
    groups: tuple[EventGroup, ...] = ()
    jit_files: tuple[JitFile, ...] = ()
    first_records: bytes = b""  # before all others: PERF_RECORD_AUXTRACE_INFO, and what must precede it
    other: dict[int, bytes] = field(default_factory=dict)

    def pack(self) -> dict[int, bytes]:
        """The blobs of those that are set, ascending by feature number."""
        blobs = dict(self.other)
        for codec in FEATURE_CODECS:
            value = getattr(self, codec.name)
            if value is not None and value != ():
                blobs[codec.feature] = codec.encode(value)
        return dict(sorted(blobs.items()))

    def unpack(self, feature: int, blob: bytes) -> None:
        """Take one feature from a file. Raises Malformed."""
        codec = _CODEC_BY_FEATURE.get(feature)
        if codec is None:
            self.other[feature] = blob
            return
        try:
            setattr(self, codec.name, codec.decode(_Cursor(blob)))
        except (Malformed, AttrTooBig) as problem:
            raise Malformed(f"feature {codec.feature.name}: {problem}") from None


class _Cursor:
    """Reads a blob from its start, and never past its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def left(self) -> int:
        return len(self._data) - self._position

    def take(self, size: int) -> bytes:
        start = self._position
        if size > self.left():
            raise Malformed(f"{size} bytes wanted at {start:#x}, {self.left()} there")
        self._position = start + size
        return self._data[start : start + size]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def count(self, unit_bytes: int) -> int:
        """A u32 count of things that take at least `unit_bytes` each."""
        count = self.u32()
        if count * unit_bytes > self.left():
            raise Malformed(f"count {count} needs at least {count * unit_bytes} bytes, {self.left()} there")
        return count

    def string(self) -> str:
        return self.take(self.u32()).split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def pack_string(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape") + b"\0"
    size = -(-len(data) // _STRING_ALIGNMENT) * _STRING_ALIGNMENT
    return _U32.pack(size) + data.ljust(size, b"\0")


def _pack_strings(texts: Iterable[str]) -> bytes:
    packed = [pack_string(text) for text in texts]
    return _U32.pack(len(packed)) + b"".join(packed)


def _unpack_strings(cursor: _Cursor) -> tuple[str, ...]:
    return tuple(cursor.string() for _ in range(cursor.count(4)))


def _pack_cpus(cpus: CpuCount) -> bytes:
    return struct.pack("<II", cpus.available, cpus.online)


def file_attr(attr: PerfEventAttr) -> bytes:
    """The attr's bytes as a file holds them, FILE_ATTR_SIZE of them."""
    return attr.copy(size=FILE_ATTR_SIZE).pack()


def unpack_attr(data: bytes) -> PerfEventAttr:
    """An attr that fills `data` or the first part of it. Raises Malformed."""
    try:
        return PerfEventAttr.unpack(data)
    except (AttrTooBig, ValueError, struct.error) as problem:
        raise Malformed(str(problem)) from None


def _pack_events(events: tuple[EventDescription, ...]) -> bytes:
    parts = [struct.pack("<II", len(events), FILE_ATTR_SIZE)]
    for event in events:
        parts.append(file_attr(event.attr) + _U32.pack(len(event.ids)) + pack_string(event.name))
        parts.append(struct.pack(f"<{len(event.ids)}Q", *event.ids))
    return b"".join(parts)


def _unpack_events(cursor: _Cursor) -> tuple[EventDescription, ...]:
    count, attr_size = cursor.u32(), cursor.u32()
    events = []
    for _ in range(count):
        attr = unpack_attr(cursor.take(attr_size))
        ids = cursor.u32()
        name = cursor.string()
        events.append(EventDescription(attr, struct.unpack(f"<{ids}Q", cursor.take(8 * ids)), name))
    return tuple(events)


def _pack_build_ids(build_ids: tuple[BuildId, ...]) -> bytes:
    return b"".join(pack_build_id(build_id) for build_id in build_ids)


def _unpack_build_ids(cursor: _Cursor) -> tuple[BuildId, ...]:
    build_ids = []
    while cursor.left():
        header = cursor.take(8)
        size = int.from_bytes(header[6:8], "little")
        if size < 8:
            raise Malformed(f"build-id record of {size} bytes")
        build_ids.append(unpack_build_id(header + cursor.take(size - 8)))
    return tuple(build_ids)


def _pack_mappings(mappings: tuple[tuple[int, str], ...]) -> bytes:
    return _U32.pack(len(mappings)) + b"".join(_U32.pack(number) + pack_string(name) for number, name in mappings)


def _unpack_mappings(cursor: _Cursor) -> tuple[tuple[int, str], ...]:
    return tuple((cursor.u32(), cursor.string()) for _ in range(cursor.count(8)))


def _pack_caps(pmus: tuple[PmuCaps, ...]) -> bytes:
    packed = [
        part
        for pmu, caps in pmus
        for part in (_U32.pack(len(caps)), *(pack_string(text) for cap in caps for text in cap), pack_string(pmu))
    ]
    return _U32.pack(len(pmus)) + b"".join(packed)


def _unpack_caps(cursor: _Cursor) -> PmuCaps:
    caps = tuple((cursor.string(), cursor.string()) for _ in range(cursor.count(8)))
    return cursor.string(), caps


def _pack_groups(groups: tuple[EventGroup, ...]) -> bytes:
    packed = (pack_string(group.name) + struct.pack("<II", group.leader_index, group.members) for group in groups)
    return _U32.pack(len(groups)) + b"".join(packed)


def _unpack_group(cursor: _Cursor) -> EventGroup:
    name = cursor.string()
    return EventGroup(cursor.u32(), cursor.u32(), name)


@dataclass(frozen=True, slots=True)
class FeatureCodec:
    """How one kind of feature lies in the file, and which field of Features it is."""

    feature: Feature
    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[_Cursor], object]


FEATURE_CODECS = (
    FeatureCodec(Feature.TRACING_DATA, "tracing_data", bytes, lambda cursor: cursor.take(cursor.left())),
    FeatureCodec(Feature.BUILD_ID, "build_ids", _pack_build_ids, _unpack_build_ids),
    FeatureCodec(Feature.HOSTNAME, "hostname", pack_string, _Cursor.string),
    FeatureCodec(Feature.OSRELEASE, "os_release", pack_string, _Cursor.string),
    FeatureCodec(Feature.VERSION, "version", pack_string, _Cursor.string),
    FeatureCodec(Feature.ARCH, "architecture", pack_string, _Cursor.string),
    FeatureCodec(Feature.NRCPUS, "cpus", _pack_cpus, lambda cursor: CpuCount(cursor.u32(), cursor.u32())),
    FeatureCodec(Feature.CPUDESC, "cpu_description", pack_string, _Cursor.string),
    FeatureCodec(Feature.CPUID, "cpuid", pack_string, _Cursor.string),
    FeatureCodec(Feature.TOTAL_MEM, "total_memory_kb", struct.Struct("<Q").pack, _Cursor.u64),
    FeatureCodec(Feature.CMDLINE, "command_line", _pack_strings, _unpack_strings),
    FeatureCodec(Feature.EVENT_DESC, "events", _pack_events, _unpack_events),
    FeatureCodec(Feature.PMU_MAPPINGS, "pmu_mappings", _pack_mappings, _unpack_mappings),
    FeatureCodec(
        Feature.PMU_CAPS,
        "pmu_caps",
        _pack_caps,
        lambda cursor: tuple(_unpack_caps(cursor) for _ in range(cursor.count(8))),
    ),
    FeatureCodec(
        Feature.GROUP_DESC,
        "groups",
        _pack_groups,
        lambda cursor: tuple(_unpack_group(cursor) for _ in range(cursor.count(12))),
    ),
    FeatureCodec(
        Feature.SAMPLE_TIME,
        "sample_time_ns",
        lambda times: struct.pack("<QQ", *times),
        lambda cursor: (cursor.u64(), cursor.u64()),
    ),
)
_CODEC_BY_FEATURE: dict[int, FeatureCodec] = {codec.feature: codec for codec in FEATURE_CODECS}

# What is ours stands behind all that perf knows: it skips features of unknown numbers, but perf inject crashes of them.
_APPENDIX_END = struct.Struct("<Q8s")  # bytes before this, magic: the file's last
APPENDIX_END_SIZE = _APPENDIX_END.size
_APPENDIX_MAGIC = b"PERFEMU1"


def pack_appendix(files: tuple[JitFile, ...]) -> bytes:
    """Nothing where there is nothing to say."""
    if not files:
        return b""
    packed = [pack_string(file.path) + _U64.pack(len(file.contents)) + file.contents for file in files]
    data = _U32.pack(len(files)) + b"".join(packed)
    return data + _APPENDIX_END.pack(len(data), _APPENDIX_MAGIC)


def appendix_size(end: bytes) -> int:
    """Of the data before a file's last APPENDIX_END_SIZE bytes; 0 if they are no appendix's."""
    size, magic = _APPENDIX_END.unpack(end)
    return size if magic == _APPENDIX_MAGIC else 0


def unpack_appendix(data: bytes) -> tuple[JitFile, ...]:
    """Raises Malformed."""
    cursor = _Cursor(data)
    return tuple(_unpack_jit_file(cursor) for _ in range(cursor.count(12)))


def _unpack_jit_file(cursor: _Cursor) -> JitFile:
    path = cursor.string()
    return JitFile(path, cursor.take(cursor.u64()))
