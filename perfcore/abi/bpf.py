"""bpf(2)'s numbers and the layouts of union bpf_attr. uapi/linux/bpf.h, as Linux 6.12 has them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum, IntFlag

ATTR_BYTES = 152  # sizeof(union bpf_attr)
NAME_BYTES = 16  # BPF_OBJ_NAME_LEN


class Cmd(IntEnum):
    """enum bpf_cmd."""

    MAP_CREATE = 0
    MAP_LOOKUP_ELEM = 1
    MAP_UPDATE_ELEM = 2
    MAP_DELETE_ELEM = 3
    MAP_GET_NEXT_KEY = 4
    PROG_LOAD = 5
    OBJ_PIN = 6
    OBJ_GET = 7
    PROG_ATTACH = 8
    PROG_DETACH = 9
    PROG_TEST_RUN = 10
    PROG_GET_NEXT_ID = 11
    MAP_GET_NEXT_ID = 12
    PROG_GET_FD_BY_ID = 13
    MAP_GET_FD_BY_ID = 14
    OBJ_GET_INFO_BY_FD = 15
    PROG_QUERY = 16
    RAW_TRACEPOINT_OPEN = 17
    BTF_LOAD = 18
    BTF_GET_FD_BY_ID = 19
    TASK_FD_QUERY = 20
    MAP_LOOKUP_AND_DELETE_ELEM = 21
    MAP_FREEZE = 22
    BTF_GET_NEXT_ID = 23
    MAP_LOOKUP_BATCH = 24
    MAP_LOOKUP_AND_DELETE_BATCH = 25
    MAP_UPDATE_BATCH = 26
    MAP_DELETE_BATCH = 27
    LINK_CREATE = 28
    LINK_UPDATE = 29
    LINK_GET_FD_BY_ID = 30
    LINK_GET_NEXT_ID = 31
    ENABLE_STATS = 32
    ITER_CREATE = 33
    LINK_DETACH = 34
    PROG_BIND_MAP = 35
    TOKEN_CREATE = 36


class MapType(IntEnum):
    """enum bpf_map_type."""

    HASH = 1
    ARRAY = 2
    PROG_ARRAY = 3
    PERF_EVENT_ARRAY = 4
    PERCPU_HASH = 5
    PERCPU_ARRAY = 6
    STACK_TRACE = 7
    LRU_HASH = 9
    LRU_PERCPU_HASH = 10
    QUEUE = 22
    STACK = 23
    RINGBUF = 27


class ProgType(IntEnum):
    """enum bpf_prog_type, of those that observe; SOCKET_FILTER is the one with which libraries try what there is."""

    SOCKET_FILTER = 1
    KPROBE = 2
    TRACEPOINT = 5
    PERF_EVENT = 7
    RAW_TRACEPOINT = 17
    TRACING = 26


class AttachType(IntEnum):
    """enum bpf_attach_type, of those that are known."""

    TRACE_RAW_TP = 23
    TRACE_FENTRY = 24
    TRACE_FEXIT = 25
    MODIFY_RETURN = 26
    TRACE_ITER = 28
    PERF_EVENT = 41
    TRACE_KPROBE_MULTI = 42
    TRACE_UPROBE_MULTI = 48


LAST_PROG_TYPE = 32  # BPF_PROG_TYPE_NETFILTER
LAST_MAP_TYPE = 33  # BPF_MAP_TYPE_ARENA

PERF_EVENT_ATTACH = AttachType.PERF_EVENT
LINK_TYPE_RAW_TRACEPOINT, LINK_TYPE_TRACING, LINK_TYPE_PERF_EVENT = 1, 2, 7  # enum bpf_link_type
LINK_TYPE_KPROBE_MULTI, LINK_TYPE_UPROBE_MULTI = 8, 12
F_REPLACE = 1 << 2  # BPF_F_REPLACE, of LINK_UPDATE


class UpdateFlag(IntEnum):
    """What an update wants of an element."""

    ANY = 0
    NOEXIST = 1
    EXIST = 2


F_LOCK = 4


class MapFlag(IntFlag):
    """BPF_MAP_CREATE's flags."""

    NO_PREALLOC = 1 << 0
    NO_COMMON_LRU = 1 << 1
    NUMA_NODE = 1 << 2
    RDONLY = 1 << 3  # by system calls
    WRONLY = 1 << 4
    STACK_BUILD_ID = 1 << 5
    ZERO_SEED = 1 << 6
    RDONLY_PROG = 1 << 7
    WRONLY_PROG = 1 << 8
    CLONE = 1 << 9
    MMAPABLE = 1 << 10
    PRESERVE_ELEMS = 1 << 11
    INNER_MAP = 1 << 12


OBJ_FLAGS = MapFlag.RDONLY | MapFlag.WRONLY  # of OBJ_GET
PATH_FD = 1 << 14  # BPF_F_PATH_FD, of OBJ_PIN and OBJ_GET


class Attr:
    """union bpf_attr as a command reads it: fields by name."""

    def __init__(self, data: bytes, fields: Mapping[str, tuple[int, str]], end: int) -> None:
        self._data = data
        self._fields = fields
        self._end = end

    def __getitem__(self, field: str) -> int:
        offset, code = self._fields[field]
        value: int = struct.unpack_from("<" + code, self._data, offset)[0]
        return value

    def offset(self, field: str) -> int:
        """Of the field: where a command writes it back."""
        return self._fields[field][0]

    def name(self, field: str) -> bytes:
        """The 16 bytes of a name."""
        offset = self._fields[field][0]
        return self._data[offset : offset + NAME_BYTES]

    @property
    def has_more(self) -> bool:
        """CHECK_ATTR: whether something is set behind the fields that the command knows."""
        return any(self._data[self._end :])


class Layout:
    """The fields that a command has of union bpf_attr, in order, aligned as C does."""

    def __init__(self, fields: str) -> None:
        self._fields: dict[str, tuple[int, str]] = {}
        end = 0
        for field in fields.split():
            name, code = field.split(":") if ":" in field else (field, "I")
            size = NAME_BYTES if code == "name" else struct.calcsize(code)
            alignment = 1 if code == "name" else size
            offset = -(-end // alignment) * alignment
            self._fields[name] = offset, code
            end = offset + size
        self.end = end

    @property
    def fields(self) -> Mapping[str, tuple[int, str]]:
        """Offset and struct code of each, by name; "name" is the code of NAME_BYTES of text."""
        return self._fields

    def read(self, data: bytes) -> Attr:
        return Attr(data, self._fields, self.end)


_ELEMENT = Layout("map_fd key:Q value:Q flags:Q")
_BATCH = Layout("in_batch:Q out_batch:Q keys:Q values:Q count map_fd elem_flags:Q flags:Q")
_OBJECT = Layout("pathname:Q bpf_fd file_flags path_fd:i")
_NEXT_ID = Layout("start_id next_id")
_FROM_ID = Layout("id next_id open_flags")

LAYOUTS: Mapping[Cmd, Layout] = {
    Cmd.MAP_CREATE: Layout(
        "map_type key_size value_size max_entries map_flags inner_map_fd numa_node map_name:name map_ifindex btf_fd "
        "btf_key_type_id btf_value_type_id btf_vmlinux_value_type_id map_extra:Q value_type_btf_obj_fd:i map_token_fd:i"
    ),
    Cmd.MAP_LOOKUP_ELEM: _ELEMENT,
    Cmd.MAP_UPDATE_ELEM: _ELEMENT,
    Cmd.MAP_DELETE_ELEM: Layout("map_fd key:Q"),
    Cmd.MAP_GET_NEXT_KEY: Layout("map_fd key:Q next_key:Q"),
    Cmd.MAP_LOOKUP_AND_DELETE_ELEM: _ELEMENT,
    Cmd.MAP_FREEZE: Layout("map_fd"),
    Cmd.MAP_LOOKUP_BATCH: _BATCH,
    Cmd.MAP_LOOKUP_AND_DELETE_BATCH: _BATCH,
    Cmd.MAP_UPDATE_BATCH: _BATCH,
    Cmd.MAP_DELETE_BATCH: _BATCH,
    Cmd.PROG_LOAD: Layout(
        "prog_type insn_cnt insns:Q license:Q log_level log_size log_buf:Q kern_version prog_flags prog_name:name "
        "prog_ifindex expected_attach_type prog_btf_fd func_info_rec_size func_info:Q func_info_cnt "
        "line_info_rec_size line_info:Q line_info_cnt attach_btf_id attach_prog_fd core_relo_cnt fd_array:Q "
        "core_relos:Q core_relo_rec_size log_true_size prog_token_fd:i"
    ),
    Cmd.PROG_TEST_RUN: Layout(
        "prog_fd retval data_size_in data_size_out data_in:Q data_out:Q repeat duration ctx_size_in ctx_size_out "
        "ctx_in:Q ctx_out:Q flags cpu batch_size"
    ),
    Cmd.OBJ_PIN: _OBJECT,
    Cmd.OBJ_GET: _OBJECT,
    Cmd.PROG_GET_NEXT_ID: _NEXT_ID,
    Cmd.MAP_GET_NEXT_ID: _NEXT_ID,
    Cmd.BTF_GET_NEXT_ID: _NEXT_ID,
    Cmd.LINK_GET_NEXT_ID: _NEXT_ID,
    Cmd.PROG_GET_FD_BY_ID: Layout("id"),
    Cmd.MAP_GET_FD_BY_ID: _FROM_ID,
    Cmd.BTF_GET_FD_BY_ID: Layout("id"),
    Cmd.LINK_GET_FD_BY_ID: Layout("id"),
    Cmd.OBJ_GET_INFO_BY_FD: Layout("bpf_fd info_len info:Q"),
    Cmd.RAW_TRACEPOINT_OPEN: Layout("name:Q prog_fd cookie:Q"),
    Cmd.BTF_LOAD: Layout(
        "btf:Q btf_log_buf:Q btf_size btf_log_size btf_log_level btf_log_true_size btf_flags btf_token_fd:i"
    ),
    Cmd.TASK_FD_QUERY: Layout("pid fd flags buf_len buf:Q prog_id fd_type probe_offset:Q probe_addr:Q"),
    Cmd.LINK_CREATE: Layout("prog_fd target_fd attach_type flags bpf_cookie:Q"),
    Cmd.LINK_UPDATE: Layout("link_fd new_prog_fd flags old_prog_fd"),
    Cmd.LINK_DETACH: Layout("link_fd"),
    Cmd.ITER_CREATE: Layout("link_fd flags"),
    Cmd.PROG_BIND_MAP: Layout("prog_fd map_fd flags"),
}
KPROBE_MULTI_LINK = Layout("prog_fd target_fd attach_type flags multi_flags cnt syms:Q addrs:Q cookies:Q")
UPROBE_MULTI_LINK = Layout(
    "prog_fd target_fd attach_type flags path:Q offsets:Q ref_ctr_offsets:Q cookies:Q cnt multi_flags pid"
)
TRACING_LINK = Layout("prog_fd target_fd attach_type flags target_btf_id cookie:Q")  # LINK_CREATE of their programs


def packed(fields: Sequence[tuple[str, int | bytes]]) -> bytes:
    """A structure of bpf_*_info: (struct code, value) in order, aligned as C does."""
    data = b""
    for code, value in fields:
        alignment = 1 if code.endswith("s") else struct.calcsize(code)
        data = data.ljust(-(-len(data) // alignment) * alignment, b"\0") + struct.pack("<" + code, value)
    return data.ljust(-(-len(data) // 8) * 8, b"\0")
