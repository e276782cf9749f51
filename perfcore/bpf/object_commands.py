"""bpf(2)'s commands for objects of any kind: their numbers, what is known of them, their types. kernel/bpf/syscall.c"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from emulator.linux.errors import E2BIG, EINVAL, ENAMETOOLONG, ENOSPC, ENOTSUPP, EPERM, LinuxError
from emulator.linux.fs.file import File
from perfcore.abi.bpf import LAYOUTS, Cmd, ProgType, packed
from perfcore.bpf.btf import Btf
from perfcore.bpf.files import BtfFile, LinkFile, MapFile, file_flags, program_of
from perfcore.bpf.instructions import encode
from perfcore.bpf.links import Link, PerfEventLink, RawTracepointLink
from perfcore.bpf.loading import install_program
from perfcore.bpf.maps.map import Map
from perfcore.bpf.multi_links import KprobeMultiLink, UprobeMultiLink
from perfcore.bpf.objects import Registry
from perfcore.bpf.program import Program
from perfcore.bpf.request import CAP_BPF, CAP_SYS_ADMIN, Request
from perfcore.bpf.subsystem import KERNEL_BTF_ID, Bpf
from perfcore.bpf.trampolines import TracingLink
from perfcore.events.programs import ProgramFile

_MOST_ARGUMENTS_BYTES = 12 * 8  # of a raw tracepoint
_RUN_ON_CPU = 1
_RUN_OF_BTF_SHIFT = 2  # an instruction could have been run, for 4 bytes of BTF that are looked at
_PAGE = 4096

# ---- types


def btf_load(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.BTF_LOAD])
    if attr["btf_flags"] or attr["btf_token_fd"]:
        raise LinuxError(EINVAL, f"btf_flags {attr['btf_flags']:#x}")
    if not request.may(CAP_BPF):
        raise LinuxError(EPERM, "BTF is loaded with CAP_BPF")
    if attr["btf_size"] > 16 << 20:
        raise LinuxError(E2BIG, f"BTF of {attr['btf_size']} bytes")
    bpf.check_allowance("BTF is looked at")
    bpf.allowance.spend(attr["btf_size"] >> _RUN_OF_BTF_SHIFT)
    discharge = bpf.memory.charge(attr["btf_size"])
    try:
        btf = Btf(request.task.mm.read(attr["btf"], attr["btf_size"]))
        bpf.types.add(btf)
    except LinuxError:
        discharge()
        raise

    def end(btf: Btf) -> None:
        bpf.types.remove(btf)
        discharge()

    btf.on_end = end
    return request.task.files.install(BtfFile(btf), cloexec=True)


# ---- numbers


def _next_id(registry: Registry[Any], request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.MAP_GET_NEXT_ID])
    if attr["start_id"] >= 1 << 31:
        raise LinuxError(EINVAL, f"start_id {attr['start_id']:#x}")
    _check_administrator(request)
    request.write_back(attr, "next_id", registry.after(attr["start_id"]))
    return 0


def _check_administrator(request: Request) -> None:
    if not request.task.credentials.has(CAP_SYS_ADMIN):
        raise LinuxError(EPERM, "objects are looked for by their numbers with CAP_SYS_ADMIN")


def map_get_next_id(bpf: Bpf, request: Request) -> int:
    return _next_id(bpf.maps, request)


def prog_get_next_id(bpf: Bpf, request: Request) -> int:
    return _next_id(bpf.programs, request)


def btf_get_next_id(bpf: Bpf, request: Request) -> int:
    return _next_id(bpf.types, request)


def link_get_next_id(bpf: Bpf, request: Request) -> int:
    return _next_id(bpf.links, request)


def prog_get_fd_by_id(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.PROG_GET_FD_BY_ID])
    _check_administrator(request)
    return install_program(request, bpf.programs.get(attr["id"]))


def map_get_fd_by_id(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.MAP_GET_FD_BY_ID])
    _check_administrator(request)
    flags = file_flags(attr["open_flags"])
    return request.task.files.install(MapFile(bpf.maps.get(attr["id"]), flags), cloexec=True)


def btf_get_fd_by_id(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.BTF_GET_FD_BY_ID])
    _check_administrator(request)
    return request.task.files.install(BtfFile(bpf.types.get(attr["id"])), cloexec=True)


def link_get_fd_by_id(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.LINK_GET_FD_BY_ID])
    _check_administrator(request)
    return request.task.files.install(LinkFile(bpf.links.get(attr["id"])), cloexec=True)


# ---- what is known of one


def obj_get_info_by_fd(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.OBJ_GET_INFO_BY_FD])
    file = request.task.files.get(attr["bpf_fd"])
    tell = next((tell for kind, tell in _INFORMATION.items() if isinstance(file, kind)), None)
    if tell is None:
        raise LinuxError(EINVAL, f"descriptor {attr['bpf_fd']} is of no BPF object")
    asked = request.task.mm.read(attr["info"], min(attr["info_len"], _PAGE))
    if attr["info_len"] > _PAGE:
        raise LinuxError(E2BIG, f"a structure of {attr['info_len']} bytes")
    data = tell(request, file, asked)
    if any(asked[len(data) :]):
        raise LinuxError(E2BIG, f"the structure has {len(data)} bytes; something is set behind them")
    request.task.mm.write(attr["info"], data[: attr["info_len"]])
    request.write_back(attr, "info_len", min(len(data), attr["info_len"]))
    return 0


def _number(asked: bytes, offset: int, code: str = "I") -> int:
    """What the caller has set in the structure; 0 where it is shorter."""
    value: int = struct.unpack_from("<" + code, asked.ljust(_PAGE, b"\0"), offset)[0]
    return value


def _map_info(request: Request, file: File, asked: bytes) -> bytes:
    """struct bpf_map_info"""
    assert isinstance(file, MapFile), "the table says so"
    map: Map = file.thing
    wanted = map.request
    fields = (int(wanted.type), map.id, wanted.key_size, wanted.value_size, wanted.max_entries, int(wanted.flags))
    return packed((
        *(("I", field) for field in fields), ("16s", wanted.name), ("I", 0), ("I", 0), ("Q", 0), ("Q", 0),
        ("I", map.btf_id), ("I", map.btf_key_type_id), ("I", map.btf_value_type_id), ("I", 0), ("Q", 0),
    ))  # fmt: skip


def _program_info(request: Request, file: File, asked: bytes) -> bytes:
    """struct bpf_prog_info: nothing has been compiled that had addresses (jited_*)."""
    assert isinstance(file, ProgramFile), "the table says so"
    assert isinstance(file.program, Program), "there is one kind of program"
    program = file.program
    loaded = program.loaded
    instructions = encode(loaded.instructions)
    btf_id = 0 if loaded.btf is None else loaded.btf.id
    room, at = _number(asked, 20), _number(asked, 32, "Q")
    if room and at:
        request.task.mm.write(at, instructions[:room])
    map_room, map_at = _number(asked, 52), _number(asked, 56, "Q")
    if map_room and map_at:
        ids = [map.id for map in program.maps][:map_room]
        request.task.mm.write(map_at, struct.pack(f"<{len(ids)}I", *ids))
    attached_to = _attached_to(program)
    return packed((
        ("I", int(program.type)), ("I", program.id), ("8s", program.tag), ("I", 0), ("I", len(instructions)),
        ("Q", 0), ("Q", at), ("Q", loaded.load_time_ns), ("I", loaded.uid), ("I", len(program.maps)), ("Q", map_at),
        ("16s", loaded.name), ("I", 0), ("I", int(loaded.gpl)), ("Q", 0), ("Q", 0), ("I", 0), ("I", 0), ("Q", 0),
        ("Q", 0), ("I", btf_id), ("I", 0), ("Q", 0), ("I", 0), ("I", 0), ("Q", 0), ("Q", 0), ("I", 0), ("I", 0),
        ("I", 0), ("I", 0), ("Q", 0), ("Q", 0), ("Q", 0), ("Q", program.misses), ("I", loaded.verified_insns),
        ("I", attached_to[0]), ("I", attached_to[1]),
    ))  # fmt: skip


def _attached_to(program: Program) -> tuple[int, int]:
    """Whose types they are in which it names what it is for (a program's, or the kernel's), and which that is."""
    attachment = program.attachment
    if attachment is None:
        return 0, 0
    of = attachment.program
    types = None if of is None else of.loaded.btf
    return KERNEL_BTF_ID if types is None else types.id, attachment.number


def _btf_info(request: Request, file: File, asked: bytes) -> bytes:
    """struct bpf_btf_info"""
    assert isinstance(file, BtfFile), "the table says so"
    btf: Btf = file.thing
    at, room = _number(asked, 0, "Q"), _number(asked, 8)
    request.task.mm.write(at, btf.data[:room])
    name_at, name_room = _number(asked, 16, "Q"), _number(asked, 24)
    if bool(name_at) != bool(name_room):
        raise LinuxError(EINVAL, "name and name_len go together")
    if name_at:
        _write_string(request, name_at, name_room, btf.name)
    return packed((
        ("Q", at), ("I", len(btf.data)), ("I", btf.id), ("Q", name_at), ("I", len(btf.name)),
        ("I", int(btf.is_kernels)),
    ))  # fmt: skip


def _write_string(request: Request, at: int, room: int, text: bytes) -> None:
    """As much as there is room for. ENOSPC"""
    whole = text + b"\0"
    request.task.mm.write(at, whole if room >= len(whole) else text[: room - 1] + b"\0")
    if room < len(whole):
        raise LinuxError(ENOSPC, f"the name has {len(whole)} bytes")


def _link_info(request: Request, file: File, asked: bytes) -> bytes:
    """struct bpf_link_info, of 6.12's size"""
    assert isinstance(file, LinkFile), "the table says so"
    link: Link = file.thing
    head = struct.pack("<4I", link.type, link.id, link.program.id, 0)
    rest = _number(asked, 16, "Q"), _number(asked, 24)
    if isinstance(link, RawTracepointLink):
        name = link.name.encode()
        at, room = rest
        if bool(at) != bool(room):
            raise LinuxError(EINVAL, "tp_name and tp_name_len go together")
        if at:
            _write_string(request, at, room, name)
        return head + struct.pack("<QII", at, len(name) + 1, 0).ljust(48, b"\0")
    if isinstance(link, TracingLink):
        attachment, program = link.attachment, link.attachment.program
        number = KERNEL_BTF_ID if program is None else program.id
        return head + struct.pack("<3I", attachment.type, number, attachment.number).ljust(48, b"\0")
    if isinstance(link, KprobeMultiLink):
        return head + _kprobe_multi_info(request, link, asked)
    if isinstance(link, UprobeMultiLink):
        return head + _uprobe_multi_info(request, link, asked)
    assert isinstance(link, PerfEventLink), "there is no other kind of link"
    return head + struct.pack("<II", link.event_type, 0).ljust(48, b"\0")


def _kprobe_multi_info(request: Request, link: KprobeMultiLink, asked: bytes) -> bytes:
    """bpf_kprobe_multi_link_fill_link_info(): addrs, count, flags, missed, cookies"""
    at, room, cookies_at = _number(asked, 16, "Q"), _number(asked, 24), _number(asked, 40, "Q")
    if bool(at) != bool(room) or (cookies_at and not room):
        raise LinuxError(EINVAL, "addrs, cookies and count go together")
    count = len(link.functions)
    if at:
        _write_words(request, cookies_at, room, [probed.cookie for probed in link.functions])
        _write_words(request, at, room, [probed.address for probed in link.functions])
        if room < count:
            raise LinuxError(ENOSPC, f"there are {count} functions")
    return struct.pack("<QIIQQ", at, count, int(link.returns), link.program.misses, cookies_at).ljust(48, b"\0")


def _uprobe_multi_info(request: Request, link: UprobeMultiLink, asked: bytes) -> bytes:
    """bpf_uprobe_multi_link_fill_link_info(): path, offsets, ref_ctr_offsets, cookies, path_size, count, flags, pid"""
    path_at, *columns_at = (_number(asked, offset, "Q") for offset in (16, 24, 32, 40))
    path_room, room = _number(asked, 48), _number(asked, 52)
    if bool(path_at) != bool(path_room) or (any(columns_at) and not room):
        raise LinuxError(EINVAL, "path and path_size go together, and the rest and count")
    path = os.fsencode(link.path) + b"\0"
    if path_room and path_room < len(path):
        raise LinuxError(ENAMETOOLONG, f"the path has {len(path)} bytes")
    if path_at:
        request.task.mm.write(path_at, path)
    count = len(link.places)
    columns = zip(*((place.offset, place.semaphore, place.cookie) for place in link.places), strict=True)
    for at, column in zip(columns_at, columns, strict=True):
        _write_words(request, at, room, column)
    if any(columns_at) and room < count:
        raise LinuxError(ENOSPC, f"there are {count} places")
    pid = 0 if link.task is None else link.task.pid
    return struct.pack("<4Q4I", path_at, *columns_at, len(path), count, int(link.returns), pid)


def _write_words(request: Request, at: int, room: int, words: Sequence[int]) -> None:
    """As many as there is room for, if anywhere."""
    if at:
        request.task.mm.write(at, struct.pack(f"<{len(words[:room])}Q", *words[:room]))


_INFORMATION: dict[type[File], Callable[[Request, File, bytes], bytes]] = {
    MapFile: _map_info,
    ProgramFile: _program_info,
    BtfFile: _btf_info,
    LinkFile: _link_info,
}

# ---- programs


def prog_bind_map(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.PROG_BIND_MAP])
    if attr["flags"]:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    program = program_of(request.task, attr["prog_fd"])
    file = request.task.files.get(attr["map_fd"])
    if not isinstance(file, MapFile):
        raise LinuxError(EINVAL, f"descriptor {attr['map_fd']} is no BPF map's")
    program.bind(file.thing)
    return 0


def prog_test_run(bpf: Bpf, request: Request) -> int:
    """Of raw tracepoints' programs, which are given their arguments: bpf_prog_test_run_raw_tp()."""
    attr = request.fields(LAYOUTS[Cmd.PROG_TEST_RUN])
    for length, address in (("ctx_size_in", "ctx_in"), ("ctx_size_out", "ctx_out")):
        if bool(attr[length]) != bool(attr[address]):
            raise LinuxError(EINVAL, f"{length} and {address} go together")
    program = program_of(request.task, attr["prog_fd"])
    if program.type != ProgType.RAW_TRACEPOINT:
        raise LinuxError(ENOTSUPP, f"a program of type {program.type.name} is not run so")
    unused = ("data_in", "data_out", "ctx_out", "duration", "repeat", "batch_size")
    size = attr["ctx_size_in"]
    if any(attr[field] for field in unused) or not program.last_context_byte <= size <= _MOST_ARGUMENTS_BYTES:
        raise LinuxError(EINVAL, f"{', '.join(unused)} are 0, and ctx_in has what the program reads")
    if attr["flags"] & ~_RUN_ON_CPU or (attr["cpu"] and not attr["flags"]):
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}, cpu {attr['cpu']}")
    context = request.task.mm.read(attr["ctx_in"], size) if size else b""
    cpu = bpf.kernel.executing_cpu
    if attr["flags"] and attr["cpu"] != cpu.number:
        raise LinuxError(EINVAL, f"cpu {attr['cpu']}: a program is run on the CPU of the call, {cpu.number}")
    request.write_back(attr, "retval", bpf.run(program, context, cpu))
    return 0
