"""CPUs, nodes and memory of the recorded machine, as perf c2c wants to know them: features of perf.data. One node."""

from __future__ import annotations

import struct

from perfcore.perfdata.features import pack_string
from perfcore.perfdata.header import Feature

_U32 = struct.Struct("<I")
_BLOCK_BYTES = 128 << 20  # of memory, as Linux shows it in /sys/devices/system/memory
_MEMORY_VERSION = 1


def topology(cpus: int, memory_kb: int) -> dict[int, bytes]:
    """The features of a machine with one socket and one node."""
    everyone = "0" if cpus == 1 else f"0-{cpus - 1}"
    threads = b"".join(pack_string(str(cpu)) for cpu in range(cpus))
    return {
        Feature.CPU_TOPOLOGY: (
            _U32.pack(1) + pack_string(everyone) + _U32.pack(cpus) + threads
            + b"".join(struct.pack("<II", cpu, 0) for cpu in range(cpus))
        ),
        Feature.NUMA_TOPOLOGY: struct.pack("<IIQQ", 1, 0, memory_kb, memory_kb) + pack_string(everyone),
        Feature.MEM_TOPOLOGY: _memory(-(-memory_kb * 1024 // _BLOCK_BYTES)),
    }  # fmt: skip


def _memory(blocks: int) -> bytes:
    """Node 0 has all blocks: their number twice, as perf writes it, and a bit for each."""
    words = -(-blocks // 64)
    bits = ((1 << blocks) - 1).to_bytes(8 * words, "little")
    return struct.pack("<QQQQQQ", _MEMORY_VERSION, _BLOCK_BYTES, 1, 0, blocks, blocks) + bits
