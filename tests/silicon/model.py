"""Cycles of the same loops on a core of ours."""

from __future__ import annotations

from pathlib import Path

from elftools.elf.elffile import ELFFile

from emulator._native import simulate
from tests.silicon.measure import Loop

FEW, MANY = 10_000, 20_000  # iterations: by then the first misses are over


def bodies(program: Path, count: int) -> list[bytes]:
    """The machine code of each loop in the program that times them."""
    with program.open("rb") as stream:
        file = ELFFile(stream)
        text = file.get_section_by_name(".text")
        code, start = text.data(), text["sh_addr"]
        places = {
            symbol.name: symbol["st_value"] - start for symbol in file.get_section_by_name(".symtab").iter_symbols()
        }
    return [code[places[f"body_{number}"] : places[f"body_{number}_end"]] for number in range(count)]


def cycles(tables: dict[str, object], loop: Loop, code: bytes) -> float:
    addresses = list(loop.addresses) if loop.addresses is not None else None
    few, many = (simulate("x86_64", tables, code, count, addresses=addresses)["cycles"] for count in (FEW, MANY))
    return float(many - few) / (MANY - FEW)


def chase_cycles(tables: dict[str, object], size: int) -> float:
    """As measure.chase_cycles: every line once, in an order without a pattern, over and over."""
    lines = size // 64
    order = list(range(lines))
    random = 1
    for i in range(lines - 1, 0, -1):
        random = (random * 6364136223846793005 + 1442695040888963407) % 2**64
        other = (random >> 33) % i
        order[i], order[other] = order[other], order[i]
    addresses = [0x1000_0000 + 64 * line for line in order]
    load = bytes.fromhex("488b00")  # mov rax, [rax]
    few, many = (simulate("x86_64", tables, load, count * lines, addresses=[addresses])["cycles"] for count in (2, 4))
    return float(many - few) / (2 * lines)
