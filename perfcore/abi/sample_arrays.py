"""Samples as rows of a numpy array: many at once, where all that a sample holds is fixed words."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import RecordType
from perfcore.abi.sample import HEADER, SAMPLE_FIELDS

_WORDS = {"Q": "<u8", "I": "<u4"}
_FORMAT = re.compile(r"(\d+)x|([QI])")


def sample_dtype(attr: PerfEventAttr) -> np.dtype[Any] | None:
    """A whole PERF_RECORD_SAMPLE of `attr`, header (`type`, `misc`, `size`) included; fields are named as Sample's.

    None where samples differ in size: callchains, registers and the like.
    """
    return None if _variable(attr) else lead_dtype(attr)


def _variable(attr: PerfEventAttr) -> bool:
    return any(row.bit & attr.sample_type and row.encode is not None for row in SAMPLE_FIELDS)


def lead_dtype(attr: PerfEventAttr) -> np.dtype[Any]:
    """The part of those samples that is at the same place in all: up to the first field that differs in size."""
    names, formats, offsets = ["type", "misc", "size"], ["<u4", "<u2", "<u2"], [0, 4, 6]
    end = HEADER.size
    for row in SAMPLE_FIELDS:
        if not row.bit & attr.sample_type:
            continue
        if row.encode is not None:
            break
        fields = iter(row.names)
        for padding, word in _FORMAT.findall(row.format):
            if word:
                names.append(next(fields))
                formats.append(_WORDS[word])
                offsets.append(end)
            end += int(padding) if padding else struct.calcsize(word)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": end})


def empty_samples(attr: PerfEventAttr, count: int, misc: int) -> NDArray[Any]:
    """`count` samples of an event whose samples are of one size, zero but for their headers."""
    layout = sample_dtype(attr)
    if layout is None:
        raise ValueError(f"samples of sample_type {attr.sample_type:#x} differ in size")
    samples = np.zeros(count, layout)
    samples["type"] = int(RecordType.SAMPLE)
    samples["misc"] = misc
    samples["size"] = layout.itemsize
    return samples
