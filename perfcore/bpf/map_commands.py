"""bpf(2)'s commands for maps and their elements. kernel/bpf/syscall.c"""

from __future__ import annotations

import struct
from collections.abc import Callable

from emulator.linux.errors import EBUSY, EINVAL, ENOENT, ENOTSUPP, EPERM, LinuxError
from emulator.linux.sched.waiting import Sleeping, work
from perfcore.abi.bpf import F_LOCK, LAST_MAP_TYPE, LAYOUTS, Attr, Cmd, MapFlag, MapType
from perfcore.bpf.files import MapFile, btf_of, file_flags, map_file, readable_map, writable_map
from perfcore.bpf.maps.hash import HashMap
from perfcore.bpf.maps.kinds import MAP_KINDS
from perfcore.bpf.maps.map import Map, MapRequest
from perfcore.bpf.maps.queue import QueueMap
from perfcore.bpf.request import CAP_BPF, Request, object_name
from perfcore.bpf.subsystem import Bpf

_ALL_FLAGS = sum(MapFlag)
_PORTION, _ELEMENT_CYCLES = 4096, 100  # elements between which a batch is interrupted; what each takes


def map_create(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.MAP_CREATE])
    if attr["btf_vmlinux_value_type_id"] or attr["map_extra"] or attr["map_token_fd"] or attr["value_type_btf_obj_fd"]:
        raise LinuxError(EINVAL, "map_extra, tokens and the kernel's types are not for these maps")
    if attr["btf_key_type_id"] and not attr["btf_value_type_id"]:
        raise LinuxError(EINVAL, "a type of keys without one of values")
    opened = file_flags(attr["map_flags"])
    wanted = _requested(attr)
    kind = MAP_KINDS[wanted.type]
    kind.check(wanted)
    if not request.may(CAP_BPF):
        raise LinuxError(EPERM, "maps are made with CAP_BPF (kernel.unprivileged_bpf_disabled)")
    name = object_name(attr.name("map_name"))
    map = kind(MapRequest(wanted.type, wanted.key_size, wanted.value_size, wanted.max_entries, wanted.flags, name), bpf)
    map.on_end = bpf.maps.remove
    try:
        _set_types(request, attr, map)
        bpf.maps.add(map)
    except LinuxError:
        map.drop_unused()
        raise
    return request.task.files.install(MapFile(map, opened), cloexec=True)


def _requested(attr: Attr) -> MapRequest:
    number, flags = attr["map_type"], attr["map_flags"]
    if not 0 < number <= LAST_MAP_TYPE:
        raise LinuxError(EINVAL, f"map_type {number}")
    if number not in MAP_KINDS:
        raise LinuxError(
            EINVAL, f"maps of type {number} are not modelled, but {', '.join(kind.name for kind in MAP_KINDS)}"
        )
    if flags & ~_ALL_FLAGS:
        raise LinuxError(EINVAL, f"map_flags {flags:#x}")
    if flags & MapFlag.NUMA_NODE and attr["numa_node"]:
        raise LinuxError(EINVAL, f"NUMA node {attr['numa_node']}: there is one, 0")
    return MapRequest(MapType(number), attr["key_size"], attr["value_size"], attr["max_entries"], MapFlag(flags))


def _set_types(request: Request, attr: Attr, map: Map) -> None:
    key, value = attr["btf_key_type_id"], attr["btf_value_type_id"]
    if not key and not value:
        return
    btf = btf_of(request.task, attr["btf_fd"])
    if max(key, value) > btf.count:
        raise LinuxError(EINVAL, f"types {key} and {value}: there are {btf.count}")
    map.set_types(btf, key, value)


# ---- elements


def _key(request: Request, map: Map, address: int) -> bytes:
    """__bpf_copy_key(): a queue has none."""
    if map.request.key_size:
        return request.task.mm.read(address, map.request.key_size)
    if address:
        raise LinuxError(EINVAL, "the map has no keys")
    return b""


def map_lookup_elem(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.MAP_LOOKUP_ELEM])
    if attr["flags"] & ~F_LOCK:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    map = readable_map(request.task, attr["map_fd"])
    _check_lock(attr["flags"])
    value = map.read(_key(request, map, attr["key"]))
    request.task.mm.write(attr["value"], value)
    return 0


def _check_lock(flags: int) -> None:
    if flags & F_LOCK:
        raise LinuxError(EINVAL, "BPF_F_LOCK: the map's values have no lock")


def map_update_elem(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.MAP_UPDATE_ELEM])
    map = writable_map(request.task, attr["map_fd"])
    _check_lock(attr["flags"])
    key = _key(request, map, attr["key"])
    map.write(request.task, key, request.task.mm.read(attr["value"], map.value_bytes), attr["flags"])
    return 0


def map_delete_elem(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.MAP_DELETE_ELEM])
    map = writable_map(request.task, attr["map_fd"])
    map.remove(_key(request, map, attr["key"]))
    return 0


def map_get_next_key(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.MAP_GET_NEXT_KEY])
    map = readable_map(request.task, attr["map_fd"])
    key = _key(request, map, attr["key"]) if attr["key"] else None
    request.task.mm.write(attr["next_key"], map.next_key(key))
    return 0


def map_lookup_and_delete_elem(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.MAP_LOOKUP_AND_DELETE_ELEM])
    if attr["flags"] & ~F_LOCK:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    map = writable_map(request.task, attr["map_fd"])
    if not map_file(request.task, attr["map_fd"]).readable:
        raise LinuxError(EPERM, "the map is not read through this descriptor")
    if isinstance(map, QueueMap) and attr["flags"]:
        raise LinuxError(EINVAL, f"flags {attr['flags']:#x}")
    _check_lock(attr["flags"])
    value = map.take(_key(request, map, attr["key"]))
    request.task.mm.write(attr["value"], value)
    return 0


def map_freeze(bpf: Bpf, request: Request) -> int:
    attr = request.fields(LAYOUTS[Cmd.MAP_FREEZE])
    file = map_file(request.task, attr["map_fd"])
    map = file.thing
    if not file.writable:
        raise LinuxError(EPERM, "the map is not written through this descriptor")
    map.check_written_by_process()
    if map.writers:
        raise LinuxError(EBUSY, "the map is mapped for writing")
    map.frozen = True
    return 0


# ---- many elements at once


def _batch(request: Request, attr: Attr) -> tuple[Map, int]:
    if attr["elem_flags"] & ~F_LOCK or attr["flags"]:
        raise LinuxError(EINVAL, f"elem_flags {attr['elem_flags']:#x}, flags {attr['flags']:#x}")
    map = map_file(request.task, attr["map_fd"]).thing
    if not map.has_batch:
        raise LinuxError(ENOTSUPP, f"{map.request.type.name} maps have no batches")
    _check_lock(attr["elem_flags"])
    return map, attr["count"]


def map_update_batch(bpf: Bpf, request: Request) -> Sleeping[int]:
    attr = request.fields(LAYOUTS[Cmd.MAP_UPDATE_BATCH])
    map = writable_map(request.task, attr["map_fd"])
    _batch(request, attr)
    mm, size, each, flags = request.task.mm, map.request.key_size, map.value_bytes, attr["elem_flags"]

    def update(index: int) -> None:
        key = mm.read(attr["keys"] + index * size, size)
        map.write(request.task, key, mm.read(attr["values"] + index * each, each), flags)

    return (yield from _one_by_one(request, attr, map, update))


def map_delete_batch(bpf: Bpf, request: Request) -> Sleeping[int]:
    attr = request.fields(LAYOUTS[Cmd.MAP_DELETE_BATCH])
    map = writable_map(request.task, attr["map_fd"])
    _batch(request, attr)
    mm, size = request.task.mm, map.request.key_size
    return (yield from _one_by_one(request, attr, map, lambda i: map.remove(mm.read(attr["keys"] + i * size, size))))


def _one_by_one(request: Request, attr: Attr, map: Map, change: Callable[[int], None]) -> Sleeping[int]:
    """`change` for each index. How many were changed is told, also where one fails."""
    done = 0
    map.retain()
    try:
        while done < attr["count"] and not request.task.signals.fatal():
            change(done)
            done += 1
            if not done % _PORTION:
                yield from work(_PORTION * _ELEMENT_CYCLES)
    finally:
        map.release()
        request.write_back(attr, "count", done)
    return 0


def map_lookup_batch(bpf: Bpf, request: Request) -> Sleeping[int]:
    return _read_batch(request, remove=False)


def map_lookup_and_delete_batch(bpf: Bpf, request: Request) -> Sleeping[int]:
    return _read_batch(request, remove=True)


def _read_batch(request: Request, *, remove: bool) -> Sleeping[int]:
    """From the element behind `in_batch` on; `out_batch` is where it goes on. ENOENT says that this was all.

    A position in a hash table is 4 bytes that say nothing to others: here how many elements were before it. In an
    array it is a key.
    """
    attr = request.fields(LAYOUTS[Cmd.MAP_LOOKUP_BATCH])
    map = readable_map(request.task, attr["map_fd"])
    if remove:
        writable_map(request.task, attr["map_fd"])
        if not isinstance(map, HashMap):
            raise LinuxError(ENOTSUPP, "elements of an array are not deleted")
    _batch(request, attr)
    mm = request.task.mm
    begin = struct.unpack("<I", mm.read(attr["in_batch"], 4))[0] if attr["in_batch"] else 0
    hashed = isinstance(map, HashMap)
    if not attr["count"]:
        return 0
    position = begin if hashed or not attr["in_batch"] else begin + 1
    done = 0
    map.retain()
    try:
        while keys := map.keys_from(position, min(attr["count"] - done, _PORTION)):
            for index, key in enumerate(keys, start=done):
                value = map.take(key) if remove else map.read(key)
                mm.write(attr["keys"] + index * len(key), key)
                mm.write(attr["values"] + index * len(value), value)
            done += len(keys)
            position += 0 if remove else len(keys)
            if done == attr["count"] or request.task.signals.fatal():
                break
            if len(keys) == _PORTION:
                yield from work(_PORTION * _ELEMENT_CYCLES)
        more = bool(map.keys_from(position, 1))
    finally:
        map.release()
    request.write_back(attr, "count", done)
    if more or done:
        mm.write(attr["out_batch"], struct.pack("<I", (position if hashed else position - 1) & 0xFFFF_FFFF))
    if not more:
        raise LinuxError(ENOENT, "that was all")
    return 0
