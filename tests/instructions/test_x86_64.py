"""Every instruction form that the x86-64 machine offers does what the host's processor does."""

from __future__ import annotations

import os
import platform
import struct
import sys
from pathlib import Path

import pytest

import processor
import require
from tests.instructions.comparison import Comparison, Outcome
from tests.instructions.differences import load
from tests.instructions.form import Form, cases
from tests.instructions.protocol import FAULT_WORDS, Runner, build
from tests.instructions.x86_64.accept import FUNCTIONS
from tests.instructions.x86_64.forms import forms, others
from tests.instructions.x86_64.state import LAYOUT, PLACES

ROWS = load(Path(__file__).with_name("x86_64") / "differences.toml", PLACES)
INPUTS = int(os.environ.get("INSTRUCTION_INPUTS", "100"))  # for each form; `make instructions` takes many more
OTHER_ENCODINGS = 2  # of a form that is not offered
ENCODINGS = min(INPUTS // 8, 32)  # of a form
SIGILL, ILL_ILLOPN = 4, 2
CODE_BASE, SLOT_BYTES = 0x3000_0000, 64  # runner.h
AT_HWCAP2, FSGSBASE = 26, 1 << 1
NEEDED = {"sse4_2", "bmi1", "bmi2", "abm", "movbe", "aes", "pclmulqdq", "popcnt", "cx16", "fsgsbase"}


def _host_vendor() -> str:
    """Of the processor, if it has all that our machine offers."""
    if platform.machine() != "x86_64":
        pytest.skip(f"the reference is an x86-64 processor, and this is {platform.machine()}")
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if missing := NEEDED - set(told["flags"].split()):
        pytest.skip(f"the host's processor lacks {', '.join(sorted(missing))}")
    auxv = dict(struct.iter_unpack("<QQ", Path("/proc/self/auxv").read_bytes()))
    if not auxv.get(AT_HWCAP2, 0) & FSGSBASE:
        pytest.skip("the host's kernel does not let programs use FSGSBASE")
    return processor.vendor()


@pytest.fixture(scope="module")
def vendor() -> str:
    return _host_vendor()


@pytest.fixture(scope="module")
def comparison(vendor: str, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    program = build("x86_64", require.command("gcc", "gcc"), tmp_path_factory.mktemp("runner"))
    machine = Runner(program, LAYOUT, (sys.executable, "-m", "perfemu", "run", "--core", "ideal"))
    return Comparison(Runner(program, LAYOUT), machine, ROWS, vendor, FUNCTIONS)


@pytest.fixture(scope="module")
def all_forms() -> list[Form]:
    return forms(ENCODINGS)


@pytest.fixture(scope="module")
def outcome(comparison: Comparison, all_forms: list[Form]) -> Outcome:
    return comparison(cases(all_forms, INPUTS, ENCODINGS))


def test_every_form_does_what_the_hosts_processor_does(outcome: Outcome) -> None:
    unexplained = [finding.described(LAYOUT) for finding in outcome.findings]
    with processor.as_reference():
        count = len(unexplained)
        assert not unexplained, f"{count} encodings differ and no row says why:\n" + "\n".join(unexplained[:20])


def test_every_row_is_needed(outcome: Outcome, all_forms: list[Form], vendor: str) -> None:
    names = [form.name for form in all_forms]
    with processor.as_reference():
        assert not [row.reason for row in outcome.unneeded(ROWS, names, vendor)]
    for row in ROWS:
        assert any(row.applies(name) for name in names), f"no form is any of {row.forms}"


def test_the_walk_finds_what_the_machine_offers(all_forms: list[Form]) -> None:
    """One of each extension that CPUID announces; hardly any form would be lost in silence."""
    names = {form.name for form in all_forms}
    some = {
        "add r64, r64 (01)", "lock cmpxchg16b m128", "cmove r32, m32", "addps xmm, m128", "movapd xmm, m128",
        "haddpd xmm, xmm", "pshufb mm, mm", "pshufb xmm, m128", "pblendvb xmm, m128", "pcmpistri xmm, xmm, imm8",
        "crc32 r32, r16", "popcnt r16, r16", "lzcnt r64, r64", "tzcnt r32, m32", "bzhi r64, r64, r64",
        "pext r32, r32, m32", "movbe m64, r64", "aesenc xmm, xmm", "pclmulqdq xmm, m128, imm8", "rdfsbase r64",
        "fyl2xp1", "fcomi st", "paddd mm, m64", "rep movsb m8, m8", "lahf", "hlt", "ud2",
    }  # fmt: skip
    assert some - names == set()
    assert len(names) > 2000


def test_what_is_not_offered_is_undefined(comparison: Comparison) -> None:
    """SIGILL on the instruction, and nothing else has changed; no reference is asked."""
    chosen = cases(others(OTHER_ENCODINGS), 1, OTHER_ENCODINGS)
    names = {case.form.name for case in chosen}
    assert {"vaddps xmm, xmm, xmm", "sha1rnds4 xmm, xmm, imm8"} - names == set()
    assert len(names) > 300
    wrong = []
    requests = [case.request(first=0, count=1) for case in chosen]
    for case, states in zip(chosen, comparison.machine.states(requests), strict=True):
        fault = states.after[:FAULT_WORDS]
        at = CODE_BASE + case.slot * SLOT_BYTES
        registers = slice(FAULT_WORDS, None)
        if fault != (SIGILL, ILL_ILLOPN, at, 0) or states.after[registers] != states.before[registers]:
            wrong.append(f"{case.form.name} {case.encoding.code.hex()}: signal, code, address, PC are {fault}")
    assert not wrong, "\n".join(wrong)
