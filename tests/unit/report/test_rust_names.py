"""Rust's v0 names, by hand from RFC 2603, and at random against binutils."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

import require
from perfemu.symbols.demangle import demangle
from perfemu.symbols.rust import demangle_v0
from real_perf import RealPerf
from synthetic_elf import TEXT_OFFSET, ElfSymbol, synthetic_elf
from synthetic_perf_data import Recording, event
from unit.report.rust_names import RustName

# Derived from the grammar: C crate, N path, M and X impls, Y trait, I generics, B back to an offset behind "_R".
BY_HAND = {
    "_RC5crate": "crate",
    "_RNvC5crate4main": "crate::main",
    "_RNvCs1234_5crate4main": "crate::main",  # the crate's hash is left out, as perf does
    "_RNvNtC5crate5inner4spin": "crate::inner::spin",
    "_RNvC3foo3_1ab": "foo::1ab",  # an underscore where the name begins with a digit
    "_RNCNvC5crate4main0": "crate::main::{closure#0}",
    "_RNCNvC5crate4mains_0": "crate::main::{closure#1}",
    "_RNCNvC5crate4mains0_3abc": "crate::main::{closure:abc#2}",
    "_RNSNvC5crate4main5clone": "crate::main::{shim:clone#0}",
    "_RMC5cratej": "<usize>",
    "_RNvMs_C5crateNtB2_4Type3new": None,  # a reference to the middle of a name
    "_RNvMs_C5crateNtB4_4Type3new": "<crate::Type>::new",  # B4_: 5 characters behind _R is the crate
    "_RNvXC5cratehNtC3std5Clone5clone": "<u8 as std::Clone>::clone",
    "_RNvYhNtC3std5Clone5clone": "<u8 as std::Clone>::clone",
    "_RINvC5crate3maxlE": "crate::max::<i32>",
    "_RINvC5crate3maxINtC3std3VechEE": "crate::max::<std::Vec<u8>>",
    "_RINvC5crate3maxlEC4user": "crate::max::<i32>",  # instantiated for another crate
    "_RINvC5crate1fAhj3_E": "crate::f::<[u8; 3]>",
    "_RINvC5crate1fShTEThETjbEE": "crate::f::<[u8], (), (u8,), (usize, bool)>",
    "_RINvC5crate1fReQxPuOzE": "crate::f::<&str, &mut i64, *const (), *mut !>",
    "_RINvC5crate1fFUKChEuE": 'crate::f::<unsafe extern "C" fn(u8)>',
    "_RINvC5crate1fFG_RL0_hEBe_E": "crate::f::<for<'a> fn(&'a u8) -> &'a u8>",
    "_RINvC5crate1fDNtC3std2FnEL_E": "crate::f::<dyn std::Fn>",
    "_RINvC5crate1fDINtC3std2FnhEp6OutputjEL_E": "crate::f::<dyn std::Fn<u8, Output = usize>>",
    "_RINvC5crate1fKb1_Kc61_KlnffKpE": None,  # a number without its end
    "_RINvC5crate1fKb1_Kc61_Klnff_KpE": "crate::f::<true, 'a', -255, _>",
    "_RNvC5crateu8gdel_5qa": "crate::gödel",
    "_RNvC5crate4main.llvm.123": "crate::main",
    "_R": None, "_Rn": None, "_R0C5crate": None, "_RNvC5crate4mai": None, "_RNvC5crate4mainx": None,
    "_RB_": None, "_RNvB0_1a": None,  # to itself
}  # fmt: skip


@pytest.mark.parametrize("mangled", BY_HAND)
def test_names_by_hand(mangled: str) -> None:
    assert demangle_v0(mangled) == BY_HAND[mangled]
    assert demangle(mangled) == (BY_HAND[mangled] or mangled)


def test_random_names_as_binutils_shows_them() -> None:
    filt = require.command("c++filt", package="binutils")
    names = [name for name in (RustName(seed).text for seed in range(3000)) if len(name) < 1500]
    assert len(names) > 2500
    done = subprocess.run([filt, "--no-verbose"], input="\n".join(names), capture_output=True, text=True, check=True)
    shown = done.stdout.splitlines()
    assert sum(text != name for text, name in zip(shown, names, strict=True)) > 2500
    for name, text in zip(names, shown, strict=True):
        assert demangle(name) == text


def test_the_real_perf_shows_the_same(tmp_path: Path) -> None:
    names = [name for name, shown in BY_HAND.items() if shown and "\u00f6" not in shown]
    elf = synthetic_elf(tmp_path / "prog", [ElfSymbol(name, 16 * number, 16) for number, name in enumerate(names)])
    made = Recording([event()])
    made.start(elf, 0x1000, "prog", 0x401000, TEXT_OFFSET)
    for number in range(len(names)):
        made.sample(0x401000 + 16 * number, period=1000 - number)
    lines = RealPerf(tmp_path).report(made.write(tmp_path / "data"), "-q", "-s", "sym")
    assert [line.partition("[.] ")[2].rstrip() for line in lines] == [BY_HAND[name] for name in names]


def test_names_that_nobody_should_demangle() -> None:
    """Each reference stands for twice what the one before does; and damage at random."""
    text = "_RIC1a"
    places = [len(text) - 2]
    for _ in range(60):
        places.append(len(text) - 2)
        text += f"TB{places[-2]}_B{places[-2]}_E"
    assert demangle_v0(text + "E") is None
    assert demangle_v0("_R" + "NvC1a1b"[:2] * 5000) is None
    chance = Random(1)
    for seed in range(1500):
        name = list(RustName(seed).text[:400])
        name[chance.randrange(2, len(name))] = chance.choice("_0129azAEBNIKLTDFG")
        demangle_v0("".join(name))
