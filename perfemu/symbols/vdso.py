"""The file whose content [vdso] is in our machine, found without loading the machine: a report needs nothing of it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def vdso_file(isa: str) -> str:
    """Where emulator.linux.mm.vdso has it from; "" if there is none for the ISA."""
    machine = find_spec("emulator")
    if machine is None or machine.origin is None:
        return ""
    path = Path(machine.origin).parent / "linux" / "arch" / "vdso" / f"{isa}.elf"
    return str(path) if path.exists() else ""
