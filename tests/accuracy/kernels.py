"""Microkernels: loops whose time says one thing about a core each, from a table to machine code and its cycles."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from elftools.elf.elffile import ELFFile

from emulator._native import simulate

FOLDER = Path(__file__).parent
ASSEMBLER = "aarch64-linux-gnu-as"  # Debian's package binutils-aarch64-linux-gnu
CHAIN_COPIES = 8
THROUGHPUT_COPIES = 12
FEW, MANY = 400, 800  # iterations: by then the first misses are over on every core


@dataclass(frozen=True, slots=True)
class Kernel:
    """The body of an endless loop, in the assembler's language."""

    name: str  # group and name in the table: "chains/add"
    text: str
    copies: int  # of what the table says: cycles are given for one of them


def chain(text: str, copies: int) -> str:
    return "\n".join(text.split(";") * copies)


def stream(text: str, copies: int) -> str:
    """Copies whose ``{n}`` is 0, 1, 2 ..."""
    return "\n".join(line.replace("{n}", str(n)) for n in range(copies) for line in text.split(";"))


def aarch64_kernels() -> list[Kernel]:
    table = tomllib.loads((FOLDER / "aarch64_kernels.toml").read_text(encoding="utf-8"))
    return [
        *(Kernel(f"chains/{name}", chain(text, CHAIN_COPIES), CHAIN_COPIES) for name, text in table["chains"].items()),
        *(
            Kernel(f"throughput/{name}", stream(text, THROUGHPUT_COPIES), THROUGHPUT_COPIES)
            for name, text in table["throughput"].items()
        ),
        *(Kernel(f"loops/{name}", text, 1) for name, text in table["loops"].items()),
    ]


def assemble(texts: list[str], folder: Path) -> list[bytes]:
    """The AArch64 machine code of each text."""
    source, target = folder / "kernels.s", folder / "kernels.o"
    labelled = [f"kernel_{number}:\n{text}" for number, text in enumerate(texts)]
    source.write_text(".arch armv8-a+crypto+crc\n" + "\n".join([*labelled, "kernel_end:", ""]), encoding="utf-8")
    subprocess.run([ASSEMBLER, source, "-o", target], check=True)
    with target.open("rb") as stream:
        file = ELFFile(stream)
        code = file.get_section_by_name(".text").data()
        symbols = {symbol.name: symbol["st_value"] for symbol in file.get_section_by_name(".symtab").iter_symbols()}
    starts = [symbols[f"kernel_{number}"] for number in range(len(texts))] + [symbols["kernel_end"]]
    return [code[start:end] for start, end in pairwise(starts)]


def cycles_per_iteration(tables: dict[str, object], code: bytes) -> float:
    """Of AArch64 code on a core with these tables, when it has been running for a while.

    All data accesses hit the first cache; the branch at the end is taken, others are not, all as predicted.
    """
    few, many = (simulate("aarch64", tables, code, iterations)["cycles"] for iterations in (FEW, MANY))
    return float(many - few) / (MANY - FEW)
