"""Mutations of a checkpoint's file: its state is another one, and its digest is right again."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from emulator._native import PAGE_SIZE
from perfemu.checkpoint_file import HEAD, MAGIC

MOST_CHANGES = (1, 1, 1, 2, 5)
VALUES: tuple[object, ...] = (
    -1, 0, 1, 2, 255, 256, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), 1 << 1100, "", "x", None,
    True, False, [], {}, ["list"], ["tuple"], ["bytes", "zz"], ["bytes"], ["bytes", 5], ["dict", ["list", 1], ["list"]],
    ["dict", ["list", ["list"]], ["list", 1]], 1.5, float("nan"), ["list", [[[]]]], ["__import__", "os"],
)  # fmt: skip
BYTES = b"\xff" * 8, b"\0" * 8, b"\xff" * 4 + b"\0" * 4, b"\0" * 7 + b"\x80"
OFFSETS = -1, 1, 7, 1 << 20, 1 << 40, -(1 << 40)
HEAD_BYTES = len(MAGIC) + HEAD.size

Path = tuple[str | int, ...]


class Original:
    """A checkpoint's file as it was written."""

    def __init__(self, whole: bytes) -> None:
        size, _ = HEAD.unpack(whole[len(MAGIC) : HEAD_BYTES])
        line, _, self.native = whole[HEAD_BYTES : HEAD_BYTES + size].partition(b"\n")
        self.says = json.loads(line)
        self._ram = whole[_behind(HEAD_BYTES + size) :]
        self._paths = list(_paths(self.says))

    def mutated(self, random: Random, native: bool) -> bytes:
        """In the native parts, or in those that are said in JSON."""
        says, parts = copy.deepcopy(self.says), bytearray(self.native)
        for _ in range(random.choice(MOST_CHANGES)):
            if native:
                _change_bytes(random, parts)
            else:
                self._change_value(random, says)
        return self._file(json.dumps(says, separators=(",", ":")).encode() + b"\n" + parts)

    def _file(self, description: bytes) -> bytes:
        file = MAGIC + HEAD.pack(len(description), hashlib.sha256(description).digest()) + description
        return file.ljust(_behind(len(file)), b"\0") + self._ram

    def _change_value(self, random: Random, says: Any) -> None:
        *to, last = random.choice(self._paths)
        at = says
        try:
            for each in to:
                at = at[each]
            at[last] = _other(random, at[last])
        except (KeyError, IndexError, TypeError):  # an earlier change has taken it away
            return


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from _paths(each, (*path, key))


def _other(random: Random, old: Any) -> object:
    if random.random() < 0.3:
        if isinstance(old, int):
            return old + random.choice(OFFSETS)
        if isinstance(old, list) and old:
            return random.choice([old[:-1], [*old, old[-1]], old * 2, old[::-1]])
        if isinstance(old, str):
            return random.choice([old[:-1], old + "0", old * 3])
    return random.choice(VALUES)


def _change_bytes(random: Random, parts: bytearray) -> None:
    at = random.randrange(len(parts) if random.random() < 0.5 else min(len(parts), 4000))
    kind = random.random()
    if kind < 0.5:
        parts[at] ^= 1 << random.randrange(8)
    elif kind < 0.8:
        parts[at] = random.choice((0, 255, 127, 128))
    else:
        parts[at : at + 8] = random.choice(BYTES)[: len(parts) - at]


def _behind(size: int) -> int:
    return -(-size // PAGE_SIZE) * PAGE_SIZE
