"""The corpus of real programs as a table, and the files that they work on."""

from __future__ import annotations

import bz2
import gzip
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from debian import ARCHITECTURES

TABLE = Path(__file__).with_name("corpus.toml")
CHANGED_S = 1_600_000_000  # when all files changed, seconds since 1970
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C",
    "TZ": "UTC",
    "GLIBC_TUNABLES": "glibc.pthread.rseq=0",  # qemu-user refuses rseq, this kernel does not
}


@dataclass(frozen=True, slots=True)
class Case:
    """One run of one program."""

    name: str
    isa: str
    package: str
    file: str  # within the package
    arguments: tuple[str, ...]
    stdin: str | None  # a file of the working directory

    def __str__(self) -> str:
        return f"{Path(self.file).name}-{self.name}-{self.isa}"


@dataclass(frozen=True, slots=True)
class Difference:
    """Functions whose counts may differ from qemu-user's in some runs, and why."""

    runs: str  # pattern of the whole of a case's name
    functions: tuple[str, ...]  # patterns of the whole of `file:function`
    because: str

    def covers(self, case: Case, function: str) -> bool:
        return bool(re.fullmatch(self.runs, str(case)) and re.fullmatch("|".join(self.functions), function))


def cases() -> list[Case]:
    """All runs of all programs for both ISAs, in the table's order."""
    found = []
    for program in tomllib.loads(TABLE.read_text(encoding="utf-8"))["program"]:
        for name, run in program["runs"].items():
            arguments, stdin = (run["arguments"], run["stdin"]) if isinstance(run, dict) else (run, None)
            found += [
                Case(name, isa, program["package"], program["file"], tuple(arguments), stdin) for isa in ARCHITECTURES
            ]
    return found


def differences() -> list[Difference]:
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["difference"]
    return [Difference(row["runs"], tuple(row["functions"]), row["because"]) for row in rows]


def write_files(directory: Path) -> None:
    """Make `directory` with the files that the programs read: the same on every machine."""
    directory.mkdir()
    state = 88172645463325252
    words = []
    for _ in range(3000):
        state ^= state << 13 & (1 << 64) - 1
        state ^= state >> 7
        state ^= state << 17 & (1 << 64) - 1
        words.append("".join("aeioulnrst"[state >> shift & 7] for shift in range(0, 3 * (2 + state % 7), 3)))
    lines = [" ".join(words[n : n + 7]) for n in range(0, 2800, 7)]
    text = ("\n".join(lines) + "\n").encode()
    (directory / "text.txt").write_bytes(text)
    (directory / "text.gz").write_bytes(gzip.compress(text, mtime=0))
    (directory / "text.bz2").write_bytes(bz2.compress(text))
    (directory / "one").mkdir()
    (directory / "one" / "only.txt").write_bytes(b"1\n")
    (directory / "numbers.txt").write_text("".join(f"{n * 7919 % 1009 // 3}\n" for n in range(300)))
    for path in (*directory.rglob("*"), directory):
        os.utime(path, (CHANGED_S, CHANGED_S))
