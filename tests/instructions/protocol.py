"""The runner: built for an ISA, started natively, under QEMU or as our guest, and spoken to.

It reads requests (a few bytes of code, a seed, which inputs) and answers with hashes of what became of registers and
memory, or with the states themselves: tests/instructions/runner. Inputs are generated within it, from the seed, so
that three thousand of them for each of some thousand forms cost no more than their execution.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

SOURCES = Path(__file__).with_name("runner")
FLAGS = ("-O2", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie",
         "-mgeneral-regs-only", "-fno-builtin", "-Wall", "-Wextra", "-Werror")  # fmt: skip

IGNORED = 3  # places of the state that a request can leave out; runner.h has the same
FAULT_WORDS = 4  # signal, si_code, si_addr, PC relative to the code
_REQUEST = struct.Struct("<24sIIQIIII" + "QQ" * IGNORED)
_HEADER = struct.Struct("<QQ")
_TIMEOUT = 900  # seconds


class Mode(IntEnum):
    HASHES, EACH, STATES = range(3)


@dataclass(frozen=True, slots=True)
class Layout:
    """The words of a state: a fault, registers, memory. `registers` names those between."""

    registers: tuple[str, ...]
    memory_words: int = 192

    @property
    def words(self) -> int:
        return FAULT_WORDS + len(self.registers) + self.memory_words

    @property
    def names(self) -> tuple[str, ...]:
        memory = tuple(f"memory+{8 * word:#x}" for word in range(self.memory_words))
        return ("signal", "si_code", "si_addr", "pc", *self.registers, *memory)

    def index(self, name: str) -> int:
        return self.names.index(name)


@dataclass(frozen=True, slots=True)
class Request:
    """`code` on `count` inputs from `first`. `ignored`: (word, bits) of the state that the second hash leaves out."""

    code: bytes
    kind: int
    seed: int
    slot: int
    first: int
    count: int
    ignored: tuple[tuple[int, int], ...] = ()

    def packed(self) -> bytes:
        assert len(self.ignored) <= IGNORED, f"{self.code.hex()}: more than {IGNORED} places are to be ignored"
        places = [*self.ignored, *[(0, 0)] * (IGNORED - len(self.ignored))]
        numbers = [number for place in places for number in place]
        return _REQUEST.pack(
            self.code, len(self.code), self.kind, self.seed, self.slot, self.first, self.count, 0, *numbers
        )


@dataclass(frozen=True, slots=True)
class Hashes:
    """Of all that became of a request's inputs: with everything, without what is ignored; how many faulted."""

    whole: int
    known: int
    faults: int


@dataclass(frozen=True, slots=True)
class States:
    """Before and after one input."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def build(isa: str, compiler: str, folder: Path) -> Path:
    """The runner for `isa`, as a static program."""
    program = folder / f"runner-{isa}"
    sources = [SOURCES / name for name in ("runner.c", "values.c", f"{isa}.c")]
    subprocess.run([compiler, *FLAGS, "-o", program, *sources], check=True)
    return program


@dataclass(frozen=True, slots=True)
class Runner:
    """A way to start the program: `command` is what stands before it, such as QEMU or perfemu."""

    program: Path
    layout: Layout
    command: tuple[str, ...] = ()
    environment: dict[str, str] | None = field(default=None)

    def hashes(self, requests: Sequence[Request]) -> list[Hashes]:
        answer = self._answer(Mode.HASHES, requests)
        return [Hashes(*each) for each in struct.iter_unpack("<QQQ", answer)]

    def each(self, requests: Sequence[Request]) -> Iterator[list[tuple[int, int]]]:
        """For every request, of every input: the two hashes."""
        pairs = struct.iter_unpack("<QQ", self._answer(Mode.EACH, requests))
        for request in requests:
            yield [next(pairs) for _ in range(request.count)]  # type: ignore[misc]

    def states(self, requests: Sequence[Request]) -> list[States]:
        """Of all inputs of all requests, in order."""
        words = self.layout.words
        answer = struct.iter_unpack(f"<{2 * words}Q", self._answer(Mode.STATES, requests))
        return [States(each[:words], each[words:]) for each in answer]

    def _answer(self, mode: Mode, requests: Sequence[Request]) -> bytes:
        if not requests:
            return b""
        question = _HEADER.pack(mode, len(requests)) + b"".join(request.packed() for request in requests)
        done = subprocess.run(
            [*self.command, str(self.program)],
            input=question, capture_output=True, timeout=_TIMEOUT, check=False, env=self.environment,
        )  # fmt: skip
        if done.returncode:
            said = done.stderr.decode(errors="replace")
            raise RuntimeError(f"{' '.join(self.command)} {self.program.name}: status {done.returncode}: {said}")
        return done.stdout
