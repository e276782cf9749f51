"""Samples in what Arm's Statistical Profiling Extension writes: Arm ARM DDI 0487, "Sample Record Specification"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_END, _PADDING, _TIMESTAMP = 0x01, 0x00, 0x71
_SIZE_SHIFT, _SIZE_MASK = 4, 3  # of a header: log2 of the payload's bytes
_ADDRESS_KIND, _ADDRESS = 0xF8, 0xB0
_PC = 0xB0  # an address packet's header, of index 0
_CONTEXTS = (0x64, 0x65)
_ADDRESS_BITS, _LEVEL_SHIFT = 56, 61
_SIGN = 1 << _ADDRESS_BITS - 1


class SpeSample(NamedTuple):
    """One record, as far as it says where it was taken."""

    time: int  # of the counter of timestamps; 0: none was asked for
    context: int  # CONTEXTIDR_EL1: with CONFIG_PID_IN_CONTEXTIDR a thread; 0: none
    pc: int  # address
    level: int  # exception level


def spe_samples(data: bytes) -> Iterator[SpeSample]:
    """All records of a stretch that have an address. ValueError: what is no packet's, or ends within one."""
    at, context = 0, 0
    pc: tuple[int, int] | None = None
    while at < len(data):
        header = data[at]
        if header == _PADDING:
            at += 1
            continue
        size = 0 if header == _END else 1 << (header >> _SIZE_SHIFT & _SIZE_MASK)
        if at + 1 + size > len(data):
            raise ValueError(f"the packet {header:#x} at byte {at} ends behind the trace")
        payload = int.from_bytes(data[at + 1 : at + 1 + size], "little")
        at += 1 + size
        if header in (_END, _TIMESTAMP):
            if pc is not None:
                yield SpeSample(payload if header == _TIMESTAMP else 0, context, *pc)
            pc, context = None, 0
        elif header == _PC:
            address = payload & (1 << _ADDRESS_BITS) - 1
            pc = (address ^ _SIGN) - _SIGN & (1 << 64) - 1, payload >> _LEVEL_SHIFT & 3
        elif header in _CONTEXTS:
            context = payload
        elif not header & 0xC0:
            raise ValueError(f"{header:#x} at byte {at - 1 - size} is no packet's header")
