"""What is tested: forms of instructions, each with some encodings of it."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass

from tests.instructions.protocol import Request


@dataclass(frozen=True, slots=True)
class Encoding:
    """`code` with certain registers and immediates; `kind` tells the runner which inputs suit it."""

    code: bytes
    kind: int = 0


@dataclass(frozen=True, slots=True)
class Form:
    """`name` is the disassembler's, with kinds of operands for operands: ``addps xmm, m128``."""

    name: str
    encodings: tuple[Encoding, ...]

    @property
    def seed(self) -> int:
        return zlib.crc32(self.name.encode()) << 32

    def some(self, most: int) -> tuple[Encoding, ...]:
        """At most so many encodings, always the same ones."""
        if len(self.encodings) <= most:
            return self.encodings
        return tuple(random.Random(self.name).sample(self.encodings, most))


@dataclass(frozen=True, slots=True)
class Case:
    """An encoding of a form on some inputs, in a place of its own."""

    form: Form
    encoding: Encoding
    slot: int
    inputs: int

    def request(self, ignored: tuple[tuple[int, int], ...] = (), first: int = 0, count: int | None = None) -> Request:
        seed = self.form.seed ^ zlib.crc32(self.encoding.code)
        return Request(
            self.encoding.code, self.encoding.kind, seed, self.slot, first,
            self.inputs if count is None else count, ignored,
        )  # fmt: skip


def cases(forms: list[Form], inputs: int, encodings: int) -> list[Case]:
    """Every form on `inputs` inputs at least, spread over at most `encodings` encodings of it."""
    chosen = [
        (form, each, -(-inputs // len(some))) for form in forms for some in [form.some(encodings)] for each in some
    ]
    return [Case(form, encoding, slot, count) for slot, (form, encoding, count) in enumerate(chosen)]
