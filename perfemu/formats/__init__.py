"""formats: one output format of `perfemu report` per file; the file's name is the format's.

A format is a module with SUMMARY, one line of help, and `write(report, output)`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol, TextIO, cast

from perfemu.profile.report import Report


class Format(Protocol):
    """What such a module has."""

    SUMMARY: str

    def write(self, report: Report, output: TextIO) -> None: ...


def format_names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def output_format(name: str) -> Format:
    """The format of this name; KeyError if there is none."""
    if name not in format_names():
        raise KeyError(name)
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))
