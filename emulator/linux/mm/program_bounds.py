"""ProgramBounds: where the parts of a program lie that execve mapped."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ProgramBounds:
    """Addresses as mm_struct has them, for /proc; an end is the first byte behind."""

    code_start: int = 0
    code_end: int = 0
    data_start: int = 0
    data_end: int = 0
    stack_start: int = 0  # the stack pointer at the program's start
    argument_start: int = 0
    argument_end: int = 0
    environment_start: int = 0
    environment_end: int = 0
    auxiliary_vector: bytes = b""
