"""The corpus as rows of programs/*.toml, checked. What each key means is in `ROW`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debian import ARCHITECTURES

TABLES = Path(__file__).with_name("programs")
TIMEOUT_S = 180

ROW: Mapping[str, str] = {
    "packages": "Debian packages whose programs it is about",
    "run": "the program and its arguments; or:",
    "script": "what the interpreter is given with -c",
    "interpreter": "the shell of the script [sh]",
    "stdin": "a file of the working directory [/dev/null]",
    "files": "files that are made in the working directory, besides those of conformance.corpus.write_files",
    "inputs": "files of inputs/ that are copied there",
    "status": "the exit status, as a shell says it: 128 + n for signal n [0]",
    "isas": "where it runs [all]",
    "native": "why it is never compared with what the program does under qemu-user",
    "timeout_s": f"seconds of the host's, for each run [{TIMEOUT_S}]",
    "slow": "why it does not run every time, but under `make corpus`",
    "broken": "why it does not do here what it does on Linux; a text, or one for each ISA",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One program or script on one ISA."""

    family: str
    name: str
    isa: str
    packages: tuple[str, ...]
    argv: tuple[str, ...]
    stdin: str | None
    files: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    status: int
    native: str | None
    timeout_s: float
    slow: str | None
    broken: str | None

    def __str__(self) -> str:
        return f"{self.family}-{self.name}-{self.isa}"


def cases() -> list[Case]:
    """All of them, in the order of files and rows. ValueError names the row that is wrong."""
    found = []
    for table in sorted(TABLES.glob("*.toml")):
        for name, row in tomllib.loads(table.read_text(encoding="utf-8")).items():
            try:
                found += [_case(table.stem, name, row, isa) for isa in row.get("isas", ARCHITECTURES)]
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{table.name}: {name}: {error}") from error
    return found


def packages(chosen: Iterable[Case]) -> tuple[str, ...]:
    return tuple(sorted({package for case in chosen for package in case.packages}))


def _case(family: str, name: str, row: dict[str, Any], isa: str) -> Case:
    if unknown := row.keys() - ROW.keys():
        raise ValueError(f"unknown keys {', '.join(sorted(unknown))}; there are {', '.join(ROW)}")
    if ("run" in row) == ("script" in row):
        raise ValueError("wants either run or script")
    broken = row.get("broken")
    argv = row["run"] if "run" in row else [row.get("interpreter", "sh"), "-c", row["script"]]
    return Case(
        family=family,
        name=name,
        isa=isa,
        packages=tuple(row["packages"]),
        argv=tuple(argv),
        stdin=row.get("stdin"),
        files=tuple(row.get("files", {}).items()),
        inputs=tuple(row.get("inputs", ())),
        status=row.get("status", 0),
        native=row.get("native"),
        timeout_s=row.get("timeout_s", TIMEOUT_S),
        slow=row.get("slow"),
        broken=broken.get(isa) if isinstance(broken, dict) else broken,
    )
