"""formats: one output format of `perfemu report` per file; the file's name is the format's.

A format is a module with SUMMARY, one line of help, and `write(report, output)`; with BINARY if `output` is for bytes,
with NEEDS_SAMPLES if there is no such file of a profile without any, with NEEDS_MOMENTS if it shows samples in time.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from types import ModuleType
from typing import BinaryIO, TextIO

from perfemu.profile.report import Report


@dataclass(frozen=True, slots=True)
class Format:
    """What such a module has."""

    name: str
    module: ModuleType

    @property
    def is_binary(self) -> bool:
        return getattr(self.module, "BINARY", False)

    @property
    def needs_samples(self) -> bool:
        return getattr(self.module, "NEEDS_SAMPLES", False)

    @property
    def needs_moments(self) -> bool:
        return getattr(self.module, "NEEDS_MOMENTS", False)

    def write(self, report: Report, text: TextIO, binary: BinaryIO) -> None:
        """To whichever of the two it is for: they are one file."""
        text.flush()
        self.module.write(report, binary if self.is_binary else text)
        binary.flush()


def format_names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def output_format(name: str) -> Format:
    """The format of this name; KeyError if there is none."""
    if name not in format_names():
        raise KeyError(name)
    return Format(name, importlib.import_module(f"{__name__}.{name}"))
