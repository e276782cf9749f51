"""Commands on the ideal core: for counts and times that anybody can work out, and for what is not about cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Word = TypeVar("Word")


def on_ideal(command: Sequence[Word]) -> list[Word | str]:
    """Those that run programs get ``--core ideal``; a ``--core`` of the command's own comes later, and is taken."""
    if command and command[0] in ("run", "stat", "record", "diff"):
        return [command[0], "--core", "ideal", *command[1:]]
    return list(command)
