"""Every A64 instruction form that HWCAP announces does what it does under qemu-aarch64; what it does not is undefined.

`make instructions INPUTS=20000` gives each form more inputs; with INSTRUCTION_FORMS=ldp only those with that in their
names are looked at. forms.txt has the forms; aarch64/walk.py finds them.
"""

from __future__ import annotations

import os
import platform
import random
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import debian
import require
from emulator.aarch64_features import LATER_NAMES
from tests.instructions import differences
from tests.instructions.aarch64 import forms, walk
from tests.instructions.comparison import Comparison, Outcome
from tests.instructions.form import Case, Encoding, Form, cases
from tests.instructions.protocol import FAULT_WORDS, Runner, States, build

INPUTS = int(os.environ.get("INSTRUCTION_INPUTS", "1000"))
WANTED = os.environ.get("INSTRUCTION_FORMS", "")
ENCODINGS = max(12, INPUTS // 500)
INPUTS_OF_FAULTS = 48  # of forms that do nothing but fault: signals take long
UNALLOCATED_WORDS = 3000
SIGILL, SIGSEGV, ILL_ILLOPC = 4, 11, 1
CODE_BASE, SLOT_BYTES = 0x3000_0000, 64  # runner.h
ALL_BITS = (1 << 64) - 1
PLACES = {"fault": {"si_code": ((1, ALL_BITS),), "si_addr": ((2, ALL_BITS),)}}


def stored_before_the_fault(case: Case, expected: States, found: States) -> bool:
    """Both fault in the same way, and only memory differs."""
    registers = forms.LAYOUT.words - forms.LAYOUT.memory_words
    return expected.after[0] == SIGSEGV and expected.after[:registers] == found.after[:registers]


def took_a_tag_for_address(case: Case, expected: States, found: States) -> bool:
    """The reference has faulted at an address with something in its top byte, which is none; the machine has not."""
    si_addr = expected.after[2]
    return expected.after[0] == SIGSEGV and si_addr >> 56 != 0 and found.after[0] == 0


ACCEPT = {
    "stored before the fault": stored_before_the_fault,
    "took a tag for address": took_a_tag_for_address,
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require.command("llvm-mc-19", package="llvm-19")
    compiler = require.command("aarch64-linux-gnu-gcc", package="gcc-aarch64-linux-gnu")
    return build("aarch64", compiler, tmp_path_factory.mktemp("runner"))


def _comparison(program: Path, cpu: str, features: Sequence[str] = ()) -> Comparison:
    """With qemu-aarch64's `cpu`, of a core with these features."""
    tree = require.debian_tree(debian.ARCHITECTURES[platform.machine()], "qemu-user", release=debian.TRIXIE)
    perfemu = str(Path(sys.executable).with_name("perfemu"))
    more = ("--set", f"identity.features={','.join(features)}") if features else ()
    return Comparison(
        reference=Runner(program, forms.LAYOUT, (str(tree / "usr/bin/qemu-aarch64"), "-cpu", cpu)),
        machine=Runner(program, forms.LAYOUT, (perfemu, "run", "--core", "ideal", *more)),
        rows=differences.load(forms.DIFFERENCES, PLACES),
        accept=ACCEPT,
    )


@pytest.fixture(scope="module")
def comparison(program: Path) -> Comparison:
    return _comparison(program, "cortex-a72")


@pytest.fixture(scope="module")
def later_comparison(program: Path) -> Comparison:
    return _comparison(program, "neoverse-n1", LATER_NAMES)


def test_forms_do_what_they_do_under_qemu(comparison: Comparison) -> None:
    _do_what_they_do(comparison, forms.forms(ENCODINGS, WANTED))


def test_later_forms_do_what_they_do_under_qemu(later_comparison: Comparison) -> None:
    _do_what_they_do(later_comparison, forms.later_forms(ENCODINGS, WANTED))


def _do_what_they_do(comparison: Comparison, found: list[Form]) -> None:
    chosen = _chosen(comparison, found)
    outcome = comparison(chosen)
    assert not outcome.findings, _described(outcome)
    unneeded = outcome.unneeded(comparison.rows, [form.name for form in found], "")
    assert WANTED or not unneeded, f"these no longer differ: {unneeded}"


def _chosen(comparison: Comparison, found: list[Form]) -> list[Case]:
    """Cases of all forms, few inputs for those that can only fault."""
    glance = cases(found, 2 * ENCODINGS, ENCODINGS)
    hashes = comparison.reference.hashes([case.request() for case in glance])
    works = {case.form.name for case, seen in zip(glance, hashes, strict=True) if seen.faults < case.inputs}
    full = cases([form for form in found if form.name in works], INPUTS, ENCODINGS)
    faulting = cases([form for form in found if form.name not in works], INPUTS_OF_FAULTS, ENCODINGS)
    return full + [Case(case.form, case.encoding, len(full) + case.slot, case.inputs) for case in faulting]


def test_what_is_not_offered_is_undefined(comparison: Comparison) -> None:
    _are_undefined(comparison, cases(forms.others(encodings=3), 1, 3))


def test_what_is_not_offered_is_undefined_on_later_cores_too(later_comparison: Comparison) -> None:
    _are_undefined(later_comparison, cases(forms.others(encodings=3, features=walk.OURS_LATER), 1, 3))


@pytest.mark.parametrize("cores", ["comparison", "later_comparison"])
def test_what_is_not_allocated_is_undefined(cores: str, request: pytest.FixtureRequest) -> None:
    comparison: Comparison = request.getfixturevalue(cores)
    draw = random.Random(1)
    words = [draw.getrandbits(32) for _ in range(UNALLOCATED_WORDS)]
    known = walk.disassembled(words, "+all")
    unknown = tuple(Encoding(struct.pack("<I", word)) for word in words if word not in known)
    assert len(unknown) > UNALLOCATED_WORDS // 4
    _are_undefined(comparison, cases([Form("unallocated", unknown)], 1, len(unknown)))


def _are_undefined(comparison: Comparison, chosen: list[Case]) -> None:
    """On their first input: SIGILL on the instruction, and nothing else has changed."""
    requests = [case.request(first=0, count=1) for case in chosen]
    wrong = []
    for case, states in zip(chosen, comparison.machine.states(requests), strict=True):
        fault = states.after[:FAULT_WORDS]
        at = CODE_BASE + case.slot * SLOT_BYTES
        if fault != (SIGILL, ILL_ILLOPC, at, 0) or states.after[FAULT_WORDS:] != states.before[FAULT_WORDS:]:
            wrong.append(f"{case.form.name} {case.encoding.code.hex()}: signal, code, address, PC are {fault}")
    assert not wrong, "\n".join(wrong)


def _described(outcome: Outcome) -> str:
    return "\n".join(["", *(finding.described(forms.LAYOUT) for finding in outcome.findings)])
