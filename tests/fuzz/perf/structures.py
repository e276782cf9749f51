"""struct perf_event_attr and union bpf_attr as a client would fill them in, and a little otherwise."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import NamedTuple

from fuzz import layout
from fuzz.contents import number, pointer, some_of
from fuzz.perf.bpf_programs import ENTRIES, KEY_BYTES, MAP_TYPES, MAPS, VALUE_BYTES
from perfcore.abi.bpf import LAST_MAP_TYPE, LAYOUTS, PERF_EVENT_ATTACH, Cmd, MapFlag, MapType, ProgType
from perfcore.abi.btf import HEADER, MAGIC, VERSION
from perfcore.abi.syscall_tracepoints import tracepoints_by_id
from unit.bpf.programs import bpf_attr

EVENTS, PROGRAMS, LINKS, TYPES = 40, 80, 100, 110  # the first descriptor of each kind; a kind has COUNT, or 4
COUNT, FEW = 12, 4
OUTPUT = 7  # of the events: the one to which programs write
BUFFER_BYTES = 0x1000 * 9  # of an event's mapping, at most
MAPPED = 0x20_0000_0000  # where events and maps are mapped: one every STEP bytes
STEP = 0x10_0000
OBSERVING = (ProgType.KPROBE, ProgType.TRACEPOINT, ProgType.PERF_EVENT, ProgType.RAW_TRACEPOINT)
CONTEXT_BYTES = {ProgType.KPROBE: 160, ProgType.TRACEPOINT: 48, ProgType.PERF_EVENT: 160, ProgType.RAW_TRACEPOINT: 64}
RAW_NAMES = (
    b"sys_enter", b"sys_exit", b"sched_switch", b"sched_wakeup", b"sched_migrate_task", b"sched_process_fork",
    b"sched_process_exec", b"sched_process_exit", b"nothing",
)  # fmt: skip


def event_fd(rng: random.Random) -> int:
    return EVENTS + rng.randrange(COUNT)


def map_fd(rng: random.Random) -> int:
    return MAPS + rng.randrange(COUNT)


def program_fd(rng: random.Random) -> int:
    return PROGRAMS + rng.randrange(COUNT)


def fitting_program(rng: random.Random, event: int) -> int:
    """A program that is for the event, as a rule."""
    slots = [slot for slot in range(COUNT) if slot % 4 == (event - EVENTS) % 4 or rng.random() < 0.1]
    return PROGRAMS + rng.choice(slots)


def any_fd(rng: random.Random) -> int:
    """Of an event or a BPF object, or none."""
    few = rng.choice((LINKS, TYPES)) + rng.randrange(FEW)
    return rng.choice((event_fd(rng), map_fd(rng), program_fd(rng), few, 0, 999, (1 << 32) - 1))


@dataclass(frozen=True, slots=True)
class Buffers:
    """Addresses of what structures point to."""

    programs: tuple[tuple[int, int, int], ...]  # where, how many instructions, bpf_prog_type
    names: tuple[int, ...]  # of raw tracepoints
    license: int
    types: tuple[int, int]  # BTF, and its size
    keys: int
    values: int

    def somewhere(self, rng: random.Random) -> int:
        return rng.choice((self.keys, self.values, self.values, pointer(rng)))


# ---- perf_event_open(2)


class PerfAttr(NamedTuple):
    """struct perf_event_attr, its flags as one word."""

    type: int = 0
    size: int = 136
    config: int = 0
    sample_period: int = 0
    sample_type: int = 0
    read_format: int = 0
    flags: int = 0
    wakeup: int = 0
    bp_type: int = 0
    config1: int = 0
    config2: int = 0
    branch_sample_type: int = 0
    sample_regs_user: int = 0
    sample_stack_user: int = 0
    clockid: int = 0
    sample_regs_intr: int = 0
    aux_watermark: int = 0
    sample_max_stack: int = 0
    reserved: int = 0
    aux_sample_size: int = 0
    aux_action: int = 0
    sig_data: int = 0
    config3: int = 0

    def data(self) -> bytes:
        return struct.pack("<IIQQQQQIIQQQQIiQIHHIIQQ", *self)


_SAMPLED = (
    0, 0x1, 0x107, 0x187, 0x40, 0x1_0007, 1 << 10 | 3, 1 << 5 | 1, 1 << 12 | 3, 1 << 13 | 3, 1 << 12 | 1 << 13 | 0x27,
    1 << 18 | 1, 1 << 10 | 1 << 4 | 1, 0x1CF,
)  # fmt: skip
_FLAGS = tuple(1 << bit for bit in (0, 1, 2, 3, 5, 6, 8, 9, 13, 14, 18, 23, 26))  # those that go together


def perf_attr(isa: str, rng: random.Random, slot: int) -> bytes:
    """`slot`: events of every fourth are such as BPF programs of every fourth are for."""
    attr = PerfAttr(
        sample_period=rng.choice((0, 50, 200, 1000, 1000, 5000, 100_000)), sample_type=rng.choice(_SAMPLED),
        read_format=rng.choice((0, 3, 4, 7, 8, 15, 16, 31)), flags=some_of(_FLAGS, 0.12, rng),
        wakeup=rng.choice((0, 1, 1, 2, 100)),
        sample_regs_user=0xFF0FFF if isa == "x86_64" else rng.choice((0xFF, (1 << 33) - 1)),
        sample_regs_intr=0xFF, sample_stack_user=rng.choice((8, 64, 1024, 8192, 65528, 65520)),
        sample_max_stack=rng.choice((0, 0, 1, 5, 127)),
    )  # fmt: skip
    attr = attr._replace(**_kinds(isa, rng, slot))
    for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 3))):
        name = rng.choice(PerfAttr._fields)
        most = {"size": 250, "type": 12, "clockid": 12, "bp_type": 8}.get(name)
        bits = {"Q": 64, "H": 16}.get(_CODES[PerfAttr._fields.index(name)], 31)
        value = number(rng) & (1 << bits) - 1 if most is None else rng.randrange(most)
        attr = attr._replace(**{name: value ^ (attr.flags if name == "flags" and rng.randrange(2) else 0)})
    return attr.data()


_CODES = "IIQQQQQIIQQQQIiQIHHIIQQ"


def _kinds(isa: str, rng: random.Random, slot: int) -> dict[str, int]:
    """Type and what it needs."""
    tracepoints = (310, 311, 313, 348, 349, 180, 304, *rng.sample(sorted(tracepoints_by_id(isa)), 3))
    breakpoint = {
        "type": 5, "config": 0, "bp_type": rng.choice((1, 2, 3, 4)), "config2": rng.choice((1, 2, 4, 8, 8)),
        "config1": rng.choice((layout.BUFFERS, layout.CODE, layout.RESULTS, pointer(rng))),
    }  # fmt: skip
    counting = rng.choice(({"type": 0, "config": rng.randrange(10)}, {"type": 1, "config": rng.randrange(12)}))
    match slot % 4:
        case 1:
            return {"type": 2, "config": rng.choice(tracepoints)}
        case 2:
            return rng.choice((counting, counting, breakpoint))
        case 3 if slot == OUTPUT:
            return {"type": 1, "config": 10, "sample_type": 0x400 | rng.choice((0, 7)), "sample_period": 1}
    cache = rng.randrange(6) | rng.randrange(3) << 8 | rng.randrange(2) << 16
    other = rng.choice((4, 6, 7, 8, 9, 10))
    config = rng.choice((0, 1, 8, 0x11, 0xC0, 0x2E, number(rng)))
    uprobe = {"type": other, "config": config, "config1": pointer(rng) if other in (6, 7) else 0}
    return rng.choice((counting, counting, breakpoint, {"type": 3, "config": cache}, uprobe))


# ---- bpf(2)

_KEYED = Cmd.MAP_LOOKUP_ELEM, Cmd.MAP_UPDATE_ELEM, Cmd.MAP_DELETE_ELEM, Cmd.MAP_LOOKUP_AND_DELETE_ELEM
_BATCHES = (
    Cmd.MAP_LOOKUP_BATCH, Cmd.MAP_LOOKUP_AND_DELETE_BATCH, Cmd.MAP_UPDATE_BATCH, Cmd.MAP_DELETE_BATCH,
)  # fmt: skip
COMMANDS = (
    *_KEYED, *_KEYED, *_BATCHES, Cmd.MAP_GET_NEXT_KEY, Cmd.MAP_FREEZE, Cmd.MAP_CREATE, Cmd.MAP_CREATE, Cmd.PROG_LOAD,
    Cmd.PROG_LOAD, Cmd.PROG_LOAD, Cmd.PROG_TEST_RUN, Cmd.PROG_TEST_RUN, Cmd.OBJ_PIN, Cmd.OBJ_GET,
    Cmd.OBJ_GET_INFO_BY_FD, Cmd.PROG_GET_NEXT_ID, Cmd.MAP_GET_NEXT_ID, Cmd.BTF_GET_NEXT_ID, Cmd.LINK_GET_NEXT_ID,
    Cmd.PROG_GET_FD_BY_ID, Cmd.MAP_GET_FD_BY_ID, Cmd.BTF_GET_FD_BY_ID, Cmd.LINK_GET_FD_BY_ID,
    Cmd.RAW_TRACEPOINT_OPEN, Cmd.RAW_TRACEPOINT_OPEN, Cmd.LINK_CREATE, Cmd.LINK_CREATE, Cmd.LINK_DETACH,
    Cmd.PROG_BIND_MAP, Cmd.TASK_FD_QUERY, Cmd.BTF_LOAD,
)  # fmt: skip


def map_attr(slot: int) -> dict[str, int]:
    """What programs take the map of that number for."""
    type = MAP_TYPES[slot]
    sizes = {
        MapType.QUEUE: (0, VALUE_BYTES, ENTRIES),
        MapType.STACK: (0, VALUE_BYTES, ENTRIES),
        MapType.RINGBUF: (0, 0, 4096),
        MapType.PERF_EVENT_ARRAY: (KEY_BYTES, 4, ENTRIES),
        MapType.STACK_TRACE: (KEY_BYTES, 64, ENTRIES),
    }
    key, value, entries = sizes.get(type, (KEY_BYTES, VALUE_BYTES, 1 if slot == 10 else ENTRIES))
    flags = MapFlag.MMAPABLE if type is MapType.ARRAY else 0
    return {"map_type": type, "key_size": key, "value_size": value, "max_entries": entries, "map_flags": flags}


def load_attr(buffers: Buffers, which: int, log_bytes: int = 0) -> dict[str, int]:
    address, count, type = buffers.programs[which % len(buffers.programs)]
    found = {"prog_type": type, "insn_cnt": count, "insns": address, "license": buffers.license}
    if log_bytes:
        found |= {"log_level": 1 + which % 7, "log_size": log_bytes, "log_buf": buffers.values}
    return found


def _random_map(rng: random.Random) -> dict[str, int]:
    flags = some_of(list(MapFlag), 0.1, rng)
    return {
        "map_type": rng.choice((*MapType, rng.randrange(LAST_MAP_TYPE + 2))),
        "key_size": rng.choice((0, 1, 4, 4, 4, 8, 100, 5000, number(rng) & 0xFFFF_FFFF)),
        "value_size": rng.choice((0, 1, 4, 8, 16, 16, 1000, 1 << 22, number(rng) & 0xFFFF_FFFF)),
        "max_entries": rng.choice((0, 1, 1, 3, 8, 1000, 4096, 1 << 20, number(rng) & 0xFFFF_FFFF)),
        "map_flags": flags,
    }


def _fields(command: Cmd, buffers: Buffers, rng: random.Random) -> dict[str, int]:
    if command == Cmd.MAP_CREATE:
        return map_attr(rng.randrange(COUNT)) if rng.randrange(3) == 0 else _random_map(rng)
    if command == Cmd.PROG_LOAD:
        return load_attr(buffers, rng.randrange(100), rng.choice((0, 0, 1, 2, 4000)))
    if command == Cmd.LINK_CREATE:
        event = event_fd(rng)
        return {"prog_fd": fitting_program(rng, event), "target_fd": event, "attach_type": PERF_EVENT_ATTACH}
    if command == Cmd.RAW_TRACEPOINT_OPEN:
        return {"name": rng.choice(buffers.names), "prog_fd": fitting_program(rng, EVENTS + 3), "cookie": 5}
    if command == Cmd.BTF_LOAD:
        return {"btf": buffers.types[0], "btf_size": buffers.types[1]}
    if command == Cmd.PROG_TEST_RUN:
        size = rng.choice((64, 96, 96, 8, 0))
        program = fitting_program(rng, EVENTS + 3)
        return {"prog_fd": program, "ctx_in": buffers.values if size else 0, "ctx_size_in": size}
    if command == Cmd.OBJ_GET_INFO_BY_FD:
        return {"bpf_fd": any_fd(rng), "info_len": rng.choice((0, 8, 80, 232, 5000)), "info": buffers.values}
    return _of_maps(command, buffers, rng)


def _of_maps(command: Cmd, buffers: Buffers, rng: random.Random) -> dict[str, int]:
    known = LAYOUTS[command].fields
    return {name: choose(buffers, rng) for name, choose in _CHOICES.items() if name in known}


_CHOICES = {
    "map_fd": lambda buffers, rng: map_fd(rng),
    "prog_fd": lambda buffers, rng: program_fd(rng),
    "link_fd": lambda buffers, rng: LINKS + rng.randrange(FEW),
    "bpf_fd": lambda buffers, rng: any_fd(rng),
    "fd": lambda buffers, rng: any_fd(rng),
    "pid": lambda buffers, rng: rng.choice((1000, 1000, 1001, 1, 0, 77)),
    "id": lambda buffers, rng: rng.choice((1, 2, 5, 10, 20, number(rng) & 0xFFFF_FFFF)),
    "start_id": lambda buffers, rng: rng.choice((0, 1, 5, 100, 1 << 31)),
    "key": lambda buffers, rng: rng.choice((buffers.keys, buffers.keys, 0, pointer(rng))),
    "value": lambda buffers, rng: buffers.somewhere(rng),
    "next_key": lambda buffers, rng: buffers.somewhere(rng),
    "flags": lambda buffers, rng: rng.choice((0, 0, 0, 1, 2, 4, number(rng))) & 0xFFFF_FFFF,
    "keys": lambda buffers, rng: buffers.somewhere(rng),
    "values": lambda buffers, rng: buffers.somewhere(rng),
    "in_batch": lambda buffers, rng: rng.choice((0, 0, buffers.keys, pointer(rng))),
    "out_batch": lambda buffers, rng: buffers.somewhere(rng),
    "count": lambda buffers, rng: rng.choice((0, 1, 3, 8, 100, (1 << 32) - 1)),
    "buf": lambda buffers, rng: buffers.somewhere(rng),
    "buf_len": lambda buffers, rng: rng.choice((0, 1, 8, 100)),
    "pathname": lambda buffers, rng: buffers.names[0],
}


def random_bpf_attr(command: Cmd, buffers: Buffers, rng: random.Random) -> bytes:
    data = bytearray(bpf_attr(command, _fields(command, buffers, rng)))
    if rng.random() < 0.12:  # one field is something else
        at = 4 * rng.randrange(20)
        data[at : at + 4] = (number(rng) & 0xFFFF_FFFF).to_bytes(4, "little")
    return bytes(data)


def btf(rng: random.Random) -> bytes:
    """void and an int, or as many types of any kind as fit."""
    strings = b"\0int\0name\0"
    types = struct.pack("<IIII", 1, 1 << 24, 4, 32)
    for _ in range(rng.choice((0, 0, 1, 4))):
        kind, members = rng.randrange(21), rng.choice((0, 0, 1, 2))
        types += struct.pack("<III", rng.choice((0, 1, 5)), kind << 24 | members, rng.randrange(4))
        types += rng.randbytes(rng.choice((0, 4, 12, 12 * members)))
    header = HEADER.pack(MAGIC, VERSION, 0, HEADER.size, 0, len(types), len(types), len(strings))
    return header + types + strings
