"""What Linux, the loader and the profiler must know about an ISA: one file each."""

from __future__ import annotations

from emulator.linux.arch.aarch64 import AArch64
from emulator.linux.arch.architecture import Architecture
from emulator.linux.arch.x86_64 import X86_64

_ARCHITECTURES: dict[str, Architecture] = {"aarch64": AArch64(), "x86_64": X86_64()}


def architecture(isa: str) -> Architecture:
    """The architecture named "aarch64" or "x86_64"."""
    found = _ARCHITECTURES.get(isa)
    if found is None:
        raise ValueError(f"{isa}: no such ISA; there are {', '.join(_ARCHITECTURES)}")
    return found
