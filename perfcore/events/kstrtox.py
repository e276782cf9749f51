"""Numbers in text as the kernel reads them, lib/kstrtox.c: kstrtoull and kstrtoll with base 0."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*)")
_MOST = (1 << 64) - 1


def unsigned(text: str) -> int | None:
    """0x for hexadecimal, 0 for octal digits; None where it is no number of 64 bits."""
    match = _NUMBER.fullmatch(text.removeprefix("+"))
    if match is None:
        return None
    number = int(match[0], 16 if match[1] else 8 if match[2] else 10)
    return number if number <= _MOST else None


def signed(text: str) -> int | None:
    """... with a sign, in 64 bits."""
    negative = text.startswith("-")
    number = unsigned(text[1:] if negative else text)
    if number is None or number > (_MOST >> 1) + negative:
        return None
    return -number if negative else number
