"""Quantities as users write them: times, dates, sizes, ids. Of others ValueError says what is right."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from emulator.linux.process.credentials import NO_ID

SECOND_NS, MILLISECOND_NS = 1_000_000_000, 1_000_000
TIME_UNITS = {"s": SECOND_NS, "ms": MILLISECOND_NS, "us": 1_000, "ns": 1}
LEAST_MEMORY, MOST_MEMORY = 16 << 20, 64 << 30  # bytes
_TIME = re.compile(r"(.*?)\s*(ms|us|ns|s|)", re.DOTALL)
_SIZE = re.compile(r"(\d{1,12})([kKmMgG]?)i?[bB]?")
_USER = re.compile(r"([0-9]+)(?::([0-9]+))?")
_SIZE_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30}


def time_ns(text: str, bare_ns: int = SECOND_NS) -> int:
    """Nanoseconds of "2s", "1.5ms", or of a number alone, which counts in `bare_ns`."""
    match = _TIME.fullmatch(text)
    assert match is not None, "anything matches"
    try:
        nanoseconds = round(Decimal(match[1]) * TIME_UNITS.get(match[2], bare_ns))
    except (InvalidOperation, ValueError, OverflowError):
        raise ValueError(f"'{text}' is not a time: 2s, 1.5ms") from None
    if not 0 < nanoseconds < 1 << 62:
        raise ValueError(f"{text} is no time that could pass")
    return nanoseconds


def size_bytes(text: str) -> int:
    """Bytes of "512M", "8G"."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a size: 512M, 8G")
    return int(match[1]) << _SIZE_SHIFTS[match[2].upper()]


def memory_bytes(text: str) -> int:
    """... that a machine can have, in whole pages."""
    size = size_bytes(text)
    if not LEAST_MEMORY <= size <= MOST_MEMORY:
        raise ValueError(f"{text} is not within {LEAST_MEMORY >> 20}M..{MOST_MEMORY >> 30}G")
    return size & -4096


def user_ids(text: str) -> tuple[int, int]:
    """UID and GID of "1000:100"; of a number alone, which is both."""
    match = _USER.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is no user: UID or UID:GID, in numbers")
    uid, gid = int(match[1]), int(match[2] or match[1])
    if max(uid, gid) >= NO_ID:
        raise ValueError(f"{text}: ids are below {NO_ID}")
    return uid, gid


def date_ns(text: str) -> int:
    """Nanoseconds since 1970, UTC."""
    if text == "now":
        return time.time_ns()
    try:
        if text.startswith("@"):
            since_1970 = int(text[1:])
        else:
            when = datetime.fromisoformat(text)
            since_1970 = int((when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise ValueError(f"'{text}' is no date: 2026-11-20, 2026-11-20T09:30, @SECONDS, now") from None
    if not 0 <= since_1970 < 1 << 33:
        raise ValueError(f"{text} is not within 1970..2242")
    return since_1970 * SECOND_NS
