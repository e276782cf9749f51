"""The guest programs as tables for parametrized tests: name x ISA, with what expected.toml says."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

DIRECTORY = Path(__file__).resolve().parent.parent / "guest_programs"
ISAS = ("aarch64", "x86_64")


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
            counts = {name: value for name, value in expected.items() if name.isupper()}
            found.append(Guest(file.parent.name, isa, expected["exit_status"], expected.get("stdout", ""), counts))
    return found


def guest(name: str, isa: str) -> Guest:
    return next(each for each in guests() if (each.name, each.isa) == (name, isa))
