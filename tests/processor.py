"""This host's processor, as the reference for what x86-64 instructions do."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# What manuals leave undefined differs between vendors, and the tests' expectations are those of these.
MEASURED_VENDORS = ("AuthenticAMD",)


def vendor() -> str:
    """As CPUID names it; empty where this is no x86-64 host."""
    if platform.machine() != "x86_64":
        return ""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id"))


@contextmanager
def as_reference() -> Iterator[None]:
    """Around a comparison with the processor. Where none of its vendor was at hand when the expectations were written,
    a difference is a skip that shows it: it may be a fault of ours, or a row that is missing."""
    if not (here := vendor()):
        pytest.skip(f"the reference is an x86-64 processor, and this is {platform.machine()}")
    try:
        yield
    except AssertionError as difference:
        if here in MEASURED_VENDORS:
            raise
        pytest.skip(f"{here} differs from {' and '.join(MEASURED_VENDORS)}, or we do: {difference}")
