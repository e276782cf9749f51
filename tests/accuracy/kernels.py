"""Microkernels: loops whose time says one thing about a core each, from a table to machine code and its cycles."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from elftools.elf.elffile import ELFFile

from emulator._native import simulate

FOLDER = Path(__file__).parent
CHAIN_COPIES = 8
FEW, MANY = 400, 800  # iterations: by then the first misses are over on every core


@dataclass(frozen=True, slots=True)
class Language:
    """An ISA's assembly language."""

    isa: str
    assembler: str
    package: str  # Debian's, of the assembler
    header: str
    names: tuple[dict[str, str], ...]  # what {..} stands for, in each copy of a stream


_X86_GENERAL = ("rax eax al", "rbx ebx bl", "rdx edx dl", "rbp ebp bpl", "rsi esi sil", "rdi edi dil",
                "r14 r14d r14b", "r15 r15d r15b")  # fmt: skip
LANGUAGES = {
    "aarch64": Language(
        "aarch64",
        "aarch64-linux-gnu-as",
        "binutils-aarch64-linux-gnu",
        ".arch armv8-a+crypto+crc",
        tuple({"n": str(n)} for n in range(12)),
    ),
    "x86_64": Language(
        "x86_64",
        "x86_64-linux-gnu-as",
        "binutils-x86-64-linux-gnu",
        ".intel_syntax noprefix",
        tuple(dict(zip("reb", names.split(), strict=True)) | {"x": f"xmm{n}"} for n, names in enumerate(_X86_GENERAL)),
    ),
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """The body of an endless loop, in the assembler's language."""

    name: str  # group and name in the table: "chains/add"
    text: str
    copies: int  # of what the table says: cycles are given for one of them


def chain(text: str, copies: int) -> str:
    return "\n".join(text.split(";") * copies)


def stream(text: str, names: Sequence[Mapping[str, str]]) -> str:
    """A copy for each of `names`, in which ``{name}`` stands for something else."""
    lines = []
    for each in names:
        for line in text.split(";"):
            for name, value in each.items():
                line = line.replace(f"{{{name}}}", value)
            lines.append(line)
    return "\n".join(lines)


def kernels(isa: str) -> list[Kernel]:
    table = tomllib.loads((FOLDER / f"{isa}_kernels.toml").read_text(encoding="utf-8"))
    names = LANGUAGES[isa].names
    return [
        *(Kernel(f"chains/{name}", chain(text, CHAIN_COPIES), CHAIN_COPIES) for name, text in table["chains"].items()),
        *(Kernel(f"throughput/{name}", stream(text, names), len(names)) for name, text in table["throughput"].items()),
        *(Kernel(f"loops/{name}", text.replace(";", "\n"), 1) for name, text in table["loops"].items()),
    ]


def assemble(isa: str, texts: list[str], folder: Path) -> list[bytes]:
    """The machine code of each text."""
    source, target = folder / "kernels.s", folder / "kernels.o"
    language = LANGUAGES[isa]
    labelled = [f"kernel_{number}:\n{text}" for number, text in enumerate(texts)]
    source.write_text("\n".join([language.header, *labelled, "kernel_end:", ""]), encoding="utf-8")
    subprocess.run([language.assembler, source, "-o", target], check=True)
    with target.open("rb") as stream:
        file = ELFFile(stream)
        code = file.get_section_by_name(".text").data()
        symbols = {symbol.name: symbol["st_value"] for symbol in file.get_section_by_name(".symtab").iter_symbols()}
    starts = [symbols[f"kernel_{number}"] for number in range(len(texts))] + [symbols["kernel_end"]]
    return [code[start:end] for start, end in pairwise(starts)]


def cycles_per_iteration(isa: str, tables: dict[str, object], code: bytes) -> float:
    """Of code on a core with these tables, when it has been running for a while.

    All data accesses hit the first cache; the branch at the end is taken, others are not, all as predicted.
    """
    few, many = (simulate(isa, tables, code, iterations)["cycles"] for iterations in (FEW, MANY))
    return float(many - few) / (MANY - FEW)
