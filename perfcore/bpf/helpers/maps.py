"""Helpers for maps, and those that call functions of the program."""

from __future__ import annotations

from emulator.linux.errors import E2BIG, EINVAL, ENOENT, LinuxError
from perfcore.bpf.helpers.helper import Arg, Returns, helper
from perfcore.bpf.maps.array import PercpuArrayMap
from perfcore.bpf.maps.hash import PercpuHashMap
from perfcore.bpf.maps.queue import QueueMap
from perfcore.bpf.maps.ringbuf import RingbufMap
from perfcore.bpf.run import Run

_MOST_LOOPS = 1 << 23  # BPF_MAX_LOOPS


def _key(run: Run, map: int, key: int) -> bytes:
    return run.memory.read(key, run.services.map_at(map).request.key_size)


@helper(1, Arg.MAP, Arg.KEY, returns=Returns.VALUE_OR_NULL)
def map_lookup_elem(run: Run, map: int, key: int) -> int:
    return run.services.map_at(map).lookup(_key(run, map, key))


@helper(2, Arg.MAP, Arg.KEY, Arg.VALUE, Arg.ANYTHING)
def map_update_elem(run: Run, map: int, key: int, value: int, flags: int) -> int:
    found = run.services.map_at(map)
    found.update(_key(run, map, key), run.memory.read(value, found.request.value_size), flags)
    return 0


@helper(3, Arg.MAP, Arg.KEY)
def map_delete_elem(run: Run, map: int, key: int) -> int:
    run.services.map_at(map).delete(_key(run, map, key))
    return 0


@helper(195, Arg.MAP, Arg.KEY, Arg.ANYTHING, returns=Returns.VALUE_OR_NULL)
def map_lookup_percpu_elem(run: Run, map: int, key: int, cpu: int) -> int:
    found = run.services.map_at(map)
    assert isinstance(found, PercpuArrayMap | PercpuHashMap), "no other kind names the helper"
    cpu &= 0xFFFF_FFFF
    return found.lookup_of_cpu(_key(run, map, key), cpu) if cpu < found.host.cpu_count else 0


@helper(87, Arg.MAP, Arg.VALUE, Arg.ANYTHING)
def map_push_elem(run: Run, map: int, value: int, flags: int) -> int:
    found = run.services.map_at(map)
    found.update(b"", run.memory.read(value, found.request.value_size), flags)
    return 0


@helper(88, Arg.MAP, Arg.UNINIT_VALUE)
def map_pop_elem(run: Run, map: int, value: int) -> int:
    return _out_of_queue(run, map, value, remove=True)


@helper(89, Arg.MAP, Arg.UNINIT_VALUE)
def map_peek_elem(run: Run, map: int, value: int) -> int:
    return _out_of_queue(run, map, value, remove=False)


def _out_of_queue(run: Run, map: int, value: int, *, remove: bool) -> int:
    """Zeroes where there is none."""
    found = run.services.map_at(map)
    assert isinstance(found, QueueMap), "no other kind names the helper"
    try:
        run.memory.write(value, found.take(b"") if remove else found.read(b""))
    except LinuxError as error:
        if error.code == ENOENT:
            run.memory.write(value, bytes(found.request.value_size))
        raise
    return 0


# ---- ring buffers


def _ringbuf(run: Run, map: int) -> RingbufMap:
    found = run.services.map_at(map)
    assert isinstance(found, RingbufMap), "no other kind names the helper"
    return found


@helper(130, Arg.MAP, Arg.MEM, Arg.SIZE_OR_ZERO, Arg.ANYTHING)
def ringbuf_output(run: Run, ringbuf: int, data: int, size: int, flags: int) -> int:
    _ringbuf(run, ringbuf).output(run.memory.read(data, size), flags)
    return 0


@helper(131, Arg.MAP, Arg.ALLOC_SIZE, Arg.ANYTHING, returns=Returns.RINGBUF_MEM_OR_NULL)
def ringbuf_reserve(run: Run, ringbuf: int, size: int, flags: int) -> int:
    if flags:
        return 0
    found = _ringbuf(run, ringbuf)
    address = found.reserve(size)
    if address:
        run.reserved[address] = found
        run.spend_for_bytes(size)  # that are copied when it is given back
    return address


@helper(132, Arg.RINGBUF_MEM, Arg.ANYTHING, returns=Returns.VOID)
def ringbuf_submit(run: Run, data: int, flags: int) -> int:
    _give_back(run, data, flags, discard=False)
    return 0


@helper(133, Arg.RINGBUF_MEM, Arg.ANYTHING, returns=Returns.VOID)
def ringbuf_discard(run: Run, data: int, flags: int) -> int:
    _give_back(run, data, flags, discard=True)
    return 0


def _give_back(run: Run, data: int, flags: int, *, discard: bool) -> None:
    run.reserved.pop(data).commit(data, flags, discard=discard)


@helper(134, Arg.MAP, Arg.ANYTHING)
def ringbuf_query(run: Run, ringbuf: int, flags: int) -> int:
    return _ringbuf(run, ringbuf).query(flags)


# ---- functions of the program


@helper(164, Arg.MAP, Arg.FUNC, Arg.CALLBACK_CTX, Arg.ANYTHING)
def for_each_map_elem(run: Run, map: int, callback_fn: int, callback_ctx: int, flags: int) -> int:
    """How many elements it was called for: all, or until it said 1."""
    if flags:
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    called = 0
    function = run.functions[callback_fn]
    found = run.services.map_at(map)
    run.spend(found.count)
    region = run.key_region(found.request.key_size)
    for key, value in found.elements():
        called += 1
        run.memory.write(region.address, key)
        if function(run, map, region.address, value, callback_ctx):
            break
    return called


@helper(181, Arg.ANYTHING, Arg.FUNC, Arg.CALLBACK_CTX, Arg.ANYTHING)
def loop(run: Run, nr_loops: int, callback_fn: int, callback_ctx: int, flags: int) -> int:
    if flags:
        raise LinuxError(EINVAL, f"flags {flags:#x}")
    count = nr_loops & 0xFFFF_FFFF
    if count > _MOST_LOOPS:
        raise LinuxError(E2BIG, f"{count} times")
    function = run.functions[callback_fn]
    for index in range(count):
        if function(run, index, callback_ctx):
            return index + 1
    return count
