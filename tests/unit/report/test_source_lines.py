"""Addresses become lines of the source, by DWARF 5 as the guest programs have it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import require
from perfemu.symbols.elf import ElfFile
from perfemu.symbols.finder import SymbolFinder
from perfemu.symbols.lines import SourceLines

GUEST = Path(__file__).parents[3] / "guest_programs" / "sort"


@pytest.mark.parametrize("isa", ["x86_64", "aarch64"])
@pytest.mark.parametrize("function", ["main", "quicksort"])
def test_a_function_starts_where_its_source_says(isa: str, function: str) -> None:
    path = str(GUEST / f"{isa}.elf")
    with ElfFile(path) as elf:
        start = next(symbol.start for symbol in elf.symbol_table().symbols if symbol.name == function)
    found = SymbolFinder().file(path).line(start)
    assert found is not None
    name, line = found
    assert name == "main.c"
    assert SymbolFinder().file(path).source(start) == ("guest_programs/sort/main.c", line)
    assert f"{function}(" in (GUEST / "main.c").read_text().splitlines()[line - 1]


@pytest.mark.parametrize("version", [4, 5])
def test_sources_have_the_directories_that_the_compiler_was_told(version: int, tmp_path: Path) -> None:
    """One beside the compiler's directory, one below it, one elsewhere."""
    compiler = require.command("gcc", package="gcc")
    directory = tmp_path / "project"
    other = tmp_path / "other"
    for place in (directory / "sub", other):
        place.mkdir(parents=True)
    main = '#include "beside.h"\n#include "far.h"\nint main() { return a() + b(); }\n'
    (directory / "sub" / "main.c").write_text(main)
    (directory / "sub" / "beside.h").write_text("int a() { return 1; }\n")
    (other / "far.h").write_text("int b() { return 2; }\n")
    command = [compiler, "-O0", f"-gdwarf-{version}", f"-I{other}", "-o", "../prog", "sub/main.c"]
    subprocess.run(command, cwd=directory, check=True)
    file = SymbolFinder().file(str(tmp_path / "prog"))
    starts = {symbol.name: symbol.start for symbol in file.table.symbols}
    assert file.source(starts["main"]) == (f"{directory}/sub/main.c", 3)
    assert file.source(starts["a"]) == (f"{directory}/sub/beside.h", 1)
    assert file.source(starts["b"]) == (f"{other}/far.h", 1)
    assert file.line(starts["b"]) == ("far.h", 1)


def test_a_function_is_where_it_says_and_not_where_what_it_inlines_begins(tmp_path: Path) -> None:
    """With -O1 the first instruction of main is the loop's, in the middle of spin."""
    (tmp_path / "spin.h").write_text(
        "static inline __attribute__((always_inline)) void spin(long n) {\n  for (volatile long i = n; i; i--);\n}\n"
    )
    (tmp_path / "main.c").write_text('#include "spin.h"\nint main() {\n  spin(1000);\n  return 0;\n}\n')
    compiler = require.command("gcc", package="gcc")
    subprocess.run([compiler, "-O1", "-g", "-o", "prog", "main.c"], cwd=tmp_path, check=True)
    file = SymbolFinder().file(str(tmp_path / "prog"))
    start = next(symbol.start for symbol in file.table.symbols if symbol.name == "main")
    assert file.source(start) == (f"{tmp_path}/spin.h", 2)
    assert file.source(start, as_function=True) == (f"{tmp_path}/main.c", 2)


def test_an_address_outside_the_program_has_no_line() -> None:
    lines = SourceLines(str(GUEST / "x86_64.elf"))
    assert lines.find(0) is None
    assert lines.find(1 << 62) is None


def test_a_file_without_dwarf_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no ELF file")
    assert SourceLines(str(tmp_path / "x")).find(0x1000) is None
    assert SourceLines(str(tmp_path / "none")).find(0x1000) is None


def test_damaged_dwarf_gives_lines_or_none(tmp_path: Path) -> None:
    data = (GUEST / "x86_64.elf").read_bytes()
    with ElfFile(str(GUEST / "x86_64.elf")) as elf:
        start = next(symbol.start for symbol in elf.symbol_table().symbols if symbol.name == "main")
        address = elf.address_of(start)
    assert address is not None
    at = data.index(b".debug_line\0")  # some offset; what counts is that all of the file's second half is tried
    damaged = tmp_path / "x"
    for offset in range(min(at, len(data) // 2), len(data), 61):
        damaged.write_bytes(data[:offset] + b"\xff" + data[offset + 1 :])
        found = SourceLines(str(damaged)).find(address)
        assert found is None or isinstance(found[1], int)
