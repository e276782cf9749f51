"""Constants as strace shows them, held against those by which Linux's calls are modelled: two tables, one uapi."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import emulator.linux
from perfemu.tracing import constants, variants


def named(table: object) -> Iterator[tuple[int, str]]:
    """(number, name) of everything in a table of `constants`, which may be one of tables."""
    if isinstance(table, dict):
        for number, name in table.items():
            if isinstance(name, str):
                yield number, name
            else:
                yield from named(name)


def modelled() -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for module in pkgutil.walk_packages(emulator.linux.__path__, "emulator.linux."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if name.isupper() and isinstance(value, int):
                found.setdefault(name, set()).add(int(value))
    return found


def test_numbers_are_those_of_the_modelled_calls() -> None:
    ours = modelled()
    shown = [pair for name, table in vars(constants).items() if not name.startswith("__") for pair in named(table)]
    common = [(number, name) for number, name in shown if name in ours]
    assert len({name for _, name in common}) > 350
    assert not [(name, number, ours[name]) for number, name in common if ours[name] != {number}]


@pytest.mark.parametrize(
    ("names", "of"),
    [
        (variants._FCNTL_ARGUMENTS, constants.FCNTL),
        (variants._IOCTL_ARGUMENTS, constants.IOCTL),
        (variants._PRCTL_ARGUMENTS, constants.PRCTL),
        (variants._FUTEX_ARGUMENTS, constants.FUTEX),
    ],
)
def test_variants_are_of_commands_that_have_a_name(names: dict[str, object], of: constants.Names) -> None:
    assert names.keys() <= set(of.values())
