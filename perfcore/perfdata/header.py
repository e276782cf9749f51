"""FileHeader: the 104 bytes at the start of a perf.data file, and the 16 bytes at the start of a pipe."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

MAGIC = b"PERFILE2"
PIPE_HEADER_SIZE = 16
FILE_ATTR_SIZE = 128  # of perf_event_attr as we write it: perf 6.1 refuses files with 136

_SECTION = struct.Struct("<QQ")
_HEADER = struct.Struct("<8s8Q4Q")
_PIPE_HEADER = struct.Struct("<8sQ")
HEADER_SIZE = _HEADER.size
SECTION_SIZE = _SECTION.size
DATA_SIZE_OFFSET = 48  # of the header's data.size, which is patched while the file grows
FEATURE_BITS = 256


class Feature(IntEnum):
    """HEADER_* of tools/perf/util/header.h: the bits of the header's feature bitmap."""

    TRACING_DATA = 1
    BUILD_ID = 2
    HOSTNAME = 3
    OSRELEASE = 4
    VERSION = 5
    ARCH = 6
    NRCPUS = 7
    CPUDESC = 8
    CPUID = 9
    TOTAL_MEM = 10
    CMDLINE = 11
    EVENT_DESC = 12
    CPU_TOPOLOGY = 13
    NUMA_TOPOLOGY = 14
    BRANCH_STACK = 15
    PMU_MAPPINGS = 16
    GROUP_DESC = 17
    AUXTRACE = 18
    STAT = 19
    CACHE = 20
    SAMPLE_TIME = 21
    MEM_TOPOLOGY = 22
    CLOCKID = 23
    DIR_FORMAT = 24
    BPF_PROG_INFO = 25
    BPF_BTF = 26
    COMPRESSED = 27
    CPU_PMU_CAPS = 28
    CLOCK_DATA = 29
    HYBRID_TOPOLOGY = 30
    PMU_CAPS = 31


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the file, in bytes."""

    offset: int = 0
    size: int = 0

    def pack(self) -> bytes:
        return _SECTION.pack(self.offset, self.size)

    @classmethod
    def unpack_from(cls, data: bytes, offset: int = 0) -> Section:
        return cls(*_SECTION.unpack_from(data, offset))

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class FileHeader:
    """struct perf_file_header. `attr_size` is one perf_event_attr and the Section of its ids."""

    attr_size: int = FILE_ATTR_SIZE + SECTION_SIZE
    attrs: Section = Section()
    data: Section = Section()
    features: frozenset[int] = frozenset()

    def pack(self) -> bytes:
        bitmap = sum(1 << feature for feature in self.features)
        words = [bitmap >> shift & (1 << 64) - 1 for shift in range(0, FEATURE_BITS, 64)]
        sections = (self.attrs.offset, self.attrs.size, self.data.offset, self.data.size, 0, 0)
        return _HEADER.pack(MAGIC, HEADER_SIZE, self.attr_size, *sections, *words)

    @classmethod
    def unpack(cls, data: bytes) -> FileHeader:
        """From the file's first HEADER_SIZE bytes, whose magic has been looked at."""
        _, _, attr_size, attrs, attrs_size, offset, size, _, _, *words = _HEADER.unpack_from(data)
        bitmap = sum(word << 64 * index for index, word in enumerate(words))
        features = frozenset(bit for bit in range(FEATURE_BITS) if bitmap >> bit & 1)
        return cls(attr_size, Section(attrs, attrs_size), Section(offset, size), features)


def pack_pipe_header() -> bytes:
    """struct perf_pipe_file_header."""
    return _PIPE_HEADER.pack(MAGIC, PIPE_HEADER_SIZE)
