"""Addresses become the names that perf would show."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfemu.symbols.demangle import demangle
from perfemu.symbols.elf import ElfFile, ElfProblem
from perfemu.symbols.finder import SymbolFinder, build_id_of
from perfemu.symbols.table import Symbol, SymbolTable, with_ends, without_aliases
from synthetic_elf import FUNC, GLOBAL, LOCAL, NOTYPE, OBJECT, TEXT_OFFSET, WEAK, ElfSymbol, synthetic_elf


def names_at(path: Path, *offsets: int) -> list[str | None]:
    """What lies at these offsets of .text."""
    with ElfFile(str(path)) as elf:
        table = elf.symbol_table()
    found = [table.find(TEXT_OFFSET + offset) for offset in offsets]
    return [symbol.name if symbol else None for symbol in found]


def test_a_symbol_covers_its_bytes_and_no_more(tmp_path: Path) -> None:
    elf = synthetic_elf(tmp_path / "a", [ElfSymbol("f", 0x10, 0x10), ElfSymbol("g", 0x30, 8)])
    assert names_at(elf, 0x0F, 0x10, 0x1F, 0x20, 0x30, 0x37, 0x38) == [None, "f", "f", None, "g", "g", None]


@pytest.mark.parametrize("pie", [False, True])
def test_addresses_are_file_offsets_whatever_the_load_address(tmp_path: Path, pie: bool) -> None:
    elf = synthetic_elf(tmp_path / "a", [ElfSymbol("f", 0, 4)], pie=pie)
    assert names_at(elf, 0) == ["f"]


def test_a_symbol_without_size_ends_at_the_next(tmp_path: Path) -> None:
    elf = synthetic_elf(tmp_path / "a", [ElfSymbol("start", 0, 0, NOTYPE), ElfSymbol("f", 0x40, 8)])
    assert names_at(elf, 0x3F, 0x40) == ["start", "f"]


def test_the_last_symbol_without_size_ends_after_its_page() -> None:
    # start 0x1234 rounds up to the page 0x2000, and a page more
    assert with_ends([Symbol(0x1234, 0x1234, "f")])[0].end == 0x3000


@pytest.mark.parametrize(
    ("chosen", "other"),
    [
        (Symbol(0, 8, "a"), Symbol(0, 0, "sized_wins_over_a_longer_name")),
        (Symbol(0, 8, "__global", GLOBAL), Symbol(0, 8, "weak", WEAK)),
        (Symbol(0, 8, "_local", LOCAL), Symbol(0, 8, "weak", WEAK)),
        (Symbol(0, 8, "__global", GLOBAL), Symbol(0, 8, "local", LOCAL)),
        (Symbol(0, 8, "memcpy"), Symbol(0, 8, "__memcpy_longer")),
        (Symbol(0, 8, "longer"), Symbol(0, 8, "long")),
    ],
)
def test_one_name_of_several_is_chosen_as_perf_does(chosen: Symbol, other: Symbol) -> None:
    assert without_aliases([chosen, other]) == [chosen]
    assert without_aliases([other, chosen]) == [chosen]


def test_of_equal_names_the_first_stays() -> None:
    first, second = Symbol(0, 8, "abc"), Symbol(0, 8, "xyz")
    assert without_aliases([first, second]) == [first]


def test_an_enclosing_symbol_is_found_behind_nested_ones() -> None:
    table = SymbolTable([Symbol(0, 100, "outer"), Symbol(20, 30, "inner")])
    assert [table.find(at).name for at in (5, 25, 50)] == ["outer", "inner", "outer"]  # type: ignore[union-attr]


def test_what_is_no_place_is_left_out(tmp_path: Path) -> None:
    elf = synthetic_elf(
        tmp_path / "a",
        [
            ElfSymbol("undefined", 0, 8, section=0),
            ElfSymbol("absolute", 0, 8, section=0xFFF1),
            ElfSymbol("hidden_label", 0, 8, NOTYPE, visibility=2),
            ElfSymbol("section", 0, 8, 3),
            ElfSymbol("object", 0x20, 8, OBJECT),
        ],
    )
    assert names_at(elf, 0, 0x20) == [None, "object"]


def test_arm_mapping_symbols_are_no_names(tmp_path: Path) -> None:
    marks = [ElfSymbol("$x", 0, 0, NOTYPE, LOCAL), ElfSymbol("$d.12", 8, 0, NOTYPE, LOCAL)]
    elf = synthetic_elf(tmp_path / "a", [ElfSymbol("f", 0, 0x10), *marks], "aarch64")
    assert names_at(elf, 0, 8) == ["f", "f"]


@pytest.mark.parametrize(
    ("architecture", "first"),
    [("x86_64", 16), ("aarch64", 32)],  # bytes of the PLT's header
)
def test_plt_entries_are_named_by_their_relocations(tmp_path: Path, architecture: str, first: int) -> None:
    dynamic = [ElfSymbol("malloc", 0, 0, section=0), ElfSymbol("free", 0, 0, section=0)]
    elf = synthetic_elf(tmp_path / "a", [ElfSymbol("f", 0, 4)], architecture, dynamic, plt=(2, 1))
    names = names_at(elf, 0x800 + first - 1, 0x800 + first, 0x800 + first + 15, 0x800 + first + 16)
    assert names == [None, "free@plt", "free@plt", "malloc@plt"]


def test_a_stripped_library_has_its_dynamic_symbols(tmp_path: Path) -> None:
    elf = synthetic_elf(tmp_path / "a", dynamic_symbols=[ElfSymbol("api", 0, 8)])
    assert names_at(elf, 0) == ["api"]


def test_a_debug_file_with_the_same_build_id_has_the_symbols(tmp_path: Path) -> None:
    build_id = bytes(range(20))
    debug = tmp_path / "usr/lib/debug/.build-id/00/0102030405060708090a0b0c0d0e0f10111213.debug"
    debug.parent.mkdir(parents=True)
    synthetic_elf(debug, [ElfSymbol("inner", 0, 8, FUNC, LOCAL)], build_id=build_id)
    (tmp_path / "bin").mkdir()
    program = synthetic_elf(tmp_path / "bin/prog", dynamic_symbols=[ElfSymbol("api", 0, 8)], build_id=build_id)
    assert build_id_of(str(program)) == build_id
    for finder, path in ((SymbolFinder(symfs=str(tmp_path)), "/bin/prog"), (SymbolFinder(), str(program))):
        symbol = finder.symbol(path, TEXT_OFFSET)
        assert symbol is not None
        assert symbol.name == "inner"


def test_a_file_that_is_not_the_one_that_ran_has_no_symbols(tmp_path: Path) -> None:
    program = synthetic_elf(tmp_path / "prog", [ElfSymbol("f", 0, 8)], build_id=b"\1" * 20)
    complaints: list[str] = []
    finder = SymbolFinder(complain=complaints.append, known_build_ids={str(program): b"\2" * 20})
    assert finder.symbol(str(program), TEXT_OFFSET) is None
    assert len(complaints) == 1
    assert "02020202" in complaints[0]


def test_what_is_missing_or_no_elf_is_complained_of_once(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n")
    complaints: list[str] = []
    finder = SymbolFinder(complain=complaints.append)
    for path in (f"{tmp_path}/none", f"{tmp_path}/none", f"{tmp_path}/text", "[vdso]", "//anon"):
        assert finder.symbol(path, 0) is None
    assert len(complaints) == 2
    assert "No such file" in complaints[0]


def test_a_damaged_elf_is_a_problem_and_not_a_crash(tmp_path: Path) -> None:
    data = synthetic_elf(tmp_path / "a", [ElfSymbol("f", 0, 8)], dynamic_symbols=[ElfSymbol("g", 0, 8)]).read_bytes()
    damaged = tmp_path / "b"
    for at in (*range(120), *range(len(data) - 500, len(data), 3)):
        damaged.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
        try:
            with ElfFile(str(damaged)) as elf:
                elf.symbol_table()
        except ElfProblem as problem:
            assert str(problem)  # noqa: PT017  # both outcomes are right
    for size in range(0, len(data), 97):
        damaged.write_bytes(data[:size])
        try:
            with ElfFile(str(damaged)) as elf:
                elf.symbol_table()
        except ElfProblem as problem:
            assert str(problem)  # noqa: PT017


@pytest.mark.parametrize(
    ("mangled", "shown"),
    [
        ("main", "main"),
        ("_Znot_mangled", "_Znot_mangled"),
        ("_ZN2ns3BoxIlE4workERKSt6vectorIlSaIlEEm", "ns::Box<long>::work"),
        ("_Z3addIiET_S0_S0_", "add<int>"),
        ("_ZNKSt9exception4whatEv", "std::exception::what"),
        ("_ZN1AC1Ev", "A::A"),
        ("_ZN1AD0Ev", "A::~A"),
        ("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"),
        ("_ZTV1A", "vtable for A"),
        ("_ZN1r5inner4spin17h9338bf407b9d11a7E", "r::inner::spin"),
        ("_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE", "<&T as core::fmt::Debug>::fmt"),
    ],
)
def test_mangled_names_are_shown_without_parameters(mangled: str, shown: str) -> None:
    assert demangle(mangled) == shown
