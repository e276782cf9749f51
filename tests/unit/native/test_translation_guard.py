"""x86 code on which the engine's translator would corrupt its memory or abort: it runs, or it is undefined.

Every case runs in a process of its own, because what it must not do is end it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.cpu import ExceptionKind, ExitReason
from emulator.probes import Probe
from tests.unit.native.bare import CODE, PC, Bare

PAGE = 4096
SYSCALL = b"\x0f\x05"
NOP = b"\x90"
# Repeated through a page, each leaves more temporaries behind than the translator has room for.
DENSE = {
    "x87 moves and arithmetic": "d9c9 dcc1 d8c1 dec1 ddd8",
    "x87 constants": "d9e8 d9fa",
    "pshufd": "660f70c01b",
    "shufps": "0fc6c11b",
    "pcmpistri, two temporaries": "660f3a63c118",
    "aeskeygenassist": "660f3adfc101",
}
BIT_TESTS = ["0fa3c8", "0fabc8", "0fb3c8", "0fbbc8", "0fbae007", "0fbae807", "0fbaf007", "0fbaf807"]
PREFIXES = ["f0", "f066", "66f0", "f048", "f2f0", "f0f3", "48f0", "2ef041"]
# Legal and illegal LOCK; of the latter, the engine itself finds only some.
LOCKED = {"f04801c8": False, "f089c8": False, "f087c1": False, "f0660fc1c8": False, "f0ffc0": False, "f08b01": False}
LOCKED |= {"f0480107": True, "f0ff07": True, "f08707": True, "f00fba2f07": True, "f00fab07": True, "f0480fc70f": True}


def in_a_process(case: str, *arguments: str) -> None:
    here = Path(__file__).resolve()
    command = f"from tests.unit.native.test_translation_guard import {case}; {case}(*{arguments!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=here.parents[3], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{arguments}: {done.returncode} {done.stderr[-2000:]}"


def run_from(bare: Bare, offset: int) -> tuple[ExitReason, int]:
    """Why it stops, and how many instructions have retired."""
    before = bare.total(Probe.INST_RETIRED)
    bare.core.write_register(PC["x86_64"], CODE + offset)
    reason = bare.run(before + 10_000)
    return reason, bare.total(Probe.INST_RETIRED) - before


def dense_code(pattern: str) -> None:
    instructions = [bytes.fromhex(word) for word in pattern.split()]
    unit = b"".join(instructions)
    repeats = (2 * PAGE - 100) // len(unit)
    bare = Bare.load("x86_64", unit * repeats + SYSCALL)
    for first in (0, 1, repeats // 3, repeats - 1):
        # from the start of a unit: all that follows, and SYSCALL
        expected = (repeats - first) * len(instructions) + 1
        assert run_from(bare, first * len(unit)) == (ExitReason.SYSCALL, expected)
    for offset in range(1, 16):  # into an instruction's middle: whatever that is, it ends
        run_from(bare, offset)


@pytest.mark.parametrize("pattern", DENSE.values(), ids=DENSE.keys())
def test_dense_code_that_leaves_temporaries_behind(pattern: str) -> None:
    in_a_process("dense_code", pattern)


def locked_bit_tests(prefix: str) -> None:
    for bit_test in BIT_TESTS:
        for before in (0, 1, 14, 15, 16, 40, 300, PAGE - 1, PAGE - 2):
            code = NOP * before + bytes.fromhex(prefix + bit_test) + SYSCALL
            bare = Bare.load("x86_64", code)
            for entry in {0, before // 2, before}:
                assert run_from(bare, entry) == (ExitReason.EXCEPTION, before - entry), (bit_test, before, entry)
                assert bare.core.exception == ExceptionKind.UNDEFINED
                assert bare.core.pc == CODE + before
            # behind the prefixes it is a legal instruction
            assert run_from(bare, before + len(prefix) // 2) == (ExitReason.SYSCALL, 2)
            assert bare.space.read(CODE, len(code)) == code  # nothing is left of what the translator was shown


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_locked_bit_test_of_a_register_is_undefined(prefix: str) -> None:
    in_a_process("locked_bit_tests", prefix)


def looks_locked() -> None:
    """The bytes lie in an immediate, which must arrive unchanged, wherever the block starts; and in data behind it."""
    immediate = "48b8f00fbae007f00fab"  # mov rax, imm64
    code = NOP * 20 + bytes.fromhex(immediate) * 3 + SYSCALL + bytes.fromhex("f00fbae007") * 50
    bare = Bare.load("x86_64", code)
    for entry in range(21):
        bare.core.write_register(0, 0)
        assert run_from(bare, entry) == (ExitReason.SYSCALL, 20 - entry + 3 + 1)
        assert bare.core.read_register(0) == 0xAB0FF007E0BA0FF0


def test_what_only_looks_like_a_locked_bit_test() -> None:
    in_a_process("looks_locked")


def locked_instructions() -> None:
    for code, legal in LOCKED.items():
        bare = Bare.load("x86_64", NOP + bytes.fromhex(code) + SYSCALL)
        bare.core.write_register(5, 0x70_0000)  # rdi
        expected = (ExitReason.SYSCALL, 3) if legal else (ExitReason.EXCEPTION, 1)
        assert run_from(bare, 0) == expected, code


def test_lock_needs_a_destination_in_memory() -> None:
    in_a_process("locked_instructions")
