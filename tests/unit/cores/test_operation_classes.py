"""A core file must have a row for each class that the decoder of its ISA can give an instruction, and for no other."""

from __future__ import annotations

import re

import pytest

from emulator.core_file.checks import ONLY_AARCH64, ONLY_X86_64, WITHOUT_ROW, classes_of
from emulator.op_classes import OpClass
from guests import DIRECTORY, ISAS

NATIVE = DIRECTORY.parent / "emulator" / "native"
DECODERS = {"aarch64": "aarch64/*", "x86_64": "x86_64/*"}
# DIV64 and MUL64 are never named for x86-64: they are the 32-bit ones and an operand's width
COMPUTED = {"aarch64": set(), "x86_64": {"DIV64", "MUL64"}}


@pytest.mark.parametrize("isa", ISAS)
def test_the_classes_of_an_isa_are_those_that_its_decoder_names(isa: str) -> None:
    named: set[str] = set()
    for file in NATIVE.glob(DECODERS[isa]):
        code = re.sub(r"//.*", "", file.read_text(encoding="utf-8"))
        named.update(re.findall(r"\b[A-Z][A-Z0-9_]+\b", code))
    given = named & set(OpClass.__members__) | COMPUTED[isa]
    assert given - WITHOUT_ROW == set(classes_of(isa))


def test_what_only_one_isa_has_is_a_class() -> None:
    assert ONLY_AARCH64 | ONLY_X86_64 <= set(OpClass.__members__)
    assert not ONLY_AARCH64 & ONLY_X86_64
