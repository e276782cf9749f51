"""Which class is which type of map."""

from __future__ import annotations

from collections.abc import Mapping

from perfcore.abi.bpf import MapType
from perfcore.bpf.maps.array import ArrayMap, PercpuArrayMap
from perfcore.bpf.maps.hash import HashMap, LruHashMap, LruPercpuHashMap, PercpuHashMap
from perfcore.bpf.maps.map import Map
from perfcore.bpf.maps.perf_event_array import PerfEventArrayMap
from perfcore.bpf.maps.queue import QueueMap, StackMap
from perfcore.bpf.maps.ringbuf import RingbufMap
from perfcore.bpf.maps.stack_trace import StackTraceMap

MAP_KINDS: Mapping[MapType, type[Map]] = {
    MapType.HASH: HashMap,
    MapType.ARRAY: ArrayMap,
    MapType.PERF_EVENT_ARRAY: PerfEventArrayMap,
    MapType.PERCPU_HASH: PercpuHashMap,
    MapType.PERCPU_ARRAY: PercpuArrayMap,
    MapType.STACK_TRACE: StackTraceMap,
    MapType.LRU_HASH: LruHashMap,
    MapType.LRU_PERCPU_HASH: LruPercpuHashMap,
    MapType.QUEUE: QueueMap,
    MapType.STACK: StackMap,
    MapType.RINGBUF: RingbufMap,
}
"""Others are refused by name: PROG_ARRAY (tail calls), and those of networks, cgroups and storage."""
