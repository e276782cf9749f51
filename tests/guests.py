"""The guest programs as tables for parametrized tests: name x ISA, or name x board, with what expected.toml says."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent.parent / "guest_programs"
ISAS = ("aarch64", "x86_64")
# Boards whose images are guest programs, too: what they execute, and the exit status where nothing is wrong
BOARDS = {"virt": ("aarch64", 0), "pc": ("x86_64", 1)}


@dataclass(frozen=True, slots=True)
class Guest:
    """One built guest program and what is expected of it. `counts` is by the names of emulator.probes.Probe."""

    name: str
    isa: str
    exit_status: int
    stdout: str
    counts: dict[str, int]

    @property
    def path(self) -> Path:
        return DIRECTORY / self.name / f"{self.isa}.elf"

    def __str__(self) -> str:
        return f"{self.name}-{self.isa}"


def guests() -> list[Guest]:
    """All of them, in alphabetical order."""
    found = []
    for file in sorted(DIRECTORY.glob("*/expected.toml")):
        for isa, expected in tomllib.loads(file.read_text(encoding="utf-8")).items():
            if isa not in ISAS:
                continue
            counts = {name: value for name, value in expected.items() if name.isupper()}
            found.append(Guest(file.parent.name, isa, expected["exit_status"], expected.get("stdout", ""), counts))
    return found


def guest(name: str, isa: str) -> Guest:
    return next(each for each in guests() if (each.name, each.isa) == (name, isa))


@dataclass(frozen=True, slots=True)
class BoardGuest:
    """A bare-metal image, and what is expected of it. `counts` is by level, "user" and "kernel", then as Guest's."""

    name: str
    board: str
    cpus: int
    stdout: str
    pmu: str | None  # instead of the core's
    changes: tuple[str, ...]  # of the core, as --set takes them
    not_by_qemu: str  # why that says something else; empty: it says the same
    counts: dict[str, dict[str, int]]

    @property
    def path(self) -> Path:
        return DIRECTORY / self.name / f"{self.board}.elf"

    @property
    def isa(self) -> str:
        return BOARDS[self.board][0]

    @property
    def exit_status(self) -> int:
        return BOARDS[self.board][1]

    def __str__(self) -> str:
        return f"{self.name}-{self.board}"


def board_guests() -> list[BoardGuest]:
    """All of them, in alphabetical order. They look for what is wrong themselves, and end with that."""
    found = []
    for file in sorted(DIRECTORY.glob("*/expected.toml")):
        for board, expected in tomllib.loads(file.read_text(encoding="utf-8")).items():
            if board in BOARDS:
                counts = {level: expected[level] for level in ("user", "kernel")}
                cpus, differs = expected.get("cpus", 1), expected.get("qemu", "")
                name, pmu, changes = file.parent.name, expected.get("pmu"), tuple(expected.get("set", ()))
                found.append(BoardGuest(name, board, cpus, expected["stdout"], pmu, changes, differs, counts))
    return found
