"""Refusal: why the verifier does not take a program."""

from __future__ import annotations

from emulator.linux.errors import EACCES, EINVAL


class Refusal(Exception):
    """`code` is what bpf(2) fails with, `why` the last line of the log."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


def malformed(why: str) -> Refusal:
    """No program can be so."""
    return Refusal(EINVAL, why)


def unsafe(why: str) -> Refusal:
    """It might touch what is not its own, or be read as what it is not."""
    return Refusal(EACCES, why)
