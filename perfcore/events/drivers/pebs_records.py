"""PEBS records as software reads them: struct pebs_record_skl, and the groups of adaptive ones.

As arch/x86/events/intel/ds.c; Intel SDM volume 3, "PEBS Record Format".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pmu.intel.pebs_registers import MSR_PEBS_DATA_CFG

_FIXED = struct.Struct("<25Q")
_BASIC = struct.Struct("<4Q")
_MEMORY = struct.Struct("<4Q")
_GPRS = struct.Struct("<18Q")
_VECTORS = struct.Struct("<32Q")
_XMM_BYTES = _VECTORS.size
_BRANCH = struct.Struct("<3Q")
FIXED_BYTES = _FIXED.size
# bits of attr.sample_regs_intr (uapi/asm/perf_regs.h): AX BX CX DX SI DI BP SP IP FLAGS, 16 R8 and up, 32 XMM0 and up
_IP, _FLAGS, _R8, _XMM0 = 8, 9, 16, 32
_FIXED_ORDER = (_FLAGS, _IP, 0, 1, 2, 3, 4, 5, 6, 7, *range(_R8, _R8 + 8))
_ADAPTIVE_ORDER = (_FLAGS, _IP, 0, 2, 3, 1, 7, 6, 4, 5, *range(_R8, _R8 + 8))
_VECTORS_ORDER = tuple(range(_XMM0, _XMM0 + 32))
GENERAL = sum(1 << bit for bit in _FIXED_ORDER)  # PEBS_GP_REGS, and FLAGS and IP
_CONFIG = (1 << 48) - 1
_SIZE_SHIFT = 48
_ENTRIES = MSR_PEBS_DATA_CFG.LBR_ENTRIES
MOST_GROUPS = MSR_PEBS_DATA_CFG.declared


class PebsRecord(NamedTuple):
    """One. Parts that it has not are 0 or None."""

    applicable: int  # mask of the counters whose overflow it is of
    ip: int  # of the instruction that made it
    next_ip: int | None  # where execution went on
    tsc: int
    address: int
    source: int
    latency: int  # cycles of a load from issue to its data
    instruction_latency: int  # ... from dispatch, where that is known, too
    words: tuple[int, ...]  # of registers
    order: tuple[int, ...]  # which those are, by bit of sample_regs_intr
    branches: tuple[tuple[int, int, int], ...] | None  # from, to, info; the newest first

    @property
    def registers(self) -> dict[int, int]:
        """By bit of sample_regs_intr."""
        return dict(zip(self.order, self.words, strict=True))


def bytes_of(config: int) -> int:
    """Of an adaptive record with these groups."""
    size = _BASIC.size
    size += _MEMORY.size if config & MSR_PEBS_DATA_CFG.MEMORY.mask else 0
    size += _GPRS.size if config & MSR_PEBS_DATA_CFG.GPR.mask else 0
    size += _XMM_BYTES if config & MSR_PEBS_DATA_CFG.XMM.mask else 0
    if config & MSR_PEBS_DATA_CFG.LBR.mask:
        size += _BRANCH.size * (((config & _ENTRIES.mask) >> _ENTRIES.lo) + 1)
    return size


def fixed_records(data: bytes) -> Iterator[PebsRecord]:
    """Of format 3."""
    general = len(_FIXED_ORDER)
    for words in _FIXED.iter_unpack(data):
        applicable, address, source, latency, ip, _, tsc = words[general:]
        yield PebsRecord(
            applicable, ip, words[1], tsc, address, source, latency, 0, words[:general], _FIXED_ORDER, None
        )


def adaptive_records(data: bytes) -> Iterator[PebsRecord]:
    """Of format 4."""
    at = 0
    while at < len(data):
        format_size, ip, applicable, tsc = _BASIC.unpack_from(data, at)
        config, end = format_size & _CONFIG, at + (format_size >> _SIZE_SHIFT)
        assert end - at == bytes_of(config), f"a record of groups {config:#x} has {end - at} bytes"
        at += _BASIC.size
        address = source = latency = instruction_latency = 0
        next_ip, branches = None, None
        words: tuple[int, ...] = ()
        order: tuple[int, ...] = ()
        if config & MSR_PEBS_DATA_CFG.MEMORY.mask:
            address, source, latencies, _ = _MEMORY.unpack_from(data, at)
            instruction_latency, latency = latencies & 0xFFFF, latencies >> 32 & 0xFFFF
            at += _MEMORY.size
        if config & MSR_PEBS_DATA_CFG.GPR.mask:
            words, order = _GPRS.unpack_from(data, at), _ADAPTIVE_ORDER
            next_ip = words[1]
            at += _GPRS.size
        if config & MSR_PEBS_DATA_CFG.XMM.mask:
            words, order = words + _VECTORS.unpack_from(data, at), order + _VECTORS_ORDER
            at += _XMM_BYTES
        if config & MSR_PEBS_DATA_CFG.LBR.mask:
            branches = tuple(_BRANCH.iter_unpack(data[at:end]))
        at = end
        yield PebsRecord(
            applicable, ip, next_ip, tsc, address, source, latency, instruction_latency, words, order, branches
        )
